# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings of an FT sensor with gravity in its axes, from samples of a robot.

Gravity comes from an IMU on the body beyond the sensor or, through the joints between, from any
other one, or from the fixed link [T 3.1]. Joints beyond the sensor must stay where they were when
the data set began. Contacts elsewhere do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.collection import CONTACT, JOINTS
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import find_ft
from inertial_estimation.model.sensors import Imu, LinkSensor
from inertial_estimation.model.spatial import hat
from inertial_estimation.model.tree import Source, assign_owners
from inertial_estimation.sample import Sample

FIXED_LINK = 'fixed link'
"""In place of an IMU."""
MAX_JOINT_CHANGE = 0.01
"""Of a joint beyond the sensor [rad or m]: a leg of 3 kg whose knee bends so makes 0.05 Nm."""


class Reading(NamedTuple):
    """The readings of one instant, as `Collection.update` takes them."""

    stamp_ns: int
    raw: Array
    acceleration: Array
    turning: Array | None = None
    disturbance: str = ''


class BodyReadings:
    """Makes readings of samples."""

    def __init__(self, robot: Robot, sensor: str, imu: str = '') -> None:
        self.sensor = find_ft(robot, sensor, f"'sensor' names '{sensor}'")
        self._ft = robot.ft_sensors.index(self.sensor)
        self._robot = robot
        self._imu = self._choose(imu)
        place: LinkSensor | Imu
        if self._imu >= 0:
            place = robot.imus[self._imu]
        else:
            place = LinkSensor(FIXED_LINK, *robot.frame(robot.fixed_frame))
        self.imu_name = place.name if self._imu >= 0 else ''
        self._places = place, LinkSensor('', self.sensor.child, self.sensor.child_H_sensor)
        beyond = set(subtrees(robot)[self.sensor.child])
        self._beyond = frozenset(beyond)
        moving = sorted(robot.links[k].joint for k in beyond if robot.links[k].joint >= 0)
        self._distal = np.array(moving, dtype=np.intp)
        self._held = np.full(len(moving), np.nan)
        self.gravity = self._describe(place.link)

    def begin(self) -> None:
        """Begin a data set: joints beyond the sensor may have moved since the last."""
        self._held = np.full(len(self._distal), np.nan)

    def reading(self, sample: Sample, contacts: Iterable[Contact] = ()) -> Reading:
        """Return the reading of a sample."""
        source_R_S = relative_rotation(self._robot, sample.positions, *self._places)
        acceleration, turning = -self._robot.gravity, None
        if self._imu >= 0:
            acceleration = sample.proper_accelerations[self._imu]
            turning = sample.angular_velocities[self._imu]
        q = sample.positions[self._distal]
        first = np.isnan(self._held) & np.isfinite(q)
        self._held[first] = q[first]
        reason = JOINTS if (np.abs(q - self._held) > MAX_JOINT_CHANGE).any() else ''
        if any(self._robot.frame(one.frame)[0] in self._beyond for one in contacts):
            reason = CONTACT
        return Reading(
            sample.stamp_ns,
            sample.ft_readings[self._ft],
            acceleration @ source_R_S,
            None if turning is None else turning @ source_R_S,
            reason,
        )

    def _choose(self, name: str) -> int:
        """Return the row of an IMU, -1 for the fixed link."""
        robot = self._robot
        usable = [k for k, imu in enumerate(robot.imus) if imu.measures != 'gyroscope']
        names = {robot.imus[k].name: k for k in usable} | {FIXED_LINK: -1}
        if not robot.fixed_frame:
            del names[FIXED_LINK]
        if name and name not in names:
            raise NameNotFound('IMU with an accelerometer', name, names, f"'imu' names '{name}'")
        if name:
            return names[name]
        if usable:
            sources = [Source('', robot.imus[k].link, np.eye(4)) for k in usable]
            owners = assign_owners(robot.links, sources, rigid_sensors=True)
            return usable[owners[self.sensor.child]]
        if robot.fixed_frame:
            return -1
        raise ModelError(
            'gravity is not known: name an IMU with an accelerometer in imus, or a fixed_link'
        )

    def _describe(self, link: int) -> str:
        """Describe the source of gravity on a link."""
        links = self._robot.links
        ways = [_way_up(self._robot, one) for one in (link, self.sensor.child)]
        joints = sum(links[k].joint >= 0 for k in ways[0] ^ ways[1])
        fixed = f"the fixed '{self._robot.fixed_frame}'"
        what = f"IMU '{self.imu_name}'" if self.imu_name else fixed
        return f'{what} through {joints} joint{"s" * (joints > 1)}' if joints else what


def _way_up(robot: Robot, link: int) -> set[int]:
    """Return a link and its ancestors."""
    way = set()
    while link >= 0:
        way.add(link)
        link = robot.links[link].parent
    return way


def relative_rotation(
    robot: Robot, positions: Array, source: LinkSensor | Imu, target: LinkSensor | Imu
) -> Array:
    """Return the axes of a sensor in those of another, (3, 3), by the joints between [T 3.1]."""
    q = np.where(np.abs(positions) < ABSURD, positions, np.nan)
    ways = [_way_up(robot, place.link) for place in (source, target)]
    top_R = []
    for way, place in zip(ways, (source, target), strict=True):
        R = np.eye(3)
        for k in sorted(way - (ways[0] & ways[1])):  # parents first
            link = robot.links[k]
            R = R @ link.P_H_L[:3, :3]
            K = hat(link.motion[3:])
            # A missing position of a prismatic joint does not matter.
            if link.joint >= 0 and K.any():
                sine, cosine = np.sin(q[link.joint]), np.cos(q[link.joint])
                R = R @ (np.eye(3) + sine * K + (1.0 - cosine) * K @ K)
        top_R.append(R @ place.L_H_S[:3, :3])
    return np.asarray(top_R[0].T @ top_R[1])
