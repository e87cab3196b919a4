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
Mask = NDArray[np.bool_]

UNIT = 0.01
"""Quaternions whose length is closer to one are taken and made unit ones."""
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])
"""What a new message holds: if no message ever holds anything else nobody filled it in."""


@dataclass(frozen=True, eq=False)
class OrientationTrack:
    """What one IMU reports."""

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
        """
        Interpolate between the readings before and after each instant.

        stamps_ns (n,) [ns]; returns (n, 3, 3).
        """
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


@dataclass(frozen=True, eq=False)
class Orientations:
    """What IMUs report; those that report nothing are left out."""

    tracks: tuple[OrientationTrack, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the IMUs."""
        return tuple(track.name for track in self.tracks)

    def at(self, stamps_ns: Stamps) -> Array:
        """
        Return the orientations at some instants.

        stamps_ns (n,) [ns]; returns (n, n_imus, 3, 3).
        """
        return np.stack([track.at(stamps_ns) for track in self.tracks], axis=1)


class OrientationTaps:
    """Notes the orientations in the Imu messages of a bag."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._taps = [_Tap(imu.name, settings) for imu in robot.imus]
        self._by_topic = {tap.topic: tap for tap in self._taps}

    def note(self, topic: str, data: bytes) -> None:
        """Take a message, of any topic."""
        if topic in self._by_topic:
            self._by_topic[topic].note(data)

    def found(self) -> Orientations | None:
        """Return what was noted."""
        tracks = tuple(tap.track() for tap in self._taps if tap.speaks)
        return Orientations(tracks) if tracks else None


class _Tap:
    """Notes the orientations of one topic."""

    def __init__(self, name: str, settings: EstimatorSettings) -> None:
        given = settings.imu_of(name)
        self.topic = resolve(given.topic)
        self.speaks = False
        """Some message holds an orientation, and not all of them the same identity."""
        self._name = name
        self._offset_ns = round(1e9 * given.time_offset)
        self._max_age_ns = round(1e9 * given.max_age)
        self._read = MessageReader('orientation').read
        self._stamps, self._values = array('q'), array('d')
        self._variances = 0.0

    def note(self, data: bytes) -> None:
        """Take a message."""
        stamp_ns, quaternion, variances = self._read(data)
        repeated = bool(self._stamps) and stamp_ns == self._stamps[-1]
        # Also false for NaN.
        if not abs(float(quaternion @ quaternion) - 1.0) < 2 * UNIT or repeated:
            return
        self.speaks = self.speaks or not np.array_equal(quaternion, IDENTITY)
        self._stamps.append(stamp_ns)
        self._values.frombytes(quaternion.tobytes())
        self._variances += float(variances.sum())

    def track(self) -> OrientationTrack:
        """Return what was noted."""
        stamps = np.array(self._stamps, dtype=np.int64)
        clear = _clear(stamps)
        mean = self._variances / len(stamps)
        return OrientationTrack(
            self._name,
            stamps[clear] + self._offset_ns,
            np.array(self._values).reshape(-1, 4)[clear],
            float(np.sqrt(mean)) if 0.0 < mean < np.inf else 0.0,
            self._max_age_ns,
        )


def _clear(stamps: Stamps) -> Mask:
    """Tell which stamps are later than all before and earlier than all behind: no clock jumps."""
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    before = np.maximum.accumulate(np.concatenate([[least], stamps[:-1]]))
    behind = np.minimum.accumulate(np.concatenate([stamps[1:], [most]])[::-1])[::-1]
    return np.asarray((stamps > before) & (stamps < behind))
