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
from typing import Annotated

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.columns import Signal, Table, signal
from inertial_estimation.logs.known_wrenches import WrenchColumns
from inertial_estimation.logs.setting_values import Names
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

CURRENTS = ('A', 'mA')


@dataclass(frozen=True, eq=False)
class ImuColumns:
    """Signals of an IMU."""

    accelerometer: Annotated[Signal, signal('accelerometer')]
    gyroscope: Annotated[Signal, signal('gyroscope')] | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals of a log."""

    time: Annotated[Signal, signal('time')]
    joints: Names = ()
    positions: Annotated[Signal, signal('positions')] | None = None
    velocities: Annotated[Signal, signal('velocities')] | None = None
    efforts: Annotated[Signal, signal('efforts')] | None = None
    ft_sensors: Mapping[str, Annotated[Signal, signal('wrench')]] = field(default_factory=dict)
    temperatures: Mapping[str, Annotated[Signal, signal('temperature')]] = field(
        default_factory=dict
    )
    imus: Mapping[str, ImuColumns] = field(default_factory=dict)
    external: Mapping[str, Annotated[WrenchColumns, signal('wrench', WrenchColumns)]] = field(
        default_factory=dict
    )

    def require_torques(self, joints: Sequence[str]) -> None:
        """Raise for currents without scale."""
        efforts = self.efforts
        if efforts is None or efforts.scale is not None or efforts.divided_by is not None:
            return
        for joint, unit in zip(self.joints, efforts.units_of(len(self.joints)), strict=False):
            if joint in joints and unit in CURRENTS:
                raise ConfigError(
                    f"'{efforts.name}.unit' of joint '{joint}' is '{unit}', a current without "
                    f"'{efforts.name}.scale' [N m/A], and '{joint}' is not in 'rows.gains'"
                )

    def of_table(self, table: Table, robot: Robot) -> SampleBatch:
        """Return the samples of a table."""
        if self.positions is None and robot.joint_names:
            raise ConfigError("'log' has no 'positions'")
        seconds = self.time.read(table, 1)[:, 0]
        if not np.isfinite(seconds).all():
            raise LogError(f'{table.path}: {self.time.name} holds NaN')
        n = len(seconds)

        def rows(kind: str, names: Iterable[str], known: Sequence[str]) -> list[int]:
            for name in names:
                if name not in known:
                    raise NameNotFound(kind, name, known)
            return [known.index(name) for name in names]

        def of_joints(one: Signal | None) -> Array:
            values = np.full((n, len(robot.joint_names)), np.nan)
            if one is not None:
                values[:, joints] = one.read(table, len(joints), n, self.time.name)
            return values

        def of_sensors(
            kind: str, known: Sequence[str], size: int, signals: Mapping[str, Signal | None]
        ) -> Array:
            values = np.full((n, len(known), size), np.nan)
            for k, one in zip(rows(kind, signals, known), signals.values(), strict=True):
                if one is not None:
                    values[:, k] = one.read(table, size, n, self.time.name)
            return values

        joints = rows('joint', self.joints, robot.joint_names)
        fts, imus = ([one.name for one in some] for some in (robot.ft_sensors, robot.imus))
        rates, accelerations = (
            of_sensors('IMU', imus, 3, {name: getattr(one, k) for name, one in self.imus.items()})
            for k in ('gyroscope', 'accelerometer')
        )
        temperatures = None
        if self.temperatures:
            temperatures = of_sensors('FT sensor', fts, 1, self.temperatures)[..., 0]
        return SampleBatch(
            stamp_ns=np.round(seconds * 1e9).astype(np.int64),
            positions=of_joints(self.positions),
            velocities=of_joints(self.velocities),
            accelerations=of_joints(None),
            angular_velocities=rates,
            proper_accelerations=accelerations,
            angular_accelerations=np.full_like(rates, np.nan),
            ft_readings=of_sensors('FT sensor', fts, 6, self.ft_sensors),
            efforts=of_joints(self.efforts),
            ft_temperatures=temperatures,
        )
