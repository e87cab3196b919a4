# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Still, untouched samples of a robot, and the poses that they hold.

Motion is in the model, but its measurement is filtered, late and noisy; a mean over still samples
is free of that. Joints, IMUs, FT sensors and the momentum each show motions that others miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import PERIOD_NS, WINDOW_NS, MomentumCheck
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Labels = NDArray[np.intp]

TOUCHED, MOVING, MOMENTUM, MISSING = 'touched', 'moving', 'momentum', 'missing'
"""Reasons for which samples are left out."""
SPREAD_WINDOW_NS = 200_000_000
"""Of the spread of FT readings: longer than a period of most vibrations."""
MIN_FORCE, MIN_MOMENT = 1.0, 0.1
"""Smallest limits of spreads and touches, on light robots [N, Nm]."""
MIN_TOUCH = 0.01, 0.003
"""Smallest touch over the robot's weight: force, moment [m]."""
TOUCH_DEVIATIONS, MEDIAN_TO_DEVIATION = 6.0, 1.4826
TOUCH_REACH_NS = 100_000_000
"""Around an outlier, in which the touch begins and ends."""
POSE_TOLERANCE = 0.05
"""
Of joints [rad or m] and of the direction of gravity in sensors: gravity on a kilogram then changes
by 0.5 N.
"""
MAX_POSES = 200
FIELDS = tuple(name for name in WrenchEstimate._fields if name != 'contacts')


@dataclass(frozen=True)
class Stillness:
    """Limits of motion; infinity: not checked."""

    joint_velocity: float = 0.1
    """Of each joint [rad/s or m/s]. A limb of 1 m then pulls by 0.1 % of its weight."""
    angular_velocity: float = 0.1
    """Of each gyroscope [rad/s]."""
    acceleration: float = 0.3
    """Difference of the length of a proper acceleration from gravity [m/s^2]."""
    force_spread: float = 0.03
    """
    Standard deviation of each force of an FT sensor within 0.2 s, over the robot's weight. A
    robot that balances on a foot sways by 0.02.
    """
    moment_spread: float = 0.01
    """The same of each moment [m]."""
    momentum: float = 0.05
    """Mean force within 0.5 s by which momentum and accelerations differ, over the weight."""
    settle: float = 0.3
    """Time before and after a motion that counts as part of it [s]."""

    @classmethod
    def none(cls) -> Stillness:
        """Return limits that accept all motion but what the momentum contradicts."""
        return cls(inf, inf, inf, inf, inf)

    def __post_init__(self) -> None:
        """Check the numbers."""
        for field in fields(self):
            value = float(numbers(field.name, getattr(self, field.name), (), finite=False))
            if not value >= 0.0:
                raise ConfigError(f'{field.name} of stillness is {value}, expected 0 or more')


class StillSamples(NamedTuple):
    """Samples that can be used, by sensor, and why the others cannot."""

    used: Mask
    """Shape (n, n_fts)."""
    left_out: dict[str, int]
    """Samples by the first reason of each; `MISSING`: of any chosen sensor."""
    signs: tuple[str, ...]
    """Signals that exceeded their limits, most frequent first."""
    poses: Labels
    """Pose of each sample, shape (n,); -1: none."""


def find_still(
    robot: Robot,
    samples: SampleBatch,
    free: WrenchEstimate,
    wrenches: Array,
    differences: Array,
    gravity: Array,
    known: Mask,
    missing: Mask,
    felt: Mask,
    limits: Stillness,
) -> StillSamples:
    """
    Select samples.

    free: estimate without FT readings; wrenches (n, n_fts, 6): calibrated readings [N, Nm];
    differences (n, n_fts, 6): readings minus prediction, whatever the sharing of the load [N, Nm];
    gravity (n, n_fts, 3); known (n, n_fts): reading and prediction of a chosen sensor are known;
    missing (n,): of any chosen sensor they are not; felt (n,): touches that are known.
    """
    n, stamps = len(samples), samples.stamp_ns
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    moving, counts = np.zeros(n, dtype=bool), []
    for name, values, limit in _signals(robot, samples, wrenches, limits):
        over = values > limit
        if over.any():
            moving |= over
            counts.append(
                (-int(over.sum()), f'{name} {values[over].max():.3g} (limit {limit:.3g})')
            )
    signs = tuple(text for _, text in sorted(counts, key=lambda one: one[0]))
    moving = _near(moving, stamps, 1e18 if limits.settle == inf else limits.settle * 1e9)
    contradicted = np.zeros(n, dtype=bool)
    if isfinite(limits.momentum):
        contradicted = _contradictions(robot, samples, free, limits.momentum * weight)
    quiet = ~(felt | moving | contradicted)
    labels, touched = np.full(n, -1, dtype=np.intp), np.zeros(n, dtype=bool)
    if isfinite(limits.joint_velocity):
        labels = _find_poses(samples.positions, gravity, quiet & known.any(axis=1))
        touched = _touches(differences, labels, stamps, weight)
    left, left_out = np.ones(n, dtype=bool), dict.fromkeys((TOUCHED, MOVING, MOMENTUM, MISSING), 0)
    for reason, mask in (
        (TOUCHED, felt), (MOVING, moving), (MOMENTUM, contradicted), (TOUCHED, touched),
        (MISSING, missing),
    ):  # fmt: skip
        left_out[reason] += int((left & mask).sum())
        left &= ~mask
    return StillSamples(known & (quiet & ~touched)[:, None], left_out, signs, labels)


