# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Layout of a log that is a table of numbers.

    log:
      time: {columns: t, unit: s}
      joints: [shoulder, elbow]
      positions: {columns: q, unit: deg}
      efforts: {columns: [i1, i2], unit: A, scale: [0.11, 0.07]}
      external: {l_sole: {columns: [fx, fy, fz, tx, ty, tz], scale: -1}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.known_wrenches import KnownWrench
from inertial_estimation.logs.setting_values import each, names, record
from inertial_estimation.logs.table import Signal, Table, load_table, read_signal
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

MAX_TIME = 9e9
"""Stamps are nanoseconds in 64 bits [s]."""
TURNING = ('rad', 'deg', 'rad/s', 'deg/s', 'rpm', 'N m', 'N mm')
SLIDING = ('m', 'mm', 'm/s', 'mm/s', 'N')
"""Units of joints that turn, and of joints that slide."""
CURRENTS = ('A', 'mA')
IMU = ('gyroscope', 'accelerometer')
SIGNALS = {
    kind: partial(read_signal, kind=kind)
    for kind in ('time', 'positions', 'velocities', 'efforts', 'wrench', 'temperature', *IMU)
}


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals of a log."""

    time: Signal
    joints: tuple[str, ...]
    positions: Signal
    velocities: Signal | None = None
    efforts: Signal | None = None
    ft_sensors: Mapping[str, Signal] = field(default_factory=dict)
    temperatures: Mapping[str, Signal] = field(default_factory=dict)
    imus: Mapping[str, Mapping[str, Signal]] = field(default_factory=dict)
    """Signals of `IMU` by IMU."""
    external: Mapping[str, KnownWrench] = field(default_factory=dict)

    @classmethod
    def read(cls, given: object, name: str = 'log') -> Layout:
        """Read the layout from a configuration."""
        layout = cls(**_LAYOUT(given, name))
        joints = (layout.positions, layout.velocities, layout.efforts)
        _require_own_columns(signal for signal in joints if signal is not None)
        sensors = [one for imu in layout.imus.values() for one in imu.values()]
        _require_own_columns([*layout.ft_sensors.values(), *sensors])
        return layout

    def require_torques(self, joints: Sequence[str]) -> None:
        """Raise for currents without scale."""
        signal = self.efforts
        if signal is None or signal.scaled:
            return
        for joint, unit in zip(self.joints, signal.units_of(len(self.joints)), strict=False):
            if joint in joints and unit in CURRENTS:
                raise ConfigError(
                    f"'{signal.name}.unit' of joint '{joint}' is '{unit}', a current without "
                    f"'{signal.name}.scale' [N m/A], and '{joint}' is not in 'rows.gains'"
                )

    def samples(self, path: str | Path, robot: Robot) -> SampleBatch:
        """Return the samples of a file."""
        return self.of_table(load_table(path), robot)

    def of_table(self, table: Table, robot: Robot) -> SampleBatch:
        """Return the samples of a table."""
        seconds = self.time.read(table, 1)[:, 0]
        if not (np.abs(seconds) <= MAX_TIME).all():
            raise LogError(f'{table.path}: {self.time.name} holds NaN or more than {MAX_TIME:g} s')
        n = len(seconds)

        def columns(
            kind: str, signals: Mapping[str, Signal], known: Iterable[str], size: int
        ) -> Array:
            found = np.full((n, len(known := list(known)), size), np.nan)
            for name, signal in signals.items():
                if name not in known:
                    raise NameNotFound(kind, name, known)
                values = signal.read_at(table, size, n, self.time.name)
                found[:, known.index(name)] = values
            return found

        for name in self.joints:
            if name not in robot.joint_names:
                raise NameNotFound('joint', name, robot.joint_names)
        rows = [robot.joint_names.index(name) for name in self.joints]

        def of_joints(signal: Signal | None) -> Array:
            values = np.full((n, len(robot.joint_names)), np.nan)
            if signal is not None:
                _require_units(signal, robot, rows)
                values[:, rows] = signal.read_at(table, len(rows), n, self.time.name)
            return values

        fts, imus = [ft.name for ft in robot.ft_sensors], [imu.name for imu in robot.imus]
        rates, accelerations = (
            columns('IMU', {name: one[kind] for name, one in self.imus.items()}, imus, 3)
            for kind in IMU
        )
        return SampleBatch(
            stamp_ns=np.round(seconds * 1e9).astype(np.int64),
            positions=of_joints(self.positions),
            velocities=of_joints(self.velocities),
            accelerations=of_joints(None),
            angular_velocities=rates,
            proper_accelerations=accelerations,
            angular_accelerations=np.full_like(rates, np.nan),
            ft_readings=columns('FT sensor', self.ft_sensors, fts, 6),
            efforts=of_joints(self.efforts),
            ft_temperatures=(
                columns('FT sensor', self.temperatures, fts, 1)[..., 0]
                if self.temperatures
                else None
            ),
        )


_LAYOUT = record(
    {
        'time': SIGNALS['time'],
        'joints': names,
        **{key: SIGNALS[key] for key in ('positions', 'velocities', 'efforts')},
        'ft_sensors': each(SIGNALS['wrench']),
        'temperatures': each(SIGNALS['temperature']),
        'imus': each(record({kind: SIGNALS[kind] for kind in IMU}, IMU)),
        'external': each(KnownWrench.read_columns),
    },
    ('time', 'joints', 'positions'),
)


def _require_units(signal: Signal, robot: Robot, joints: Sequence[int]) -> None:
    """Raise if a joint that turns has a unit of one that slides, or the other way round."""
    moved = {link.joint: link for link in robot.links if link.joint >= 0}
    for joint, unit in zip(joints, signal.units_of(len(joints)), strict=False):
        turns = bool(moved[joint].motion[3:].any())
        if unit in (SLIDING if turns else TURNING):
            raise ConfigError(
                f"'{signal.name}.unit' is '{unit}', but joint '{robot.joint_names[joint]}' "
                f'{"turns" if turns else "slides"}'
            )


def _require_own_columns(signals: Iterable[Signal]) -> None:
    """Raise if signals share a column."""
    found: dict[str, str] = {}
    for signal in signals:
        for column in () if signal.scale.ndim == 2 else signal.columns:
            if column in found:
                raise ConfigError(
                    f"'{found[column]}' and '{signal.name}' both name column '{column}'"
                )
            found[column] = signal.name
