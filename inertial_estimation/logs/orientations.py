# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Orientations in the Imu messages of a bag, for checks; no estimate depends on them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.bag import MessageReader, resolve
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array

Stamps = NDArray[np.int64]

MAX_SQUARED_LENGTH_ERROR = 0.02
"""Of quaternions that are made unit ones."""
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])
"""Default of a message: an IMU that reports nothing else does not measure its orientation."""


@dataclass(frozen=True, eq=False)
class OrientationTrack:
    """Orientations of one IMU."""

    name: str
    stamps_ns: Stamps
    """Increasing, with the IMU's ``time_offset`` [ns]."""
    quaternions: Array
    """Its axes in its reference frame, shape (n, 4), x y z w."""
    deviation: float
    """Standard deviation that it states, all axes together [rad]; 0: none."""
    max_age_ns: int
    """Farthest from a reading that an orientation is known [ns]."""

    def at(self, stamps_ns: Stamps) -> Array:
        """Interpolate between the readings before and after each stamp, (n, 3, 3)."""
        before = np.searchsorted(self.stamps_ns, stamps_ns, 'right') - 1
        after = np.searchsorted(self.stamps_ns, stamps_ns, 'left')
        inside = (before >= 0) & (after < len(self.stamps_ns))
        rows, t = np.flatnonzero(inside), stamps_ns[inside]
        k, m = before[inside], after[inside]
        age, wait = t - self.stamps_ns[k], self.stamps_ns[m] - t
        near = np.maximum(age, wait) <= self.max_age_ns
        rows, k, m, age, wait = (x[near] for x in (rows, k, m, age, wait))
        found = np.full((len(stamps_ns), 3, 3), np.nan)
        if len(rows):
            first, second = (Rotation.from_quat(self.quaternions[x]) for x in (k, m))
            part = age / np.maximum(age + wait, 1)
            turned = Rotation.from_rotvec(part[:, None] * (first.inv() * second).as_rotvec())
            found[rows] = (first * turned).as_matrix()
        return found


class OrientationTap:
    """Collects the orientations in the messages of one IMU."""

    def __init__(self, name: str, settings: EstimatorSettings) -> None:
        given = settings.imu_of(name)
        self.topic, self._name = resolve(given.topic), name
        self._offset_ns, self._max_age_ns = (
            round(1e9 * seconds) for seconds in (given.time_offset, given.max_age)
        )
        self._read = MessageReader('orientation').read
        self._stamps, self._values = array('q'), array('d')
        self._variances = 0.0

    def note(self, data: bytes) -> None:
        """Take a message."""
        stamp_ns, quaternion, variances = self._read(data)
        repeated = bool(self._stamps) and stamp_ns == self._stamps[-1]
        # Also false for NaN.
        unit = abs(float(quaternion @ quaternion) - 1.0) < MAX_SQUARED_LENGTH_ERROR
        if unit and not repeated:
            self._stamps.append(stamp_ns)
            self._values.frombytes(quaternion.tobytes())
            self._variances += float(variances.sum())

    def track(self) -> OrientationTrack | None:
        """Return the orientations without those of clock jumps; None: the IMU measures none."""
        stamps = np.array(self._stamps, dtype=np.int64)
        values = np.array(self._values).reshape(-1, 4)
        if (values == IDENTITY).all():
            return None
        limits = np.iinfo(np.int64)
        before = np.maximum.accumulate(np.append(limits.min, stamps[:-1]))
        behind = np.minimum.accumulate(np.append(stamps[1:], limits.max)[::-1])[::-1]
        clear = (stamps > before) & (stamps < behind)
        mean = self._variances / len(stamps)
        return OrientationTrack(
            self._name,
            stamps[clear] + self._offset_ns,
            values[clear],
            float(np.sqrt(mean)) if 0.0 < mean < np.inf else 0.0,
            self._max_age_ns,
        )


def orientation_taps(robot: Robot, settings: EstimatorSettings) -> dict[str, OrientationTap]:
    """Return a tap for each IMU by its topic."""
    taps = (OrientationTap(imu.name, settings) for imu in robot.imus)
    return {tap.topic: tap for tap in taps}