def _near(found: Mask, stamp_ns: NDArray[np.int64], reach_ns: float) -> Mask:
    """Return the samples (n,) within some time of those that are found."""
    at, reach = stamp_ns[found], int(reach_ns)
    first = np.searchsorted(at, stamp_ns - reach, 'left')
    return np.asarray(np.searchsorted(at, stamp_ns + reach, 'right') > first)


def _signals(
    robot: Robot, samples: SampleBatch, wrenches: Array, limits: Stillness
) -> Iterator[tuple[str, Array, float]]:
    """Yield what may show a motion: name, values (n,), limit."""
    for j, name in enumerate(robot.joint_names):
        yield f"joint '{name}'", np.abs(samples.velocities[:, j]), limits.joint_velocity
    gravity = float(np.linalg.norm(robot.gravity))
    weight = robot.mass * gravity
    for i, imu in enumerate(robot.imus):
        rates = np.linalg.norm(samples.angular_velocities[:, i], axis=1)
        yield f"turning of IMU '{imu.name}'", rates, limits.angular_velocity
        lengths = np.linalg.norm(samples.proper_accelerations[:, i], axis=1)
        yield f"acceleration of IMU '{imu.name}'", np.abs(lengths - gravity), limits.acceleration
    for k, sensor in enumerate(robot.ft_sensors):
        spreads = _spreads(wrenches[:, k], samples.stamp_ns)
        force, moment = spreads[:, :3].max(axis=1), spreads[:, 3:].max(axis=1)
        name = f"FT sensor '{sensor.name}'"
        yield f'force spread of {name}', force, max(limits.force_spread * weight, MIN_FORCE)
        yield f'moment spread of {name}', moment, max(limits.moment_spread * weight, MIN_MOMENT)


def _spreads(values: Array, stamp_ns: NDArray[np.int64]) -> Array:
    """Return standard deviations in a window around each sample, (n, 6); NaN: missing."""
    middle = np.nanmean(values, axis=0) if np.isfinite(values).any() else 0.0
    centred = values - middle
    missing = ~np.isfinite(centred).all(axis=1)
    centred[missing] = 0.0
    zero = np.zeros((1, values.shape[1]))
    sums = np.concatenate([zero, np.cumsum(centred, axis=0)])
    squares = np.concatenate([zero, np.cumsum(centred**2, axis=0)])
    count = np.concatenate([[0], np.cumsum(~missing)])
    first = np.searchsorted(stamp_ns, stamp_ns - SPREAD_WINDOW_NS // 2, 'left')
    last = np.searchsorted(stamp_ns, stamp_ns + SPREAD_WINDOW_NS // 2, 'right')
    n = np.maximum(count[last] - count[first], 1)[:, None]
    mean = (sums[last] - sums[first]) / n
    variance = (squares[last] - squares[first]) / n - mean**2
    spread: Array = np.sqrt(np.maximum(variance, 0.0))
    spread[missing] = np.nan
    return spread


def _contradictions(
    robot: Robot, samples: SampleBatch, estimate: WrenchEstimate, limit: float
) -> Mask:
    """Return windows of 0.5 s in which momentum and accelerations differ, (n,); limit [N]."""
    check = MomentumCheck(robot)
    stamps = samples.stamp_ns
    found = np.zeros(len(samples), dtype=bool)
    windows, next_ns = 0, stamps[0] if len(stamps) else 0
    for k, stamp in enumerate(stamps.tolist()):
        if next_ns - PERIOD_NS <= stamp < next_ns:
            continue
        next_ns = stamp + PERIOD_NS
        at_k = {name: np.asarray(getattr(estimate, name))[k] for name in FIELDS}
        check.add(samples[k], WrenchEstimate(contacts=estimate.contacts, **at_k))
        if check.n_windows > windows:
            windows = check.n_windows
            begin = int(np.searchsorted(stamps, stamp - WINDOW_NS - PERIOD_NS))
            found[begin : k + 1] |= bool(check.last[0] > limit)
    return found


def _find_poses(positions: Array, gravity: Array, used: Mask) -> Labels:
    """
    Group samples by pose, -1: none.

    positions (n, n_joints) [rad or m]; gravity (n, n_fts, 3); used (n,); returns (n,).
    """
    n = len(positions)
    lengths = np.linalg.norm(gravity, axis=2, keepdims=True)
    directions = gravity / np.where(lengths > 0.0, lengths, 1.0)
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


def _touches(
    differences: Array, labels: Labels, stamp_ns: NDArray[np.int64], weight: float
) -> Mask:
    """
    Return samples (n,) near outliers from the median of a pose, where differences are constant.

    A touch that lasts for most of the pose is the median, and is not found.
    differences (n, n_fts, 6) [N, Nm]; labels (n,); weight [N].
    """
    least = np.repeat(np.maximum(weight * np.array(MIN_TOUCH), (MIN_FORCE, MIN_MOMENT)), 3)
    found = np.zeros(len(differences), dtype=bool)
    for k in range(differences.shape[1]):
        known = np.isfinite(differences[:, k]).all(axis=1)
        for pose in range(labels.max(initial=-1) + 1):
            rows = np.flatnonzero(known & (labels == pose))
            if not len(rows):
                continue
            off = np.abs(differences[rows, k] - np.median(differences[rows, k], axis=0))
            deviations = MEDIAN_TO_DEVIATION * np.median(off, axis=0)
            limit = np.maximum(TOUCH_DEVIATIONS * deviations, least)
            found[rows[(off > limit).any(axis=1)]] = True
    return _near(found, stamp_ns, TOUCH_REACH_NS)
