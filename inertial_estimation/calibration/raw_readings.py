# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Raw readings of an FT sensor that carries one rigid body, as an affine map of gravity.

The map is fitted to samples at rest, without those that a touch takes off it; channels that are
dead, saturated or do not follow gravity are found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.calibration.residual_statistics import consensus
from inertial_estimation.errors import LogError
from inertial_estimation.model.sensors import AXES

MIN_SLOPE_RATIO = 0.002
"""Slope by gravity over the median of the channels; gauges of 32 real sensors: 0.006 and more."""
MIN_SATURATED_SAMPLES, MIN_SATURATED_SHARE = 10, 0.03
"""Samples at the largest or smallest value from which a channel may be saturated."""
MIN_SPREAD, MIN_EXPECTED_STEPS = 0.05, 2.0
"""Spread that gravity predicts for these samples: share of the channel's, and converter steps."""
UNKNOWNS = 4
"""Of each channel: three slopes and the offset."""
MIN_JUDGED_SAMPLES = 40
"""Samples from which touched ones can be distinguished."""
MIN_NOISE, MIN_TOUCH = 1e-4, 5e-3
"""Of the spread of a channel: smallest noise assumed, and smallest deviation that is a touch."""
BLOCKS, MIN_BLOCK_SAMPLES = 40, 10
"""Parts of a log whose errors are taken as independent."""


class RawSlopes(NamedTuple):
    """An affine map from accelerometer to raw readings, and how well it is known."""

    slopes: Array
    """K, shape (6, 3) [raw unit per m/s^2]."""
    offset: Array
    """b, what the sensor would read without weight, shape (6,) [raw unit]."""
    covariance: Array
    """Of K by columns and then b, (24, 24); by blocks where there are enough samples."""
    noise: Array
    """Covariance of what is left of a sample, shape (6, 6)."""
    gram: Array
    """Sum of squares of accelerations about their mean, shape (3, 3)."""
    drift: Array
    """Change of the offset from the first to the last sample, along a line, (6,) [raw unit]."""
    drift_covariance: Array
    """Of `drift`, shape (6, 6), noise of the accelerometer included."""
    n_samples: int
    """Samples that were used."""


def still_channels(slopes: Array, units: Array) -> Mask:
    """Return channels (6,) that do not follow gravity; slopes (6, 3); units (6,), 0: unlike."""
    sizes = np.linalg.norm(slopes, axis=1) * units
    return np.asarray((units > 0.0) & (sizes < MIN_SLOPE_RATIO * np.median(sizes[units > 0.0])))


def require_unsaturated(raw: Array, expected: Array, what: str) -> None:
    """Refuse a saturated channel; raw (n, 6); expected (n, 6): by gravity, not by a push."""
    least = max(MIN_SATURATED_SAMPLES, MIN_SATURATED_SHARE * len(raw))
    for k, channel in enumerate(raw.T):
        values = np.unique(channel)
        steps = MIN_EXPECTED_STEPS * np.diff(values).min(initial=np.inf)
        limit = max(MIN_SPREAD * channel.std(), steps)
        for end in values[[0, -1]]:
            at = channel == end
            if at.sum() >= least and expected[at, k].std() > limit:
                where = f'at {end:.6g} in {at.mean():.0%} of the samples'
                raise LogError(f'{what}: channel {k + 1} ({AXES[k]}) is saturated {where}')


def fit_slopes(raw: Array, accelerations: Array) -> RawSlopes:
    """Fit samples at rest; raw (n, 6), accelerations (n, 3) [m/s^2]."""
    n, rows = len(raw), np.column_stack([accelerations, np.ones(len(raw))])
    x = np.asarray(np.linalg.lstsq(rows, raw, rcond=None)[0], dtype=np.float64)
    left = raw - rows @ x
    # At least a share of the spread of each channel.
    finest = (MIN_NOISE * raw.std(axis=0)) ** 2
    noise = left.T @ left / (n - UNKNOWNS) + np.diag(np.where(finest > 0.0, finest, 1.0))
    inverse = np.linalg.inv(rows.T @ rows)
    covariance = np.asarray(np.kron(inverse, noise), dtype=np.float64)
    by_blocks = n >= BLOCKS * MIN_BLOCK_SAMPLES
    if by_blocks:
        wide = np.kron(inverse, np.eye(6))
        covariance = wide @ _squares_by_blocks(rows, left, UNKNOWNS) @ wide.T
    # Drift: slope over time beside the other unknowns.
    time = np.linspace(-0.5, 0.5, n)
    by_gravity = np.linalg.lstsq(rows, time, rcond=None)[0]
    own = time - rows @ by_gravity
    size = max(float(own @ own), np.finfo(float).tiny)
    drift, squares = own @ left / size, size * noise
    if by_blocks:
        squares = _squares_by_blocks(own[:, None], left - np.outer(own, drift), UNKNOWNS + 1)
    # Readings of an accelerometer at rest are as long as gravity but for its noise.
    variance = np.linalg.norm(accelerations, axis=1).var()
    of_accelerometer = n * variance * x[:3].T @ by_gravity[:3]
    centred = accelerations - accelerations.mean(axis=0)
    return RawSlopes(
        x[:3].T, x[3], covariance, noise, centred.T @ centred, drift,
        (squares + np.outer(of_accelerometer, of_accelerometer)) / size**2, n,
    )  # fmt: skip


def _squares_by_blocks(rows: Array, left: Array, unknowns: int) -> Array:
    """Return the covariance of rows' left by columns, (6 p, 6 p); rows (n, p), left (n, 6)."""
    edges = np.linspace(0, len(rows), BLOCKS + 1).astype(int)[:-1]
    products = (rows[:, :, None] * left[:, None]).reshape(len(rows), -1)
    sums = np.add.reduceat(products, edges, axis=0)
    return np.asarray(sums.T @ sums * (BLOCKS / (BLOCKS - unknowns)))


def untouched(raw: Array, accelerations: Array) -> Mask:
    """Return the samples (n,) that fit one affine map; raw (n, 6), accelerations (n, 3)."""
    n = len(raw)
    if n < MIN_JUDGED_SAMPLES:
        return np.ones(n, dtype=bool)
    rows, spread = np.column_stack([accelerations, np.ones(n)]), raw.std(axis=0)
    scaled = (raw - raw.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)

    def left_by(some: Indices | Mask) -> Array:
        return np.asarray(scaled - rows @ np.linalg.lstsq(rows[some], scaled[some], rcond=None)[0])

    least = np.where(spread > 0.0, MIN_TOUCH, 1.0)
    return consensus(left_by, n, least, UNKNOWNS, UNKNOWNS + 2)
