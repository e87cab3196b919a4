# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs that are tables of numbers, npz or csv: which column is which signal, in which unit.

    log:
      time: {columns: t, unit: s}
      joints: [shoulder, elbow]
      positions: {columns: q, unit: deg}
      efforts: {columns: [i1, i2], unit: A, scale: [0.11, 0.07]}

A signal is ``scale * column * unit + offset``; `scale` is a number, one for each joint, or a
matrix from all columns to all joints where they are coupled; `divided_by` is the same the other
way round, for gears of positions. `unit` may be a list with one for each joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.number_table import Table, load_table
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

DEGREE = np.pi / 180
UNITS: dict[str, dict[str, float]] = {
    'time': {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9},
    'positions': {'rad': 1.0, 'deg': DEGREE, 'm': 1.0, 'mm': 1e-3},
    'velocities': {'rad/s': 1.0, 'deg/s': DEGREE, 'm/s': 1.0, 'mm/s': 1e-3, 'rpm': np.pi / 30},
    'efforts': {'N m': 1.0, 'N mm': 1e-3, 'N': 1.0, 'A': 1.0, 'mA': 1e-3},
    'wrench': {'N, N m': 1.0},
    'gyroscope': {'rad/s': 1.0, 'deg/s': DEGREE},
    'accelerometer': {'m/s^2': 1.0, 'g': 9.80665},
}
"""Units of each signal, and what one of them is in SI."""
LATEST = 9e9
"""Stamps are nanoseconds in 64 bits [s]."""
LARGEST = 1e9
"""No joint, sensor or motor gives more, in any unit of SI."""
TURNING = ('rad', 'deg', 'rad/s', 'deg/s', 'rpm', 'N m', 'N mm')
SLIDING = ('m', 'mm', 'm/s', 'mm/s', 'N')
"""Units that only joints of one type have; a current may drive either."""


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

    def read(self, table: Table, size: int) -> Array:
        """
        Return the signal in SI.

        Parameters
        ----------
        table : Table
            The log.
        size : int
            Channels that it must have.

        Returns
        -------
        ndarray, shape (n, size)

        Raises
        ------
        LogError
            If the columns are others than that.

        """
        parts = [table.column(name, self.name) for name in self.columns]
        if len({len(part) for part in parts}) > 1:
            raise LogError(f'{table.path}: {_lengths(self.columns, parts)} for {self.name}')
        raw = np.concatenate(parts, axis=1)
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


