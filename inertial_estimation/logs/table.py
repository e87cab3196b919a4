# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Tables of numbers, npz and csv, and the signals in their columns.

A signal is ``scale * column * unit + offset``; `scale` is a number, one for each channel, or a
matrix from all columns to all channels; `divided_by` is the inverse, for gears of positions.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.setting_values import names, numbers, record, texts

SETTINGS = {
    'columns': names, 'unit': texts, 'scale': numbers(), 'divided_by': numbers(),
    'offset': numbers(),
}  # fmt: skip
DEGREE = np.pi / 180
UNITS: dict[str, dict[str, float]] = {
    'time': {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9},
    'positions': {'rad': 1.0, 'deg': DEGREE, 'm': 1.0, 'mm': 1e-3},
    'velocities': {'rad/s': 1.0, 'deg/s': DEGREE, 'm/s': 1.0, 'mm/s': 1e-3, 'rpm': np.pi / 30},
    'efforts': {'N m': 1.0, 'N mm': 1e-3, 'N': 1.0, 'A': 1.0, 'mA': 1e-3},
    'temperature': {'degC': 1.0},
    'wrench': {'N, N m': 1.0},
    'gyroscope': {'rad/s': 1.0, 'deg/s': DEGREE},
    'accelerometer': {'m/s^2': 1.0, 'g': 9.80665},
}
"""Units of each kind of signal, in SI."""
MAX_VALUE = 1e9
"""Of any signal, in SI."""
SEPARATORS = {';': 'semicolons', '\t': 'tabs'}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file by name, each with one or more values a sample."""

    path: str
    columns: Mapping[str, Array]
    twice: frozenset[str] = frozenset()

    def column(self, name: str, wanted_by: str) -> Array:
        """Return a column, shape (n, k)."""
        if name not in self.columns:
            known = ', '.join(self.columns)
            raise LogError(f"{self.path} has no column '{name}' for {wanted_by}; it has {known}")
        if name in self.twice:
            raise LogError(f"{self.path} has several columns '{name}' for {wanted_by}")
        values = self.columns[name]
        if values.ndim > 2 or values.dtype.kind not in 'fiu' or not len(values):
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} holds no numbers")
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def load_table(path: str | Path) -> Table:
    """Read a table of numbers."""
    path = Path(path)
    if path.suffix not in TABLES:
        known = ', '.join(TABLES)
        raise LogError(f"{path} is no table ({known}); for bags name 'parameters', not 'log'")
    try:
        columns, names = TABLES[path.suffix](path)
    except OSError as error:
        raise LogError(f'cannot read {path}: {error.strerror or error}') from error
    except ValueError as error:
        raise LogError(f'{path} is no {path.suffix[1:]} of numbers: {error}') from error
    twice = frozenset(name for name, count in Counter(names).items() if count > 1)
    return Table(str(path), columns, twice)


def _load_npz(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Return the arrays that are no pickles, and all names."""
    from zipfile import BadZipFile, is_zipfile

    if path.is_file() and not is_zipfile(path):
        raise ValueError('it is no zip archive')
    found = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                with suppress(ValueError):
                    found[name] = file[name]
            return {name: one for name, one in found.items() if one.ndim}, file.files
    except BadZipFile as error:
        raise ValueError(str(error)) from error


