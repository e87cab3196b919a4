# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs that are tables of numbers, npz or csv: which column is which signal, in which unit.

    log:
      time: {columns: t, unit: s}
      joints: [shoulder, elbow]
      positions: {columns: q, unit: deg}
      efforts: {columns: [i1, i2], unit: A, scale: [0.11, 0.07]}
      external: {l_sole: {columns: [fx, fy, fz, tx, ty, tz], scale: -1}}

What a signal may say is in `signals`, where a wrench of the environment is expressed in
`wrench_places`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.number_table import Table, load_table
from inertial_estimation.logs.setting_values import as_different_names, as_mapping, check_keys
from inertial_estimation.logs.signals import SETTINGS, Signal, read_signal, require_own_columns
from inertial_estimation.logs.wrench_places import KEYS, WrenchPlace
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

LATEST = 9e9
"""Stamps are nanoseconds in 64 bits [s]."""
TURNING = ('rad', 'deg', 'rad/s', 'deg/s', 'rpm', 'N m', 'N mm')
SLIDING = ('m', 'mm', 'm/s', 'mm/s', 'N')
"""Units that only joints of one type have; a current may drive either."""
CURRENTS = ('A', 'mA')


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
    temperatures: Mapping[str, Signal]
    """Temperatures by the name of the FT sensor."""
    imus: Mapping[str, tuple[Signal, Signal]]
    """Angular velocity and proper acceleration by the name of the IMU."""
    external: Mapping[str, tuple[Signal, WrenchPlace]]
    """Wrenches of the environment on the robot, by frame, and what they are expressed in."""

    @classmethod
    def read(cls, said: object) -> Layout:
        """Read the layout from a configuration."""
        body = as_mapping(said, 'log')
        check_keys(body, [field.name for field in fields(cls)], 'log')
        for key in ('time', 'joints', 'positions'):
            if key not in body:
                raise ConfigError(f"'log' does not say where '{key}' are: add log.{key}")
        layout = cls(
            time=read_signal(body['time'], 'log.time', 'time'),
            joints=as_different_names(body['joints'], 'log.joints'),
            positions=read_signal(body['positions'], 'log.positions', 'positions'),
            velocities=_optional(body, 'velocities'),
            efforts=_optional(body, 'efforts'),
            ft_sensors={
                name: read_signal(one, f'log.ft_sensors.{name}', 'wrench')
                for name, one in as_mapping(body.get('ft_sensors', {}), 'log.ft_sensors').items()
            },
            temperatures={
                name: read_signal(one, f'log.temperatures.{name}', 'temperature')
                for name, one in as_mapping(
                    body.get('temperatures', {}), 'log.temperatures'
                ).items()
            },
            imus={
                name: _imu(one, f'log.imus.{name}')
                for name, one in as_mapping(body.get('imus', {}), 'log.imus').items()
            },
            external={
                frame: _external(one, frame)
                for frame, one in as_mapping(body.get('external', {}), 'log.external').items()
            },
        )
        joints = (layout.positions, layout.velocities, layout.efforts)
        require_own_columns(signal for signal in joints if signal is not None)
        sensors = [one for imu in layout.imus.values() for one in imu]
        require_own_columns([*layout.ft_sensors.values(), *sensors])
        return layout

    def require_torques(self, joints: Sequence[str]) -> None:
        """Refuse currents that nothing turns into efforts."""
        signal = self.efforts
        if signal is None or signal.scaled:
            return
        units = signal.units * len(self.joints) if len(signal.units) == 1 else signal.units
        for joint, unit in zip(self.joints, units, strict=False):
            if joint in joints and unit in CURRENTS:
                raise ConfigError(
                    f"'{signal.name}.unit' of joint '{joint}' is '{unit}', a current, and nothing "
                    f"says which effort that is: state '{signal.name}.scale', torque over current "
                    "[N m/A], or name the joint under 'rows.gains', with a payload of known mass"
                )

    def samples(self, path: str | Path, robot: Robot) -> SampleBatch:
        """Read a log."""
        return self.of_table(load_table(path), robot)

    def of_table(self, table: Table, robot: Robot) -> SampleBatch:
        """Return what a table says; see `samples`."""
        seconds = self.time.read(table, 1)[:, 0]
        if not (np.abs(seconds) <= LATEST).all():
            raise LogError(
                f'{table.path}: {self.time.name} holds NaN, infinity, or more than {LATEST:g} s: '
                f"state '{self.time.name}.unit' if it is in ms, us or ns"
            )
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

        fts = _sensors(self.ft_sensors, [ft.name for ft in robot.ft_sensors], 'FT sensor')
        readings = np.full((n, len(robot.ft_sensors), 6), np.nan)
        for index, name in fts:
            readings[:, index] = read(self.ft_sensors[name], 6)
        temperatures = None
        if self.temperatures:
            temperatures = np.full((n, len(robot.ft_sensors)), np.nan)
            names = [ft.name for ft in robot.ft_sensors]
            for index, name in _sensors(self.temperatures, names, 'FT sensor'):
                temperatures[:, index] = read(self.temperatures[name], 1)[:, 0]
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
            ft_temperatures=temperatures,
        )

    def wrenches(self, table: Table, robot: Robot, samples: SampleBatch) -> dict[str, Array]:
        """
        Return the wrenches of the environment on the robot.

        Returns (n, 6) [force; torque].
        """
        n = len(samples)
        return {
            frame: place.at_frame(
                robot, samples.positions, signal.read_at(table, 6, n, self.time.name)
            )
            for frame, (signal, place) in self.external.items()
        }


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


def _optional(body: Mapping[str, Any], key: str) -> Signal | None:
    """Read a signal of the joints, if there is one."""
    return read_signal(body[key], f'log.{key}', key) if key in body else None


def _imu(said: object, name: str) -> tuple[Signal, Signal]:
    """Read the two signals of an IMU."""
    body = as_mapping(said, name)
    kinds = ('gyroscope', 'accelerometer')
    check_keys(body, kinds, name)
    for kind in kinds:
        if kind not in body:
            raise ConfigError(f"'{name}' does not say where its {kind} is: add {name}.{kind}")
    gyroscope, accelerometer = (read_signal(body[kind], f'{name}.{kind}', kind) for kind in kinds)
    return gyroscope, accelerometer


def _external(said: object, frame: str) -> tuple[Signal, WrenchPlace]:
    """Read a wrench of the environment and what it is expressed in."""
    name = f'log.external.{frame}'
    place, rest = WrenchPlace.split(said, frame, name)
    if isinstance(rest, Mapping):
        check_keys(rest, (*SETTINGS, *KEYS), name)
    return read_signal(rest, name, 'wrench'), place


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
