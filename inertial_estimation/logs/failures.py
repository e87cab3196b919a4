# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which joints and sensors failed in which samples of a recording, and in what way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.bodies import ACCELEROMETER, GYROSCOPE
from inertial_estimation.estimation.faults import Used, delivered, find_faults
from inertial_estimation.logs.recording import Recording
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch, SensorState

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint8]

NO_RATE = int(max(SensorState)) + 1
"""A joint whose position came and whose velocity did not."""
UNTOLD = NO_RATE + 1
"""Contacts that the sensors do not tell apart."""
STARTING = NO_RATE + 2
"""Streams that come and filters that fill at the start of a log."""
TOUCHED = NO_RATE + 3
"""Contacts that somebody felt."""
ONLY_ACCELERATION = NO_RATE + 4
"""An IMU that leaves the angular velocity out; the rest of it is used."""
ONLY_ANGULAR_VELOCITY = NO_RATE + 5
"""An IMU that leaves the acceleration out; the rest of it is used."""
STATES = {
    **{int(state): state.name.lower() for state in SensorState},
    NO_RATE: 'no_velocity',
    UNTOLD: 'undetermined',
    STARTING: 'starting',
    TOUCHED: 'touched',
    ONLY_ACCELERATION: 'only_acceleration',
    ONLY_ANGULAR_VELOCITY: 'only_angular_velocity',
}
"""Names of all codes."""
EARLY = (int(SensorState.ABSENT), int(SensorState.WARMING))
LONGEST_START = 2.0
"""Longer than this, and the filter's window besides, is no start but a fault [s]."""


class Failures(NamedTuple):
    """`SensorState` of each joint and sensor: `FRESH` unless it is missing where it is needed."""

    joints: Codes
    """Shape (n, n_joints); `ASSUMED` and `NO_RATE` too."""
    imus: Codes
    """Shape (n, n_imus)."""
    fts: Codes
    """Shape (n, n_fts)."""

    delivered: NDArray[np.intp]
    """What each IMU delivers, shape (n, n_imus), see `bodies.Bits`."""

    @property
    def patterns(self) -> Mask:
        """Flags that agree where a plan does: what IMUs lack, which FT sensors failed."""
        lacks = [self.delivered & kind == 0 for kind in (ACCELEROMETER, GYROSCOPE)]
        states = [codes != SensorState.FRESH for codes in (self.imus, self.fts)]
        pattern: Mask = np.concatenate([*lacks, *states], axis=1)
        return pattern

    def starting(self, times: Array, window: float) -> Mask:
        """
        Tell which samples belong to the start of the log.

        times (n,) [s]; window [s]; returns (n,).
        """
        codes = np.concatenate([self.joints, self.imus, self.fts], axis=1)
        early = np.isin(codes, EARLY)
        lasting = np.logical_and.reduce(early, axis=0)
        waiting = (early & ~lasting).any(axis=1)
        n = len(times) if waiting.all() else int(np.argmin(waiting))
        short = n > 0 and times[n - 1] - times[0] <= LONGEST_START + window
        start: Mask = (np.arange(len(times)) < n) & short
        return start


def find_failures(recording: Recording, robot: Robot, used: Used) -> Failures:
    """Find what failed, frozen readings in hindsight."""
    samples = recording.without_frozen(sensor.name for sensor in robot.ft_sensors)
    sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
    joints, imus, fts, _ = np.split(find_faults(samples, used), np.cumsum(sizes), axis=1)
    ft_codes = _codes(samples.ft_states, fts)
    changed = np.isnan(samples.ft_readings) & np.isfinite(recording.samples.ft_readings)
    ft_codes[np.logical_or.reduce(changed, axis=2)] = SensorState.FROZEN
    bits = delivered(samples, used.motion)
    imu_codes = _codes(samples.imu_states, imus)
    imu_codes[imus & (bits == ACCELEROMETER)] = ONLY_ACCELERATION
    imu_codes[imus & (bits == GYROSCOPE)] = ONLY_ANGULAR_VELOCITY
    return Failures(_joint_codes(samples, joints), imu_codes, ft_codes, bits)


def _joint_codes(samples: SampleBatch, failed: Mask) -> Codes:
    """Return how each joint came about: `FRESH`, `ASSUMED`, or why it is missing."""
    codes = _codes(samples.joint_states, failed)
    silent = failed & np.isfinite(samples.positions) & (codes == SensorState.INVALID)
    codes[silent & np.isnan(samples.velocities)] = NO_RATE
    if samples.joint_states is not None:
        codes[~failed & (samples.joint_states == SensorState.ASSUMED)] = SensorState.ASSUMED
    return codes


def _codes(states: Codes | None, failed: Mask) -> Codes:
    """Return why each failed; `FRESH` where it did not, or was not needed."""
    fresh, invalid = np.uint8(SensorState.FRESH), np.uint8(SensorState.INVALID)
    given = np.full(failed.shape, fresh) if states is None else states
    codes: Codes = np.where(failed, np.where(given == fresh, invalid, given), fresh)
    return codes