@dataclass(frozen=True, eq=False)
class Layout:
    """All signals of a log."""

    time: Signal
    joints: tuple[str, ...]
    positions: Signal
    velocities: Signal | None
    efforts: Signal | None
    ft_sensors: Mapping[str, Signal]
    """Wrenches by the name of the sensor."""
    imus: Mapping[str, tuple[Signal, Signal]]
    """Angular velocity and proper acceleration by the name of the IMU."""

    @classmethod
    def read(cls, said: object) -> Layout:
        """
        Read the layout from a configuration.

        Parameters
        ----------
        said : object
            What stands under ``log`` in the file.

        Returns
        -------
        Layout

        Raises
        ------
        ConfigError
            If something is missing, unknown or impossible; the message names it.

        """
        body = _mapping(said, 'log')
        known = ('time', 'joints', 'positions', 'velocities', 'efforts', 'ft_sensors', 'imus')
        _check_keys(body, known, 'log')
        for key in ('time', 'joints', 'positions'):
            if key not in body:
                raise ConfigError(f"'log' does not say where '{key}' are: add log.{key}")
        return cls(
            time=_signal(body['time'], 'log.time', 'time'),
            joints=_names(body['joints'], 'log.joints'),
            positions=_signal(body['positions'], 'log.positions', 'positions'),
            velocities=_optional(body, 'velocities'),
            efforts=_optional(body, 'efforts'),
            ft_sensors={
                name: _signal(one, f'log.ft_sensors.{name}', 'wrench')
                for name, one in _mapping(body.get('ft_sensors', {}), 'log.ft_sensors').items()
            },
            imus={
                name: _imu(one, f'log.imus.{name}')
                for name, one in _mapping(body.get('imus', {}), 'log.imus').items()
            },
        )

    def samples(self, path: str | Path, robot: Robot) -> SampleBatch:
        """
        Read a log.

        Parameters
        ----------
        path : str or Path
            File that ends in npz or csv.
        robot : Robot
            Whose joints and sensors the layout names.

        Returns
        -------
        SampleBatch
            As recorded: what is not in the log is NaN, and all accelerations are.

        Raises
        ------
        LogError
            If the file cannot be read or lacks a column.
        NameNotFound
            If the robot lacks a joint or sensor.

        """
        table = load_table(path)
        seconds = self.time.read(table, 1)[:, 0]
        if not (np.abs(seconds) <= LATEST).all():
            raise LogError(
                f'{path}: {self.time.name} holds NaN, infinity, or more than {LATEST:g} s'
            )
        n = len(seconds)
        joints = [_index('joint', name, robot.joint_names) for name in self.joints]

        def read(signal: Signal, size: int) -> Array:
            values = signal.read(table, size)
            largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
            if largest > LARGEST:
                raise LogError(
                    f'{path}: {signal.name} holds {largest:.3g} in SI: its unit or scale is not '
                    'what the file holds'
                )
            if len(values) != n:
                raise LogError(
                    f'{path}: {signal.name} has {len(values)} instants, {self.time.name} has {n}'
                )
            return values

        def of_joints(signal: Signal | None) -> Array:
            values = np.full((n, len(robot.joint_names)), np.nan)
            if signal is not None:
                _require_units(signal, robot, joints)
                values[:, joints] = read(signal, len(joints))
            return values

        fts = _sensors(self.ft_sensors, [ft.name for ft in robot.ft_sensors], 'FT sensor')
        readings = np.full((n, len(robot.ft_sensors), 6), np.nan)
        for index, name in fts:
            readings[:, index] = read(self.ft_sensors[name], 6)
        imus = _sensors(self.imus, [imu.name for imu in robot.imus], 'IMU')
        turning, pulling = np.full((2, n, len(robot.imus), 3), np.nan)
        for index, name in imus:
            turning[:, index], pulling[:, index] = (read(s, 3) for s in self.imus[name])
        nothing = np.full_like(turning, np.nan)
        return SampleBatch(
            stamp_ns=np.round(seconds * 1e9).astype(np.int64),
            positions=of_joints(self.positions),
            velocities=of_joints(self.velocities),
            accelerations=of_joints(None),
            angular_velocities=turning,
            proper_accelerations=pulling,
            angular_accelerations=nothing,
            ft_readings=readings,
            efforts=of_joints(self.efforts),
        )


def _signal(said: object, name: str, kind: str) -> Signal:
    """Read one signal."""
    if isinstance(said, str):
        said = {'columns': said}
    body = _mapping(said, name)
    _check_keys(body, ('columns', 'unit', 'scale', 'divided_by', 'offset'), name)
    if 'columns' not in body:
        raise ConfigError(f"'{name}' names no columns: add {name}.columns")
    units = _names(body.get('unit', ()), f'{name}.unit')
    for unit in units:
        if unit not in UNITS[kind]:
            known = ', '.join(UNITS[kind])
            raise ConfigError(f"'{name}.unit' is '{unit}', expected one of {known}")
    if 'scale' in body and 'divided_by' in body:
        raise ConfigError(f"'{name}' has both scale and divided_by: keep one of them")
    scale = _numbers(body.get('scale', 1.0), f'{name}.scale')
    if 'divided_by' in body:
        scale = _inverse(_numbers(body['divided_by'], f'{name}.divided_by'), name)
    offset = _numbers(body.get('offset', 0.0), f'{name}.offset')
    if offset.ndim > 1:
        raise ConfigError(f"'{name}.offset' is a matrix, expected a number or a list of them")
    sizes = np.array([UNITS[kind][unit] for unit in units] or [1.0])
    columns = _names(body['columns'], f'{name}.columns')
    if not columns:
        raise ConfigError(f"'{name}.columns' is empty: name at least one column")
    return Signal(name, columns, units, sizes if len(sizes) > 1 else sizes[0], scale, offset)


