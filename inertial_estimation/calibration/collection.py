# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of an FT sensor, and still poses of them while the body beyond is turned by hand."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.accelerometer import (
    GRAVITY,
    MAX_GRAVITY_ERROR,
    MAX_REST_TURNING,
    MOVING,
    NOT_FINITE,
    TOUCHED,
)
from inertial_estimation.calibration.in_situ_offset import InSituOffset, in_situ_offset
from inertial_estimation.calibration.raw_slopes import MIN_JUDGED_SAMPLES
from inertial_estimation.errors import LogError, ModelError, NameNotFound
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.estimation.forest import build_geometry
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
MIN_POSES, MAX_ALIKE = MIN_JUDGED_SAMPLES, 10
"""Poses of a complete data set, and of one direction."""
MIN_DIRECTIONS, DIRECTION_CELLS = 12, 6.0
"""Of a complete data set; those whose rounded multiples agree are alike, within ten degrees."""
MIN_SPREAD = 0.1
"""Of gravity along each direction, over its size: tilting 40 degrees to each side."""
MIN_COSINE = np.cos(np.deg2rad(60.0))
"""Of a suggested direction with the nearest that was reached."""
SUGGESTED, SUGGESTED_WEIGHT = 3, 0.1
FIXED_LINK = 'fixed link'
"""In place of an IMU."""

STEPS: Array = np.array([step for step in product((1, 0, -1), repeat=3) if any(step)], dtype=float)
DIRECTIONS: Array = STEPS / np.linalg.norm(STEPS, axis=1, keepdims=True)
"""Axes, edges and corners of a cube, shape (26, 3)."""
NAMES = tuple(
    ' '.join(f'{"+" if sign > 0 else "-"}{axis}' for axis, sign in zip('xyz', step) if sign)
    for step in STEPS
)
"""Such as '+x -z'."""


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
    """
    Readings of an FT sensor with gravity in its axes, from samples of a robot.

    Gravity comes from an IMU on the body beyond the sensor or, through the joints between, from
    any other one, or from the fixed link [T 3.1]. Contacts elsewhere do not matter.
    """

    def __init__(self, robot: Robot, sensor: str, imu: str = '') -> None:
        self.sensor = find_ft(robot, sensor, f"'sensor' names '{sensor}'")
        self._robot, self._ft = robot, robot.ft_sensors.index(self.sensor)
        self._imu = self._choose(imu)
        if self._imu < 0:
            link, L_H_S = robot.frame(robot.fixed_frame)
            self.imu_name, self.gravity = '', f"the fixed '{robot.fixed_frame}'"
        else:
            link, L_H_S = robot.imus[self._imu].link, robot.imus[self._imu].L_H_S
            self.imu_name = robot.imus[self._imu].name
            self.gravity = f"IMU '{self.imu_name}'"
        self._places = (link, L_H_S), (self.sensor.child, self.sensor.child_H_sensor)
        self._geometry = build_geometry(robot)
        self._data = self._geometry.model.createData()
        links, beyond = robot.links, subtrees(robot)
        self._beyond = frozenset(beyond[self.sensor.child])
        between = [
            k for k, one in enumerate(beyond) if (link in one) != (self.sensor.child in one)
        ]
        self._between, self._distal = (
            np.array([links[k].joint for k in found if links[k].joint >= 0], dtype=np.intp)
            for found in (between, self._beyond)
        )

    def reading(self, sample: Sample, contacts: Iterable[Contact] = ()) -> Reading:
        """Return the reading of a sample."""
        source_R_S = self._rotation(sample.positions)
        acceleration, turning = -self._robot.gravity, None
        if self._imu >= 0:
            acceleration = sample.proper_accelerations[self._imu]
            turning = sample.angular_velocities[self._imu] @ source_R_S
        return Reading(
            sample.stamp_ns, sample.ft_readings[self._ft], acceleration @ source_R_S, turning,
            sample.positions[self._distal],
            any(self._robot.frame(one.frame)[0] in self._beyond for one in contacts),
        )  # fmt: skip

    def _rotation(self, positions: Array) -> Array:
        """Return the axes of the FT sensor in those of the IMU, (3, 3); NaN: not known."""
        known = np.abs(positions) < ABSURD
        if not known[self._between].all():
            return np.full((3, 3), np.nan)
        geometry, data = self._geometry, self._data
        pin.forwardKinematics(geometry.model, data, np.where(known, positions, 0.0))
        root_R = [
            data.oMi[int(geometry.support[link])].rotation
            @ (geometry.support_H_L[link] @ L_H_S)[:3, :3]
            for link, L_H_S in self._places
        ]
        return np.asarray(root_R[0].T @ root_R[1])

    def _choose(self, name: str) -> int:
        """Return the row of an IMU, by default of the nearest; -1 for the fixed link."""
        robot = self._robot
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
        owners = assign_owners(robot.links, sources, rigid_sensors=True)
        return usable[owners[self.sensor.child]]


class Pose(NamedTuple):
    """Means of the readings of a still pose."""

    stamp_ns: int
    raw: Array
    acceleration: Array
    n_readings: int


