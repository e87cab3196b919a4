# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The axes of one sensor in those of another, through the joints between them [T 3.6].

The other one is the fixed link, or else the nearest of the other sensors. Only the joints between
the two matter: a position that is missing elsewhere costs nothing, nor does a prismatic one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.motion_sources import Source, assign_owners
from inertial_estimation.model.named_sensors import find_inertial
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu, LinkSensor, check_unique
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


FIXED = -1
"""In place of the row of a sensor: the fixed link."""
NOBODY = -2
"""Likewise: there is none."""


class RelativeRotations:
    """Carries directions from one sensor to the next; sources (n_sensors,)."""

    def __init__(
        self, robot: Robot, sensors: Iterable[LinkSensor | Imu | str] | None = None
    ) -> None:
        given = robot.imus if sensors is None else tuple(sensors)
        found = [find_inertial(robot, sensor, 'imus') for sensor in given]
        self.names = tuple(sensor.name for sensor in found)
        check_unique('sensors', self.names)
        self._robot = robot
        self._places = [(sensor.link, sensor.L_H_S) for sensor in found]
        self.sources = _sources(robot, self._places)
        if robot.fixed_frame:
            self._places.append(robot.frame(robot.fixed_frame))

    def of(self, positions: Array) -> Array:
        """
        Return the axes of each sensor in those of its source.

        positions (n, n_joints) [rad or m]; returns (n, n_sensors, 3, 3).
        """
        q = numbers('positions', positions, finite=False)
        n_joints = len(self._robot.joint_names)
        if q.ndim != 2 or q.shape[1] != n_joints:
            why = f"robot '{self._robot.name}' has {n_joints} joints"
            raise ShapeError('positions', ('n', n_joints), q.shape, why)
        q = np.where(np.abs(q) < ABSURD, q, np.nan)
        found = np.full((len(q), len(self.names), 3, 3), np.nan)
        for k, source in enumerate(self.sources):
            if source != NOBODY:
                found[:, k] = self._between(q, self._places[source], self._places[k])
        return found

    def _between(self, q: Array, source: tuple[int, Array], target: tuple[int, Array]) -> Array:
        """Return the axes of a place in those of another, shape (n, 3, 3)."""
        ways = [_way_up(self._robot, link) for link, _ in (source, target)]
        common = set(ways[0]) & set(ways[1])
        top_R_source, top_R_target = (
            self._down([link for link in reversed(way) if link not in common], q) @ L_H_S[:3, :3]
            for way, (_, L_H_S) in zip(ways, (source, target), strict=True)
        )
        return np.asarray(np.swapaxes(top_R_source, -1, -2) @ top_R_target)

    def _down(self, way: list[int], q: Array) -> Array:
        """Return the axes of the last link of a way in those of the first one's parent."""
        rotation = np.tile(np.eye(3), (len(q), 1, 1))
        for k in way:
            link = self._robot.links[k]
            rotation = rotation @ link.P_H_L[:3, :3]
            axis = link.motion[3:]
            if link.joint >= 0 and axis.any():
                rotation = rotation @ _turned(axis, q[:, link.joint])
        return rotation


def _sources(robot: Robot, places: list[tuple[int, Array]]) -> Indices:
    """Return for each sensor what it is seen from."""
    if robot.fixed_frame:
        return np.full(len(places), FIXED, dtype=np.intp)
    found = np.full(len(places), NOBODY, dtype=np.intp)
    for k, (link, _) in enumerate(places):
        others = [m for m in range(len(places)) if m != k]
        if others:
            near = [Source('', places[m][0], np.eye(4)) for m in others]
            found[k] = others[assign_owners(robot.links, near, rigid_sensors=True)[link]]
    return found


def _way_up(robot: Robot, link: int) -> list[int]:
    """Return a link and those above it, up to the root."""
    way = []
    while link >= 0:
        way.append(link)
        link = robot.links[link].parent
    return way


def _turned(axis: Array, angles: Array) -> Array:
    """Return rotations about an axis, shape (n, 3, 3)."""
    K, angles = hat(axis), angles[:, None, None]
    return np.asarray(np.eye(3) + np.sin(angles) * K + (1.0 - np.cos(angles)) * K @ K)
