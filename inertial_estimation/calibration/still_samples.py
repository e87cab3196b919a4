# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples in which the robot stands still and nothing but the supports touches it, by pose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.calibration.residual_statistics import TOUCH_REACH, near
from inertial_estimation.calibration.support_loads import SupportLoads
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import PERIOD_NS, WINDOW_NS, MomentumCheck
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

MAX_JOINT_VELOCITY = 0.1
"""Of each joint [rad/s or m/s]. A limb of 1 m then pulls by 0.1 % of its weight."""
MAX_ANGULAR_VELOCITY = 0.1
"""Of each gyroscope [rad/s]."""
MAX_ACCELERATION = 0.3
"""Difference of the length of a proper acceleration from gravity [m/s^2]."""
SPREAD_WINDOW_NS = 200_000_000
"""Of the spread of FT readings: longer than a period of most vibrations."""
MAX_SPREAD = np.array([0.03, 0.01])
"""
Of each force [robot weights] and moment [weights times m] of an FT sensor, standard deviation. A
robot that balances on a foot sways by 0.02.
"""
MAX_MOMENTUM = 0.05
"""Mean force by which momentum and accelerations differ in a window [robot weights]."""
SETTLE_NS = 300_000_000
"""Time before and after a motion that counts as part of it [ns]."""
MIN_LIMITS = np.array([1.0, 0.1])
"""Smallest limits of spreads and touches, on light robots [N, Nm]."""
MIN_TOUCH = np.array([0.01, 0.003])
"""Smallest touch over the robot's weight: force, moment [m]."""
TOUCH_DEVIATIONS, MEDIAN_TO_DEVIATION = 6.0, 1.4826
POSE_TOLERANCE = 0.05
"""
Of joints [rad or m] and of the direction of gravity in sensors: gravity on a kilogram then changes
by 0.5 N.
"""
MAX_POSES = 200


def find_still(
    robot: Robot,
    samples: SampleBatch,
    loads: SupportLoads,
    wrenches: Array,
    differences: Array,
    felt: Mask,
    moving: bool,
) -> tuple[Mask, dict[str, int], list[str], Indices]:
    """
    Return still samples (n,), others by reason, signs of motion, most frequent first, and poses.

    Motion is in the model, but its measurement is filtered, late and noisy; a mean over still
    samples is free of that. Joints, IMUs, FT sensors and the momentum each show motions that
    others miss. wrenches (n, n_fts, 6): calibrated readings [N, Nm]; differences (n, n_fts, 6):
    readings minus prediction, whatever the sharing of the load, NaN where no offset is wanted or
    known [N, Nm]; felt (n,): touches that are known; moving: accept any motion, and look for no
    touches; poses (n,), -1: none.
    """
    n, stamps = len(samples), samples.stamp_ns
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    contradicted = _contradictions(robot, samples, loads.free, MAX_MOMENTUM * weight) & ~felt
    signals = () if moving else _signals(robot, samples, wrenches, weight)
    over = {
        f'{name} {values[values > limit].max():.3g} (limit {limit:.3g})': values > limit
        for name, values, limit in signals
        if (values > limit).any()
    }
    motion = near(np.any([np.zeros(n, dtype=bool), *over.values()], axis=0), stamps, SETTLE_NS)
    known: Mask = np.logical_and.reduce(np.isfinite(differences), axis=2)
    left = felt | motion | contradicted
    held = known.any(axis=1) & ~left & (not moving)
    poses = _find_poses(samples.positions, loads.pulls, held)
    touched = near(_touches(differences, known, poses, weight), stamps, int(1e9 * TOUCH_REACH))
    left_out = {
        'touched': int((felt | (touched & ~left)).sum()),
        'moving': int((motion & ~felt).sum()),
        'momentum': int((contradicted & ~motion).sum()),
    }
    signs = sorted(over, key=lambda sign: -over[sign].sum())
    return ~(left | touched), left_out, signs, poses


