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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.setting_values import (
    as_different_names,
    as_mapping,
    as_names,
    as_numbers,
    check_keys,
)

Array = NDArray[np.float64]

SETTINGS = ('columns', 'unit', 'scale', 'divided_by', 'offset')
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
    """Names of several columns."""

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
    readers = {'.npz': _load_npz, '.csv': _load_csv}
    if path.suffix not in readers:
        raise LogError(f"{path} is neither npz nor csv; for bags name 'parameters', not 'log'")
    try:
        columns, names = readers[path.suffix](path)
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
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if _is_plain(file, name)}, file.files
    except BadZipFile as error:
        raise ValueError(str(error)) from error


def _is_plain(file: Any, name: str) -> bool:
    """Return whether an array of a file has samples."""
    try:
        return bool(file[name].ndim >= 1)
    except ValueError:
        return False


def _load_csv(path: Path) -> tuple[dict[str, Array], list[str]]:
    """Return the columns of a file with a header, and their names."""
    with path.open(newline='', encoding='utf-8-sig') as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        for mark, name in SEPARATORS.items():
            if len(header) == 1 and mark in header[0]:
                raise ValueError(f'{name} separate its columns, expected commas')
        values = [_numbers(row, header, rows.line_num) for row in rows if row]
    if not header or not values:
        raise ValueError('it holds no header and rows')
    return dict(zip(header, np.array(values).T, strict=True)), header


def _numbers(row: Sequence[str], header: Sequence[str], line: int) -> list[float]:
    """Return the numbers of a row, NaN for empty cells."""
    if len(row) != len(header):
        raise ValueError(f'line {line} has {len(row)} cells, not {len(header)}')
    found = []
    for name, cell in zip(header, row, strict=True):
        try:
            found.append(float(cell) if cell.strip() else np.nan)
        except ValueError:
            raise ValueError(f"line {line} holds '{cell}' in column '{name}'") from None
    return found


@dataclass(frozen=True, eq=False)
class Signal:
    """Columns of a signal, and the meaning of their numbers."""

    name: str
    """Full name of the setting."""
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
    """Whether a scale was stated."""

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
    body = as_mapping({'columns': given} if isinstance(given, str) else given, name)
    check_keys(body, SETTINGS, name)
    columns = as_different_names(body.get('columns', ()), f'{name}.columns')
    if not columns:
        raise ConfigError(f"'{name}' names no columns")
    units = as_names(body.get('unit', ()), f'{name}.unit')
    for unit in units:
        if unit not in UNITS[kind]:
            known = ', '.join(UNITS[kind])
            raise ConfigError(f"'{name}.unit' is '{unit}', expected one of {known}")
    if 'scale' in body and 'divided_by' in body:
        raise ConfigError(f"'{name}' has both scale and divided_by")
    scale = as_numbers(body.get('scale', 1.0), f'{name}.scale')
    if 'divided_by' in body:
        scale = _inverse(as_numbers(body['divided_by'], f'{name}.divided_by'), name)
    offset = as_numbers(body.get('offset', 0.0), f'{name}.offset')
    if offset.ndim > 1:
        raise ConfigError(f"'{name}.offset' is a matrix, expected a number or a list of them")
    sizes = np.array([UNITS[kind][unit] for unit in units] or [1.0])
    one = sizes if len(sizes) > 1 else sizes[0]
    scaled = 'scale' in body or 'divided_by' in body
    return Signal(name, columns, units, one, scale, offset, scaled)


def require_own_columns(signals: Iterable[Signal]) -> None:
    """Raise if signals share a column."""
    found: dict[str, str] = {}
    for signal in signals:
        for column in () if signal.scale.ndim == 2 else signal.columns:
            if column in found:
                raise ConfigError(
                    f"'{found[column]}' and '{signal.name}' both name column '{column}'"
                )
            found[column] = signal.name


def _inverse(divisor: Array, name: str) -> Array:
    """Return the scale of a divisor."""
    singular = not divisor.all() if divisor.ndim < 2 else abs(np.linalg.det(divisor)) == 0
    if singular:
        raise ConfigError(f"'{name}.divided_by' is zero or singular")
    return np.asarray(np.linalg.inv(divisor) if divisor.ndim == 2 else 1.0 / divisor)