class Collection:
    """Still poses of a data set, and the offset they determine; matrix (6, 6): approximate."""

    def __init__(self, name: str = '', matrix: Array | None = None) -> None:
        self.name, self._matrix = name, matrix
        self.offset: InSituOffset | None = None
        self.lacking = 'no poses yet'
        """What is missing for a complete data set; empty: nothing."""
        self.state = ''
        """Use of the last reading."""
        self.left_out: Counter[str] = Counter()
        """Readings by reason."""
        self._poses: dict[tuple[int, ...], deque[Pose]] = {}
        self._block: list[Reading] = []
        self._last_ns = self._disturbed_ns = 0
        self._joints: Array | None = None

    def update(self, reading: Reading) -> bool:
        """Take a reading; return whether it completes a pose."""
        pause_ns = reading.stamp_ns - self._last_ns
        self._last_ns = reading.stamp_ns
        why = self._disturbance(reading)
        if why or not 0 < pause_ns <= MAX_PAUSE_NS:
            self._disturbed_ns = reading.stamp_ns
            self._block.clear()
        if not why and reading.stamp_ns - self._disturbed_ns < SETTLE_NS:
            why = SETTLING
        self.state = why or KEPT
        if why:
            self.left_out[why] += 1
            return False
        self._block.append(reading)
        span_ns = reading.stamp_ns - self._block[0].stamp_ns
        return span_ns >= POSE_NS and len(self._block) >= MIN_READINGS and self._add_pose()

    @property
    def poses(self) -> list[Pose]:
        """Poses in the order of time; of each direction the newest."""
        found = [one for alike in self._poses.values() for one in alike]
        return sorted(found, key=lambda one: one.stamp_ns)

    @property
    def samples(self) -> tuple[Array, Array]:
        """Raw readings (n, 6) and accelerations (n, 3) of the poses."""
        raw = np.array([one.raw for one in self.poses])
        return raw.reshape(-1, 6), np.array([one.acceleration for one in self.poses])

    def counts(self) -> dict[str, int]:
        """Return the numbers of readings in poses that are used, and of others by reason."""
        counts: Counter[str] = Counter({KEPT: 0}) + self.left_out
        fits = [True] * len(self.poses) if self.offset is None else self.offset.kept
        for pose, fit in zip(self.poses, fits, strict=True):
            counts[KEPT if fit else TOUCHED] += pose.n_readings
        return dict(counts)

    def suggestions(self) -> list[str]:
        """Return near directions to point down that raise the smallest spread most."""
        a = self.samples[1]
        if not len(a):
            return [NAMES[0]]
        down = -a / np.linalg.norm(a, axis=1)[:, None]
        reached = np.isin(np.arange(len(NAMES)), np.argmax(down @ DIRECTIONS.T, axis=1))
        mean = down.mean(axis=0)
        off = DIRECTIONS - mean
        square = (down - mean).T @ (down - mean) / len(down)
        share = SUGGESTED_WEIGHT / (1.0 + SUGGESTED_WEIGHT)
        gains = np.linalg.eigvalsh(square + share * off[:, :, None] * off[:, None])[:, 0]
        near = (DIRECTIONS @ DIRECTIONS[reached].T).max(axis=1) >= MIN_COSINE
        wanted = near & ~reached
        best = np.argsort(np.where(wanted, -gains, np.inf), kind='stable')[:SUGGESTED]
        return [NAMES[k] for k in best if wanted[k]]

    def _disturbance(self, reading: Reading) -> str:
        """Return why a reading cannot be used; empty: it can."""
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

    def _add_pose(self) -> bool:
        """Make a pose of the block unless it moved, and see what the poses determine."""
        block, self._block = self._block, []
        raw, a = (np.array([one[k] for one in block]) for k in (1, 2))
        half = len(block) // 2
        first, second = a[:half], a[-half:]
        noise = np.sqrt((first.var(axis=0) + second.var(axis=0)).sum() / half)
        tilt = np.linalg.norm(second.mean(axis=0) - first.mean(axis=0))
        if tilt > MAX_TILT + TILT_DEVIATIONS * noise:
            self.state, self._disturbed_ns = MOVING, self._last_ns
            self.left_out[MOVING] += len(block)
            return False
        pose = Pose(self._last_ns, raw.mean(axis=0), a.mean(axis=0), len(block))
        self._poses.setdefault(_cell(pose.acceleration), deque(maxlen=MAX_ALIKE)).append(pose)
        try:
            self.offset = in_situ_offset(
                *self.samples, matrix=self._matrix, what=f"data set '{self.name}'"
            )
        except LogError as error:
            self.offset, self.lacking = None, str(error)
            return True
        kept = self.samples[1][self.offset.kept]
        directions, spread = len(set(map(_cell, kept))), self.offset.orientations.spreads[2]
        is_complete = (
            len(kept) >= MIN_POSES and directions >= MIN_DIRECTIONS and spread >= MIN_SPREAD
        )
        self.lacking = '' if is_complete else (
            f'{len(kept)} of {MIN_POSES} poses, {directions} of {MIN_DIRECTIONS} directions, '
            f'gravity spreads by {spread:.0%} of {MIN_SPREAD:.0%}'
        )  # fmt: skip
        return True


def _cell(acceleration: Array) -> tuple[int, ...]:
    """Return a key that like directions share; acceleration (3,)."""
    unit = acceleration / np.linalg.norm(acceleration)
    return tuple(np.round(DIRECTION_CELLS * unit).astype(int).tolist())