def _load_csv(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Return the columns of a file with a header, and their names."""
    with path.open(newline='', encoding='utf-8-sig') as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        for mark, name in SEPARATORS.items():
            if len(header) == 1 and mark in header[0]:
                raise ValueError(f'{name} separate its columns, expected commas')
        values = []
        for row in filter(None, rows):
            if len(row) != len(header):
                raise ValueError(f'line {rows.line_num} has {len(row)} cells, not {len(header)}')
            try:
                values.append([float(cell) if cell.strip() else np.nan for cell in row])
            except ValueError as error:
                raise ValueError(f'line {rows.line_num}: {error}') from error
    if not header or not values:
        raise ValueError('it holds no header and rows')
    return dict(zip(header, np.array(values).T, strict=True)), header


TABLES: dict[str, Callable[[Path], tuple[dict[str, Array], list[str]]]] = {
    '.npz': _load_npz, '.csv': _load_csv,
}  # fmt: skip
"""Readers of tables by file type: columns by name, and all names. All other logs are bags."""


@dataclass(frozen=True, eq=False)
class Signal:
    """Columns of a signal, and the meaning of their numbers."""

    name: str
    columns: tuple[str, ...]
    units: tuple[str, ...]
    """One for all channels, or one for each; none: SI."""
    unit: Array
    """In SI, a number or one for each channel."""
    scale: Array
    """A number, one for each channel, or a matrix."""
    offset: Array
    """A number, or one for each channel, in SI."""
    scaled: bool = False

    def units_of(self, n: int) -> tuple[str, ...]:
        """Return the unit of each of n channels."""
        return self.units * n if len(self.units) == 1 else self.units

    def read(self, table: Table, size: int) -> Array:
        """Return the signal in SI, shape (n, size)."""
        parts = [table.column(name, self.name) for name in self.columns]
        if len({len(part) for part in parts}) > 1:
            lengths = ', '.join(f"'{c}' {len(p)}" for c, p in zip(self.columns, parts))
            raise LogError(f'{table.path}: columns of {self.name} differ in length: {lengths}')
        return self.in_si(np.concatenate(parts, axis=1), size)

    def read_at(self, table: Table, size: int, n: int, clock: str) -> Array:
        """Return the signal in SI, shape (n, size)."""
        values = self.read(table, size)
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if largest > MAX_VALUE:
            raise LogError(f'{table.path}: {self.name} holds {largest:.3g} in SI units')
        if len(values) != n:
            raise LogError(f'{table.path}: {self.name} has {len(values)} samples, {clock} has {n}')
        return values

    def in_si(self, raw: Array, size: int) -> Array:
        """Return values in SI, shape (n, size), of raw (n, n_columns)."""
        expected = self.scale.shape[1] if self.scale.ndim == 2 else size
        if raw.shape[1] != expected or (self.scale.ndim == 2 and len(self.scale) != size):
            shape = f' by a matrix {self.scale.shape}' if self.scale.ndim == 2 else ''
            raise LogError(f'{self.name}: {raw.shape[1]} values{shape}, expected {size} channels')
        for what in ('scale', 'offset', 'unit'):
            values = getattr(self, what)
            if values.ndim == 1 and len(values) != size:
                raise LogError(f'{self.name}: {len(values)} values in {what}, expected {size}')
        scaled = raw @ self.scale.T if self.scale.ndim == 2 else raw * self.scale
        return np.asarray(scaled * self.unit + self.offset)


def read_signal(given: object, name: str, kind: str) -> Signal:
    """Read a signal from a configuration."""
    body = record(SETTINGS, ['columns'])(
        {'columns': given} if isinstance(given, str) else given, name
    )
    if not body['columns']:
        raise ConfigError(f"'{name}' names no columns")
    units = body.get('unit', ())
    for unit in units:
        if unit not in UNITS[kind]:
            known = ', '.join(UNITS[kind])
            raise ConfigError(f"'{name}.unit' is '{unit}', expected one of {known}")
    scale, divisor = body.get('scale'), body.get('divided_by')
    if scale is not None and divisor is not None:
        raise ConfigError(f"'{name}' has both scale and divided_by")
    if divisor is not None:
        singular = not divisor.all() if divisor.ndim < 2 else np.linalg.det(divisor) == 0.0
        if singular:
            raise ConfigError(f"'{name}.divided_by' is zero or singular")
        scale = np.asarray(np.linalg.inv(divisor) if divisor.ndim == 2 else 1.0 / divisor)
    offset = body.get('offset', np.array(0.0))
    if offset.ndim > 1:
        raise ConfigError(f"'{name}.offset' is a matrix, expected a number or a list of them")
    sizes = np.array([UNITS[kind][unit] for unit in units] or [1.0])
    one = sizes if len(sizes) > 1 else sizes[0]
    stated = scale is not None
    return Signal(
        name, body['columns'], units, one, scale if stated else np.array(1.0), offset, stated
    )
