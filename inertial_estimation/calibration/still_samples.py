# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples in which the robot stands still and nothing but the supports touches it, by pose.

What readings minus predictions show beyond an offset: errors of the model by poses that differ,
and factors of readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.calibration.support_loads import SupportLoads
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import PERIOD_NS, WINDOW_NS, MomentumCheck
from inertial_estimation.findings import Finding, Level, finding, limit_of
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
"""Standard deviation of force [weights] and moment [weights m]; balancing on a foot makes 0.02."""
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
"""Of joints [rad or m] and of gravity in sensors: on a kilogram it changes by 0.5 N."""
MAX_POSES = 200
MIN_POSE_SAMPLES = 10
MIN_TURN = np.deg2rad(15.0)
"""Of gravity in a sensor, from which poses show errors of the model, magnified by four then."""
POSE_DEVIATIONS, MIN_POSE_DIFFERENCE = 3.0, (0.3, 0.03)
"""Difference between poses that is reported: over its noise, and at least [N, Nm]."""
MASS_TOLERANCE = 1e-6
MIN_CHANGE, MIN_LIKENESS = (3.0, 0.3), 0.9
"""Predicted changes [N, Nm], and their cosine with the measured ones, that show their factor."""


class PoseErrors(NamedTuple):
    """Differences of a sensor's readings between two poses or more."""

    residuals: Array
    """Mean of reading minus prediction and offset in each pose, shape (n_poses, 6) [N, Nm]."""
    turn: float
    """Largest angle between gravity in two poses, in the sensor's axes [rad]."""
    differing: Array
    """Root mean square about the mean of poses, force and moment, (2,) [N, Nm]."""
    mass: float
    """That explains the differences best [kg]; NaN if gravity does not turn enough."""
    load: float
    """Root mean square of the predicted force [N]."""


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

    A mean over still samples is free of filters and delays. Joints, IMUs, FT sensors and momentum
    each show motions that others miss. wrenches, differences (n, n_fts, 6): calibrated readings,
    and these minus prediction, NaN where no offset is wanted [N, Nm]; felt (n,): known touches;
    moving: accept any motion, look for no touches; poses (n,), -1: none.
    """
    n, stamps = len(samples), samples.stamp_ns
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    contradicted = _contradictions(robot, samples, loads.free, MAX_MOMENTUM * weight) & ~felt
    signals = () if moving else _signals(robot, samples, wrenches, weight)
    over = {
        f'{name} {values[values > limit].max():.3g} {unit} (limit {limit:.3g})': values > limit
        for name, values, limit, unit in signals
        if (values > limit).any()
    }
    motion = stats.near(
        np.any([np.zeros(n, dtype=bool), *over.values()], axis=0), stamps, SETTLE_NS
    )
    known: Mask = np.logical_and.reduce(np.isfinite(differences), axis=2)
    left = felt | motion | contradicted
    held = known.any(axis=1) & ~left & (not moving)
    poses = _find_poses(samples.positions, loads.pulls, held)
    touched = stats.near(
        _touches(differences, known, poses, weight), stamps, int(1e9 * stats.TOUCH_REACH)
    )
    left_out = {
        'touched': int((felt | (touched & ~left)).sum()),
        'moving': int((motion & ~felt).sum()),
        'momentum': int((contradicted & ~motion).sum()),
    }
    signs = sorted(over, key=lambda sign: -over[sign].sum())
    return ~(left | touched), left_out, signs, poses


def _signals(
    robot: Robot, samples: SampleBatch, wrenches: Array, weight: float
) -> Iterator[tuple[str, Array, float, str]]:
    """Yield what may show a motion: name, values (n,), limit, unit; weight [N]."""
    for j, name in enumerate(robot.joint_names):
        speeds = np.abs(samples.velocities[:, j])
        yield f"velocity of joint '{name}'", speeds, MAX_JOINT_VELOCITY, 'rad/s or m/s'
    for i, imu in enumerate(robot.imus):
        rates = np.linalg.norm(samples.angular_velocities[:, i], axis=1)
        yield f"turning of IMU '{imu.name}'", rates, MAX_ANGULAR_VELOCITY, 'rad/s'
        lengths = np.linalg.norm(samples.proper_accelerations[:, i], axis=1)
        change = np.abs(lengths - np.linalg.norm(robot.gravity))
        yield f"acceleration of IMU '{imu.name}'", change, MAX_ACCELERATION, 'm/s^2'
    spreads = _spreads(wrenches, samples.stamp_ns).reshape(len(samples), -1, 2, 3).max(axis=3)
    limits = np.maximum(MAX_SPREAD * weight, MIN_LIMITS).tolist()
    for k, sensor in enumerate(robot.ft_sensors):
        for part, (kind, unit) in enumerate((('force', 'N'), ('moment', 'Nm'))):
            name = f"{kind} spread of FT sensor '{sensor.name}'"
            yield name, spreads[:, k, part], limits[part], unit


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
    """Group samples (n,) by pose, -1: none; positions (n, n_joints), pulls (n, n_fts, 3)."""
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
    Return samples (n,) with outliers from the median of a pose; a touch that lasts is the median.

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


def compare_poses(
    name: str, residuals: Array, pulls: Array, labels: Indices, predicted: Array
) -> tuple[PoseErrors, list[Finding]] | None:
    """
    Return the differences of a sensor's readings between poses, and what they show, if any.

    residuals (n, 6) [N, Nm]; pulls (n, 3): force of a kilogram that the model lacks [m/s^2];
    labels (n,) of poses, -1: none; predicted (n, 6) [N, Nm].
    """
    held = [at for pose in np.unique(labels[labels >= 0])
            if (at := labels == pose).sum() >= MIN_POSE_SAMPLES]  # fmt: skip
    if len(held) < 2:
        return None
    means, pull, load = (
        np.array([values[at].mean(axis=0) for at in held])
        for values in (residuals, pulls, predicted)
    )
    noise = np.array([stats.deviations_of_means(residuals[at]) for at in held])
    changes = (means - means.mean(axis=0)).reshape(-1, 2, 3)
    parts = changes, noise.reshape(-1, 2, 3)
    differing, noise = (np.sqrt((one**2).sum(axis=2).mean(axis=0)) for one in parts)
    directions = pull / np.linalg.norm(pull, axis=1, keepdims=True)
    turn = float(np.arccos(np.clip(directions @ directions.T, -1.0, 1.0)).max())
    mass = np.nan
    if turn >= MIN_TURN:
        A = np.hstack([np.tile(np.eye(3), (len(held), 1)), pull.reshape(-1, 1)])
        mass = float(np.linalg.lstsq(A, means[:, :3].ravel(), rcond=MASS_TOLERANCE)[0][3])
    size = float(np.sqrt((predicted[:, :3] ** 2).sum(axis=1).mean()))
    found = [*wrong_scales(name, means, load)]
    if (differing > np.maximum(POSE_DEVIATIONS * noise, MIN_POSE_DIFFERENCE)).any():
        text = 'reading minus prediction differs by {:.2g} N, {:.2g} Nm'.format(*differing)
        text += f' between {len(held)} poses'
        text += f', best explained by {mass:+.2f} kg' if np.isfinite(mass) else ''
        found.append(finding('offset_drift', name, what=text))
    return PoseErrors(means, turn, differing, mass, size), found


def wrong_scales(name: str, residuals: Array, predicted: Array) -> Iterator[Finding]:
    """Yield wrong factors; residuals, reading minus prediction, and predicted (n, 6) [N, Nm]."""
    expected, off = ((x - x.mean(axis=0)).reshape(-1, 2, 3) for x in (predicted, residuals))
    measured, limit = expected + off, limit_of('scale')
    squares, products = ((expected * one).sum(axis=(0, 2)) for one in (expected, measured))
    sizes = np.sqrt(squares * (measured**2).sum(axis=(0, 2)) + MASS_TOLERANCE)
    shows = (np.sqrt(squares / len(off)) > MIN_CHANGE) & (np.abs(products) > MIN_LIKENESS * sizes)
    factors = np.where(shows, products, np.nan) / np.where(shows, squares, 1.0)
    for kind, factor in zip(('force', 'moment'), factors.tolist()):
        if not (np.isnan(factor) or 1.0 / limit < factor < limit):
            what = f'change of the {kind}'
            yield finding('scale', name, level=Level.ERROR, what=what, factor=factor)