def _signals(
    robot: Robot, samples: SampleBatch, wrenches: Array, weight: float
) -> Iterator[tuple[str, Array, float]]:
    """Yield what may show a motion: name, values (n,), limit; weight [N]."""
    for j, name in enumerate(robot.joint_names):
        yield f"joint '{name}'", np.abs(samples.velocities[:, j]), MAX_JOINT_VELOCITY
    for i, imu in enumerate(robot.imus):
        rates = np.linalg.norm(samples.angular_velocities[:, i], axis=1)
        yield f"turning of IMU '{imu.name}'", rates, MAX_ANGULAR_VELOCITY
        lengths = np.linalg.norm(samples.proper_accelerations[:, i], axis=1)
        change = np.abs(lengths - np.linalg.norm(robot.gravity))
        yield f"acceleration of IMU '{imu.name}'", change, MAX_ACCELERATION
    spreads = _spreads(wrenches, samples.stamp_ns).reshape(len(samples), -1, 2, 3).max(axis=3)
    limits = np.maximum(MAX_SPREAD * weight, MIN_LIMITS).tolist()
    for k, sensor in enumerate(robot.ft_sensors):
        for part, kind in enumerate(('force', 'moment')):
            name = f"{kind} spread of FT sensor '{sensor.name}'"
            yield name, spreads[:, k, part], limits[part]


def _spreads(wrenches: Array, stamp_ns: Stamps) -> Array:
    """Return standard deviations of (n, n_fts, 6) in a window around each sample; NaN: missing."""
    known: Mask = np.logical_and.reduce(np.isfinite(wrenches), axis=2, keepdims=True)
    total = np.where(known, wrenches, 0.0).sum(axis=0)
    middle = total / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, wrenches - middle, 0.0)
    first = np.searchsorted(stamp_ns, stamp_ns - SPREAD_WINDOW_NS // 2, 'left')
    last = np.searchsorted(stamp_ns, stamp_ns + SPREAD_WINDOW_NS // 2, 'right')

    def sums(values: Array | Mask) -> Array:
        running = np.concatenate([np.zeros_like(values[:1], dtype=float), values.cumsum(axis=0)])
        return np.asarray(running[last] - running[first])

    count = np.maximum(sums(known), 1.0)
    variance = sums(centred**2) / count - (sums(centred) / count) ** 2
    return np.where(known, np.sqrt(np.maximum(variance, 0.0)), np.nan)


def _contradictions(
    robot: Robot, samples: SampleBatch, estimate: WrenchEstimate, limit: float
) -> Mask:
    """Return windows in which momentum and accelerations differ, (n,); limit [N]."""
    check, stamps = MomentumCheck(robot), samples.stamp_ns
    found, next_ns = np.zeros(len(samples), dtype=bool), int(stamps[0])
    for k, stamp in enumerate(stamps.tolist()):
        if next_ns - PERIOD_NS <= stamp < next_ns:
            continue
        next_ns = stamp + PERIOD_NS
        closed = check.add(samples[k], estimate.at(k))
        if closed is not None and closed[0] > limit:
            begin = int(np.searchsorted(stamps, stamp - WINDOW_NS - PERIOD_NS))
            found[begin : k + 1] = True
    return found


def _find_poses(positions: Array, pulls: Array, used: Mask) -> Indices:
    """
    Group samples by pose, -1: none.

    positions (n, n_joints) [rad or m]; pulls (n, n_fts, 3); used (n,); returns (n,).
    """
    n = len(positions)
    lengths = np.linalg.norm(pulls, axis=2, keepdims=True)
    directions = pulls / np.where(lengths > 0.0, lengths, 1.0)
    features = np.nan_to_num(np.concatenate([positions, directions.reshape(n, -1)], axis=1))
    labels = np.full(n, -1, dtype=np.intp)
    left = np.flatnonzero(used)
    for pose in range(MAX_POSES):
        if not len(left):
            break
        alike = (np.abs(features[left] - features[left[0]]) < POSE_TOLERANCE).all(axis=1)
        labels[left[alike]] = pose
        left = left[~alike]
    return labels


def _touches(differences: Array, known: Mask, poses: Indices, weight: float) -> Mask:
    """
    Return samples (n,) with outliers from the median of a pose, where differences are constant.

    A touch that lasts for most of the pose is the median, and is not found.
    differences (n, n_fts, 6) [N, Nm], known (n, n_fts); poses (n,); weight [N].
    """
    least = np.repeat(np.maximum(weight * MIN_TOUCH, MIN_LIMITS), 3)
    found = np.zeros(len(differences), dtype=bool)
    for k in range(known.shape[1]):
        for pose in np.unique(poses[known[:, k] & (poses >= 0)]):
            rows = np.flatnonzero(known[:, k] & (poses == pose))
            off = np.abs(differences[rows, k] - np.median(differences[rows, k], axis=0))
            deviations = MEDIAN_TO_DEVIATION * np.median(off, axis=0)
            limit = np.maximum(TOUCH_DEVIATIONS * deviations, least)
            found[rows[(off > limit).any(axis=1)]] = True
    return found
