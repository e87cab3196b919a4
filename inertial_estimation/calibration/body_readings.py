# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings of an FT sensor with gravity in its axes, from samples of a robot.

Gravity comes from an IMU on the body beyond the sensor or, through the joints between, from any
other one, or from the fixed link [T 3.1].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.support_loads import link_poses
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import find_ft
from inertial_estimation.model.tree import Source, assign_owners
from inertial_estimation.sample import Sample

FIXED_LINK = 'fixed link'
"""In place of an IMU."""


class Reading(NamedTuple):
    """An FT sensor and the motion of the body beyond it at one time."""

    stamp_ns: int
    raw: Array
    """Shape (6,), in the raw unit."""
    acceleration: Array
    """Of an accelerometer on the body, shape (3,) [m/s^2]."""
    turning: Array | None = None
    """Of a gyroscope on it, shape (3,) [rad/s]."""
    joints: Array = np.empty(0)
    """Positions beyond the sensor [rad or m]; NaN: not known."""
    touched: bool = False


class BodyReadings:
    """Readings of one sensor; contacts that are not beyond it do not matter."""

    def __init__(self, robot: Robot, sensor: str, imu: str = '') -> None:
        self.sensor = find_ft(robot, sensor, f"'sensor' names '{sensor}'")
        self._robot, self._ft = robot, robot.ft_sensors.index(self.sensor)
        self._imu = _choose_imu(robot, self.sensor.child, imu)
        if self._imu < 0:
            link, L_H_S = robot.frame(robot.fixed_frame)
            self.imu_name, self.gravity = '', f"the fixed '{robot.fixed_frame}'"
        else:
            source = robot.imus[self._imu]
            link, L_H_S = source.link, source.L_H_S
            self.imu_name, self.gravity = source.name, f"IMU '{source.name}'"
        self._places = (link, L_H_S), (self.sensor.child, self.sensor.child_H_sensor)
        beyond = subtrees(robot)
        self._beyond = beyond[self.sensor.child]
        between = [
            k for k, one in enumerate(beyond) if (link in one) != (self.sensor.child in one)
        ]
        self._between, self._distal = (
            np.array([j for k in links if (j := robot.links[k].joint) >= 0], dtype=np.intp)
            for links in (between, sorted(self._beyond))
        )

    def reading(self, sample: Sample, contacts: Iterable[Contact] = ()) -> Reading:
        """Return the reading of a sample; without a joint in between gravity is NaN."""
        known = np.abs(sample.positions) < ABSURD
        source_R_S = np.full((3, 3), np.nan)
        if known[self._between].all():
            poses = link_poses(self._robot, np.where(known, sample.positions, 0.0)[None])[:, 0]
            root_R = [(poses[link] @ L_H)[:3, :3] for link, L_H in self._places]
            source_R_S = root_R[0].T @ root_R[1]
        acceleration, turning = -self._robot.gravity, None
        if self._imu >= 0:
            acceleration = sample.proper_accelerations[self._imu]
            turning = sample.angular_velocities[self._imu] @ source_R_S
        return Reading(
            sample.stamp_ns, sample.ft_readings[self._ft], acceleration @ source_R_S, turning,
            sample.positions[self._distal],
            any(self._robot.frame(one.frame)[0] in self._beyond for one in contacts),
        )  # fmt: skip


def _choose_imu(robot: Robot, link: int, name: str) -> int:
    """Return the IMU that is named, or the nearest to a link; -1: the fixed link."""
    usable = [k for k, imu in enumerate(robot.imus) if imu.measures != 'gyroscope']
    names = {robot.imus[k].name: k for k in usable}
    if robot.fixed_frame:
        names[FIXED_LINK] = -1
    if name and name not in names:
        raise NameNotFound('IMU with an accelerometer', name, names, f"'imu' names '{name}'")
    if not names:
        raise ModelError(
            'gravity is not known: name an IMU with an accelerometer in imus, or a fixed_link'
        )
    if name or not usable:
        return names[name or FIXED_LINK]
    sources = [Source('', robot.imus[k].link, np.eye(4)) for k in usable]
    return usable[assign_owners(robot.links, sources, rigid_sensors=True)[link]]