def _lengths(names: Sequence[str], parts: Sequence[Array]) -> str:
    """Return how long columns are that should be alike."""
    said = (f"'{name}' has {len(part)}" for name, part in zip(names, parts, strict=True))
    return f'columns are not as long as each other: {", ".join(said)}'


def _require_units(signal: Signal, robot: Robot, joints: Sequence[int]) -> None:
    """Raise if a joint that turns has a unit of one that slides, or the other way round."""
    moved = {link.joint: link for link in robot.links if link.joint >= 0}
    units = signal.units * len(joints) if len(signal.units) == 1 else signal.units
    for joint, unit in zip(joints, units, strict=False):
        turns = bool(moved[joint].motion[3:].any())
        if unit in (SLIDING if turns else TURNING):
            raise ConfigError(
                f"'{signal.name}.unit' is '{unit}', but joint '{robot.joint_names[joint]}' "
                f'{"turns" if turns else "slides"}: list one unit for each joint'
            )


def _inverse(divisor: Array, name: str) -> Array:
    """Return what undoes a scale."""
    singular = not divisor.all() if divisor.ndim < 2 else abs(np.linalg.det(divisor)) == 0
    if singular:
        raise ConfigError(f"'{name}.divided_by' cannot be divided by: it is zero or singular")
    return np.asarray(np.linalg.inv(divisor) if divisor.ndim == 2 else 1.0 / divisor)


def _optional(body: Mapping[str, Any], key: str) -> Signal | None:
    """Read a signal of the joints, if there is one."""
    return _signal(body[key], f'log.{key}', key) if key in body else None


def _imu(said: object, name: str) -> tuple[Signal, Signal]:
    """Read the two signals of an IMU."""
    body = _mapping(said, name)
    kinds = ('gyroscope', 'accelerometer')
    _check_keys(body, kinds, name)
    for kind in kinds:
        if kind not in body:
            raise ConfigError(f"'{name}' does not say where its {kind} is: add {name}.{kind}")
    gyroscope, accelerometer = (_signal(body[kind], f'{name}.{kind}', kind) for kind in kinds)
    return gyroscope, accelerometer


def _mapping(said: object, name: str) -> Mapping[str, Any]:
    """Return what must be a mapping."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"'{name}' is {said!r}, expected names and values below it")
    return said


def _check_keys(body: Mapping[str, Any], known: Sequence[str], name: str) -> None:
    """Raise if there is an unknown key."""
    for key in body:
        if key not in known:
            raise NameNotFound(f"setting below '{name}'", str(key), known)


def _names(said: object, name: str) -> tuple[str, ...]:
    """Return one name or several."""
    names = (said,) if isinstance(said, str) else said
    if not isinstance(names, Iterable) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"'{name}' is {said!r}, expected a name or a list of names")
    return tuple(names)


def _numbers(said: object, name: str) -> Array:
    """Return a number, a list or a matrix."""
    try:
        values = np.array(said, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if not np.isfinite(values).all() or values.ndim > 2:
        raise ConfigError(f"'{name}' is {said!r}, expected a number, a list of them or a matrix")
    return values


def _index(kind: str, name: str, known: Sequence[str]) -> int:
    """Return where a name stands."""
    if name not in known:
        raise NameNotFound(kind, name, known)
    return known.index(name)


def _sensors(
    signals: Mapping[str, object], known: Sequence[str], kind: str
) -> list[tuple[int, str]]:
    """Return index and name of each sensor of the layout."""
    return [(_index(kind, name, known), name) for name in signals]
