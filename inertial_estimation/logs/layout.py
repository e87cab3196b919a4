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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.setting_values import as_different_names, as_mapping, check_keys
from inertial_estimation.logs.table import (
    SETTINGS,
    Signal,
    Table,
    load_table,
    read_signal,
    require_own_columns,
)
from inertial_estimation.logs.wrench_places import KEYS, WrenchPlace
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

MAX_TIME = 9e9
"""Stamps are nanoseconds in 64 bits [s]."""
TURNING = ('rad', 'deg', 'rad/s', 'deg/s', 'rpm', 'N m', 'N mm')
SLIDING = ('m', 'mm', 'm/s', 'mm/s', 'N')
"""Units of joints that turn, and of joints that slide."""
CURRENTS = ('A', 'mA')


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals of a log."""

    time: Signal
    joints: tuple[str, ...]
    positions: Signal
    velocities: Signal | None
    efforts: Signal | None
    ft_sensors: Mapping[str, Signal]
    """Wrenches by FT sensor."""
    temperatures: Mapping[str, Signal]
    """By FT sensor."""
    imus: Mapping[str, tuple[Signal, Signal]]
    """Angular velocity and proper acceleration by IMU."""
    external: Mapping[str, tuple[Signal, WrenchPlace]]
    """Wrenches of the environment on the robot by frame, with point and axes."""

    @classmethod
    def read(cls, given: object) -> Layout:
        """Read the layout from a configuration."""
        body = as_mapping(given, 'log')
        check_keys(body, [field.name for field in fields(cls)], 'log')
        for key in ('time', 'joints', 'positions'):
            if key not in body:
                raise ConfigError(f"'log.{key}' is missing")

        def group(key: str) -> Mapping[str, Any]:
            return as_mapping(body.get(key, {}), f'log.{key}')

        layout = cls(
            time=read_signal(body['time'], 'log.time', 'time'),
            joints=as_different_names(body['joints'], 'log.joints'),
            positions=read_signal(body['positions'], 'log.positions', 'positions'),
            velocities=_optional(body, 'velocities'),
            efforts=_optional(body, 'efforts'),
            ft_sensors={
                name: read_signal(one, f'log.ft_sensors.{name}', 'wrench')
                for name, one in group('ft_sensors').items()
            },
            temperatures={
                name: read_signal(one, f'log.temperatures.{name}', 'temperature')
                for name, one in group('temperatures').items()
            },
            imus={name: _imu(one, f'log.imus.{name}') for name, one in group('imus').items()},
            external={frame: _external(one, frame) for frame, one in group('external').items()},
        )
        joints = (layout.positions, layout.velocities, layout.efforts)
        require_own_columns(signal for signal in joints if signal is not None)
        sensors = [one for imu in layout.imus.values() for one in imu]
        require_own_columns([*layout.ft_sensors.values(), *sensors])
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
        joints = [_index('joint', name, robot.joint_names) for name in self.joints]

        def read(signal: Signal, size: int) -> Array:
            return signal.read_at(table, size, n, self.time.name)

        def of_joints(signal: Signal | None) -> Array:
            values = np.full((n, len(robot.joint_names)), np.nan)
            if signal is not None:
                _require_units(signal, robot, joints)
                values[:, joints] = read(signal, len(joints))
            return values

        fts = [ft.name for ft in robot.ft_sensors]
        readings = np.full((n, len(fts), 6), np.nan)
        for name, signal in self.ft_sensors.items():
            readings[:, _index('FT sensor', name, fts)] = read(signal, 6)
        temperatures = np.full((n, len(fts)), np.nan) if self.temperatures else None
        for name, signal in self.temperatures.items():
            assert temperatures is not None
            temperatures[:, _index('FT sensor', name, fts)] = read(signal, 1)[:, 0]
        imus = [imu.name for imu in robot.imus]
        turning, pulling = np.full((2, n, len(imus), 3), np.nan)
        for name, signals in self.imus.items():
            k = _index('IMU', name, imus)
            turning[:, k], pulling[:, k] = (read(signal, 3) for signal in signals)
        return SampleBatch(
            stamp_ns=np.round(seconds * 1e9).astype(np.int64),
            positions=of_joints(self.positions),
            velocities=of_joints(self.velocities),
            accelerations=of_joints(None),
            angular_velocities=turning,
            proper_accelerations=pulling,
            angular_accelerations=np.full_like(turning, np.nan),
            ft_readings=readings,
            efforts=of_joints(self.efforts),
            ft_temperatures=temperatures,
        )

    def wrenches(self, table: Table, robot: Robot, samples: SampleBatch) -> dict[str, Array]:
        """Return the wrenches of the environment on the robot by frame, (n, 6) [N, Nm]."""
        return {
            frame: place.at_frame(
                robot, samples.positions, signal.read_at(table, 6, len(samples), self.time.name)
            )
            for frame, (signal, place) in self.external.items()
        }


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


def _optional(body: Mapping[str, Any], key: str) -> Signal | None:
    """Read a signal of the joints, if there is one."""
    return read_signal(body[key], f'log.{key}', key) if key in body else None


def _imu(given: object, name: str) -> tuple[Signal, Signal]:
    """Read the two signals of an IMU."""
    body, kinds = as_mapping(given, name), ('gyroscope', 'accelerometer')
    check_keys(body, kinds, name)
    for kind in kinds:
        if kind not in body:
            raise ConfigError(f"'{name}.{kind}' is missing")
    gyroscope, accelerometer = (read_signal(body[kind], f'{name}.{kind}', kind) for kind in kinds)
    return gyroscope, accelerometer


def _external(given: object, frame: str) -> tuple[Signal, WrenchPlace]:
    """Read a wrench of the environment with its point and axes."""
    name = f'log.external.{frame}'
    place, rest = WrenchPlace.split(given, frame, name)
    if isinstance(rest, Mapping):
        check_keys(rest, (*SETTINGS, *KEYS), name)
    return read_signal(rest, name, 'wrench'), place


def _index(kind: str, name: str, known: Sequence[str]) -> int:
    """Return the column of a name."""
    if name not in known:
        raise NameNotFound(kind, name, known)
    return list(known).index(name)
