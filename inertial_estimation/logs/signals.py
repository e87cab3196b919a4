# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One signal of a log: which columns, in which unit, and what undoes its gears.

A signal is ``scale * column * unit + offset``; `scale` is a number, one for each channel, or a
matrix from all columns to all channels where they are coupled; `divided_by` is the same the other
way round, for gears of positions. `unit` may be a list with one for each channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.number_table import Table
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
"""Units of each signal, and what one of them is in SI."""
LARGEST = 1e9
"""No joint, sensor or motor gives more, in any unit of SI."""


@dataclass(frozen=True, eq=False)
class Signal:
    """Where a signal stands in a table, and what its numbers mean."""

    name: str
    """Full name, for messages."""
    columns: tuple[str, ...]
    units: tuple[str, ...]
    """One for all channels, or one for each; none: the SI unit, whatever that is."""
    unit: Array
    """One unit in SI, a number or one for each channel."""
    scale: Array
    """A number, one for each channel, or a matrix."""
    offset: Array
    """A number, or one for each channel, in SI."""
    scaled: bool = False
    """Whether a scale was stated."""

    def read(self, table: Table, size: int) -> Array:
        """
        Return the signal in SI.

        Returns (n, size).
        """
        parts = [table.column(name, self.name) for name in self.columns]
        if len({len(part) for part in parts}) > 1:
            raise LogError(f'{table.path}: {_lengths(self.columns, parts)} for {self.name}')
        return self.in_si(np.concatenate(parts, axis=1), size)

    def read_at(self, table: Table, size: int, n: int, clock: str) -> Array:
        """
        Return the signal in SI at the instants of a log.

        Returns (n, size).
        """
        values = self.read(table, size)
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if largest > LARGEST:
            raise LogError(
                f'{table.path}: {self.name} holds {largest:.3g} in SI: its unit or scale is not '
                'what the file holds'
            )
        if len(values) != n:
            raise LogError(
                f'{table.path}: {self.name} has {len(values)} instants, {clock} has {n}'
            )
        return values

    def in_si(self, raw: Array, size: int) -> Array:
        """
        Return in SI what a log says.

        raw (n, n_columns); returns (n, size).
        """
        if self.scale.ndim < 2 and raw.shape[1] != size:
            raise LogError(
                f'{self.name}: columns {", ".join(self.columns)} hold {raw.shape[1]} values at '
                f'an instant, expected {size}'
            )
        if self.scale.ndim == 2 and self.scale.shape != (size, raw.shape[1]):
            raise LogError(
                f'{self.name}: the matrix is {self.scale.shape[0]} x {self.scale.shape[1]}, '
                f'expected {size} x {raw.shape[1]}'
            )
        channels = (('scale', self.scale), ('offset', self.offset), ('unit', self.unit))
        for what, values in channels:
            if values.ndim == 1 and len(values) != size:
                raise LogError(f'{self.name}: {len(values)} values in {what}, expected {size}')
        scaled = raw @ self.scale.T if self.scale.ndim == 2 else raw * self.scale
        return np.asarray(scaled * self.unit + self.offset)


def read_signal(said: object, name: str, kind: str) -> Signal:
    """Read one signal from a configuration."""
    if isinstance(said, str):
        said = {'columns': said}
    body = as_mapping(said, name)
    check_keys(body, SETTINGS, name)
    if 'columns' not in body:
        raise ConfigError(f"'{name}' names no columns: add {name}.columns")
    units = as_names(body.get('unit', ()), f'{name}.unit')
    for unit in units:
        if unit not in UNITS[kind]:
            known = ', '.join(UNITS[kind])
            raise ConfigError(f"'{name}.unit' is '{unit}', expected one of {known}")
    if 'scale' in body and 'divided_by' in body:
        raise ConfigError(f"'{name}' has both scale and divided_by: keep one of them")
    scale = as_numbers(body.get('scale', 1.0), f'{name}.scale')
    if 'divided_by' in body:
        scale = _inverse(as_numbers(body['divided_by'], f'{name}.divided_by'), name)
    offset = as_numbers(body.get('offset', 0.0), f'{name}.offset')
    if offset.ndim > 1:
        raise ConfigError(f"'{name}.offset' is a matrix, expected a number or a list of them")
    sizes = np.array([UNITS[kind][unit] for unit in units] or [1.0])
    columns = as_different_names(body['columns'], f'{name}.columns')
    if not columns:
        raise ConfigError(f"'{name}.columns' is empty: name at least one column")
    scaled = 'scale' in body or 'divided_by' in body
    one = sizes if len(sizes) > 1 else sizes[0]
    return Signal(name, columns, units, one, scale, offset, scaled)


def require_own_columns(signals: Iterable[Signal]) -> None:
    """Refuse signals that share a column."""
    found: dict[str, str] = {}
    for signal in signals:
        for column in () if signal.scale.ndim == 2 else signal.columns:
            if column in found:
                raise ConfigError(
                    f"'{found[column]}' and '{signal.name}' both name column '{column}': each "
                    'signal has its own'
                )
            found[column] = signal.name


def _lengths(names: Sequence[str], parts: Sequence[Array]) -> str:
    """Return how long columns are that should be alike."""
    said = (f"'{name}' has {len(part)}" for name, part in zip(names, parts, strict=True))
    return f'columns are not as long as each other: {", ".join(said)}'


def _inverse(divisor: Array, name: str) -> Array:
    """Return what undoes a scale."""
    singular = not divisor.all() if divisor.ndim < 2 else abs(np.linalg.det(divisor)) == 0
    if singular:
        raise ConfigError(f"'{name}.divided_by' cannot be divided by: it is zero or singular")
    return np.asarray(np.linalg.inv(divisor) if divisor.ndim == 2 else 1.0 / divisor)
