# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration session: turn the body until its still poses determine an offset [T chapter 5]."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.in_situ_offset import (
    GRAVITY,
    MAX_GRAVITY_ERROR,
    MAX_REST_TURNING,
    MOVING,
    NOT_FINITE,
    InSituOffset,
    in_situ_offset,
)
from inertial_estimation.calibration.raw_readings import MIN_JUDGED_SAMPLES
from inertial_estimation.errors import LogError, ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.findings import Level
from inertial_estimation.model.link_motions import link_poses
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import find_ft
from inertial_estimation.model.tree import Source, assign_owners
from inertial_estimation.sample import Sample

CONTACT, JOINTS, SETTLING, KEPT = 'contact', 'joints moved', 'settling', 'kept'
"""Uses of readings, besides those of `accelerometer`."""
POSE_NS, MIN_READINGS = 200_000_000, 6
"""Length of a pose [ns], and its readings: three in each half."""
SETTLE_NS = 300_000_000
"""After a motion, a contact or a gap in the readings, until the body is at rest."""
MAX_PAUSE_NS = 250_000_000
"""Between two readings of a pose."""
MAX_TILT, TILT_DEVIATIONS = 0.1, 4.0
"""Change of the accelerometer between the halves of a pose, beside noise [m/s^2]: 6 degrees/s."""
MAX_JOINT_CHANGE = 0.01
"""Of a joint beyond the sensor [rad or m]: a leg of 3 kg whose knee bends so makes 0.05 Nm."""
MIN_POSES = MIN_JUDGED_SAMPLES
"""That complete a session."""
MIN_DIRECTIONS, DIRECTION_CELLS = 12, 6.0
"""That complete a session; those whose rounded multiples agree are alike, within ten degrees."""
MIN_SPREAD = 0.1
"""Of gravity along each direction, over its size: tilting 40 degrees to each side."""
MIN_COSINE, SUGGESTED = 0.5 - 1e-9, 3
"""Of a suggested direction with the nearest that was reached, and the number of suggestions."""
STEPS: Array = np.array([step for step in product((1, 0, -1), repeat=3) if any(step)], dtype=float)
DIRECTIONS: Array = STEPS / np.linalg.norm(STEPS, axis=1, keepdims=True)
"""Axes, edges and corners of a cube, shape (26, 3)."""
NAMES = tuple(
    ' '.join(f'{"+" if sign > 0 else "-"}{axis}' for axis, sign in zip('xyz', step) if sign)
    for step in STEPS
)
"""Such as '+x -z'."""
PAUSES = {
    CONTACT: 'paused: a contact on the body',
    JOINTS: 'paused: a joint beyond the sensor has moved; restore it, or start again',
    NOT_FINITE: 'paused: a reading is missing',
}


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
        self._beyond = np.flatnonzero(robot.carried[self.sensor.child])
        between = np.flatnonzero(robot.carried[:, link] != robot.carried[:, self.sensor.child])
        self._between, self._distal = (
            np.array([j for k in links if (j := robot.links[k].joint) >= 0], dtype=np.intp)
            for links in (between, self._beyond)
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
    """Return the IMU that is named, or the nearest to a link; -1: none, but a fixed link."""
    usable = {imu.name: k for k, imu in enumerate(robot.imus) if imu.measures != 'gyroscope'}
    if name and name not in usable:
        raise NameNotFound('IMU with an accelerometer', name, usable, f"'imu' names '{name}'")
    if name:
        return usable[name]
    if usable:
        sources = [Source('', robot.imus[k].link, np.eye(4)) for k in usable.values()]
        nearest = assign_owners(robot.links, sources, rigid_sensors=True)[link]
        return [*usable.values()][nearest]
    if robot.fixed_frame:
        return -1
    raise ModelError('gravity is not known: imus has no accelerometer, and no link is fixed')


class Session:
    """
    Still poses of a body, and the offset they determine.

    matrix: approximate, (6, 6). axes: of the accelerations, those of 'sensor' or 'accelerometer'.
    """

    def __init__(self, matrix: Array | None = None, axes: str = 'sensor') -> None:
        self._matrix, self._axes = matrix, axes
        self.offset: InSituOffset | None = None
        self.lacking = 'no poses yet'
        """Text of what the poses lack; empty: nothing."""
        self.state = ''
        """Use of the last reading."""
        self.poses: list[Array] = []
        """Mean raw reading and acceleration of each, shape (9,), in the order of time."""
        self._block: list[Reading] = []
        self._last_ns = self._disturbed_ns = 0
        self._joints: Array | None = None

    def update(self, reading: Reading) -> None:
        """Take a reading, and see what the poses determine if it completes one."""
        stamp = reading.stamp_ns
        pause_ns, self._last_ns = stamp - self._last_ns, stamp
        why = self._disturbance(reading)
        if why or not 0 < pause_ns <= MAX_PAUSE_NS:
            self._disturbed_ns = stamp
            self._block.clear()
        if not why and stamp - self._disturbed_ns < SETTLE_NS:
            why = SETTLING
        self.state = why or KEPT
        if why:
            return
        self._block.append(reading)
        if stamp - self._block[0].stamp_ns >= POSE_NS and len(self._block) >= MIN_READINGS:
            self._add_pose()

    def instruction(self) -> str:
        """Return the next instruction for the person at the robot."""
        if self.state in PAUSES:
            return PAUSES[self.state]
        if self.offset is not None and not self.offset.kept[-1]:
            return 'the last pose does not fit the others: is the body touched?'
        suggested = ' or '.join(self.suggestions())
        turn = f'turn the body so that {suggested} of the {self._axes} points down'
        return f'{self.lacking}; {turn if suggested else "tilt it further"}, hold it still for 2 s'

    @property
    def samples(self) -> tuple[Array, Array]:
        """Raw readings (n, 6) and accelerations (n, 3) of the poses."""
        rows = np.array(self.poses).reshape(-1, 9)
        return rows[:, :6], rows[:, 6:]

    def suggestions(self) -> list[str]:
        """Return new directions to point down, near to reached ones and far from their mean."""
        down = -self.samples[1]
        if not len(down):
            return [NAMES[0]]
        reached = np.unique(np.argmax(down @ DIRECTIONS.T, axis=1))
        near = (DIRECTIONS @ DIRECTIONS[reached].T).max(axis=1) >= MIN_COSINE
        wanted = np.setdiff1d(np.flatnonzero(near), reached)
        nearest_to_mean = DIRECTIONS[wanted] @ down.mean(axis=0)
        return [NAMES[k] for k in wanted[np.argsort(nearest_to_mean, kind='stable')[:SUGGESTED]]]

    def _disturbance(self, reading: Reading) -> str:
        """Return the reason for which a reading is not used; empty: it is."""
        if self._joints is None:
            self._joints = reading.joints
        self._joints = np.where(np.isnan(self._joints), reading.joints, self._joints)
        if reading.touched:
            return CONTACT
        if (np.abs(reading.joints - self._joints) > MAX_JOINT_CHANGE).any():
            return JOINTS
        size = float(np.linalg.norm(reading.acceleration))
        if not (np.isfinite(reading.raw).all() and np.isfinite(size)):
            return NOT_FINITE
        turns = reading.turning is not None and np.linalg.norm(reading.turning) > MAX_REST_TURNING
        return MOVING if turns or abs(size - GRAVITY) > MAX_GRAVITY_ERROR * GRAVITY else ''

    def _add_pose(self) -> None:
        """Make a pose of the block unless it moved, and see what the poses determine."""
        block, self._block = self._block, []
        raw, a = (np.array([one[k] for one in block]) for k in (1, 2))
        half = len(block) // 2
        first, second = a[:half], a[-half:]
        noise = np.sqrt((first.var(axis=0) + second.var(axis=0)).sum() / half)
        tilt = np.linalg.norm(second.mean(axis=0) - first.mean(axis=0))
        if tilt > MAX_TILT + TILT_DEVIATIONS * noise:
            self.state, self._disturbed_ns = MOVING, self._last_ns
            return
        self.poses.append(np.append(raw.mean(axis=0), a.mean(axis=0)))
        try:
            self.offset = found = in_situ_offset(
                *self.samples, matrix=self._matrix, what='the body'
            )
        except LogError as error:
            self.offset, self.lacking = None, str(error)
            return
        kept = self.samples[1][found.kept]
        units = kept / np.linalg.norm(kept, axis=1, keepdims=True)
        directions = len(np.unique(np.round(DIRECTION_CELLS * units), axis=0))
        spread = found.gravity_spreads[2]
        complete = len(kept) >= MIN_POSES and directions >= MIN_DIRECTIONS and spread >= MIN_SPREAD
        self.lacking = '' if complete else (
            f'{len(kept)} of {MIN_POSES} poses, {directions} of {MIN_DIRECTIONS} directions, '
            f'gravity spreads by {spread:.0%} of {MIN_SPREAD:.0%}'
        )  # fmt: skip
        matrix = np.eye(6) if self._matrix is None else self._matrix
        errors = [one for one in found.findings(matrix, '') if one.level >= Level.ERROR]
        self.lacking = '; '.join(map(str, errors)) or self.lacking
