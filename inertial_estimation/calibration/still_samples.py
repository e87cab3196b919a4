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

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import PERIOD_NS, WINDOW_NS, MomentumCheck
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

SPREAD_WINDOW_NS = 200_000_000
"""Of the spread of FT readings: longer than a period of most vibrations."""
MIN_FORCE, MIN_MOMENT = 1.0, 0.1
"""Smallest limits of spreads and touches, on light robots [N, Nm]."""
MIN_TOUCH = 0.01, 0.003
"""Smallest touch over the robot's weight: force, moment [m]."""
TOUCH_DEVIATIONS, MEDIAN_TO_DEVIATION = 6.0, 1.4826
TOUCH_REACH = 0.1
"""Around an outlier, in which the touch begins and ends [s]."""
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
    """Samples that can be used, and why the others cannot."""

    used: Mask
    """Shape (n,)."""
    left_out: dict[str, int]
    """Samples by the first reason of each."""
    signs: tuple[str, ...]
    """Signals that exceeded their limits, most frequent first."""
    poses: Indices
    """Pose of each sample, shape (n,); -1: none."""


def find_still(
    robot: Robot,
    samples: SampleBatch,
    free: WrenchEstimate,
    wrenches: Array,
    differences: Array,
    pulls: Array,
    felt: Mask,
    limits: Stillness,
) -> StillSamples:
    """
    Select samples.

    free: estimate without FT readings; wrenches (n, n_fts, 6): calibrated readings [N, Nm];
    differences (n, n_fts, 6): readings minus prediction, whatever the sharing of the load, NaN
    where no offset is wanted or known [N, Nm]; pulls (n, n_fts, 3): gravity in the sensors; felt
    (n,): touches that are known.
    """
    n, stamps = len(samples), samples.stamp_ns
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    over = {
        f'{name} {values[values > limit].max():.3g} (limit {limit:.3g})': values > limit
        for name, values, limit in _signals(robot, samples, wrenches, limits)
        if (values > limit).any()
    }
    moving = _near(
        np.any([np.zeros(n, dtype=bool), *over.values()], axis=0), stamps, limits.settle
    )
    contradicted, touched = np.zeros((2, n), dtype=bool)
    if isfinite(limits.momentum):
        contradicted = _contradictions(robot, samples, free, limits.momentum * weight)
    poses = np.full(n, -1, dtype=np.intp)
    if isfinite(limits.joint_velocity):
        known: Mask = np.logical_and.reduce(np.isfinite(differences), axis=2)
        quiet = np.asarray(known.any(axis=1)) & ~(felt | moving | contradicted)
        poses = _find_poses(samples.positions, pulls, quiet)
        touched = _touches(differences, poses, stamps, weight)
    used, left_out = np.ones(n, dtype=bool), dict[str, int]()
    for reason, mask in (
        ('touched', felt), ('moving', moving), ('momentum', contradicted), ('touched', touched)
    ):  # fmt: skip
        left_out[reason] = left_out.get(reason, 0) + int((used & mask).sum())
        used &= ~mask
    signs = sorted(over, key=lambda sign: -over[sign].sum())
    return StillSamples(used, left_out, tuple(signs), poses)


def _near(found: Mask, stamp_ns: Stamps, reach: float) -> Mask:
    """Return the samples (n,) within some time [s] of those that are found."""
    at, reach_ns = stamp_ns[found], int(1e9 * min(reach, 1e9))
    first = np.searchsorted(at, stamp_ns - reach_ns, 'left')
    return np.asarray(np.searchsorted(at, stamp_ns + reach_ns, 'right') > first)


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
    spreads = _spreads(wrenches, samples.stamp_ns)
    force, moment = spreads[..., :3].max(axis=2), spreads[..., 3:].max(axis=2)
    for k, sensor in enumerate(robot.ft_sensors):
        name = f"FT sensor '{sensor.name}'"
        yield f'force spread of {name}', force[:, k], max(limits.force_spread * weight, MIN_FORCE)
        least = max(limits.moment_spread * weight, MIN_MOMENT)
        yield f'moment spread of {name}', moment[:, k], least


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
    """Return windows of 0.5 s in which momentum and accelerations differ, (n,); limit [N]."""
    check, stamps = MomentumCheck(robot), samples.stamp_ns
    found = np.zeros(len(samples), dtype=bool)
    next_ns = stamps[0]
    for k, stamp in enumerate(stamps.tolist()):
        if next_ns - PERIOD_NS <= stamp < next_ns:
            continue
        next_ns = stamp + PERIOD_NS
        at_k = {name: np.asarray(getattr(estimate, name))[k] for name in FIELDS}
        contradicted = check.add(samples[k], WrenchEstimate(contacts=estimate.contacts, **at_k))
        if contradicted is not None:
            begin = int(np.searchsorted(stamps, stamp - WINDOW_NS - PERIOD_NS))
            found[begin : k + 1] |= bool(contradicted[0] > limit)
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


def _touches(differences: Array, poses: Indices, stamp_ns: Stamps, weight: float) -> Mask:
    """
    Return samples (n,) near outliers from the median of a pose, where differences are constant.

    A touch that lasts for most of the pose is the median, and is not found.
    differences (n, n_fts, 6) [N, Nm]; poses (n,); weight [N].
    """
    least = np.repeat(np.maximum(weight * np.array(MIN_TOUCH), (MIN_FORCE, MIN_MOMENT)), 3)
    found = np.zeros(len(differences), dtype=bool)
    for values in differences.swapaxes(0, 1):
        known = np.isfinite(values).all(axis=1)
        for pose in range(poses.max() + 1):
            rows = np.flatnonzero(known & (poses == pose))
            if not len(rows):
                continue
            off = np.abs(values[rows] - np.median(values[rows], axis=0))
            deviations = MEDIAN_TO_DEVIATION * np.median(off, axis=0)
            limit = np.maximum(TOUCH_DEVIATIONS * deviations, least)
            found[rows[(off > limit).any(axis=1)]] = True
    return _near(found, stamp_ns, TOUCH_REACH)
