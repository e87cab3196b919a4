# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Affine fit of raw FT readings to the gravity of one rigid body: raw = b + K a [T 5.4].

The body and the rotation of the accelerometer against the sensor are in K. All six channels have
the same four regressors, so that least squares depends on no weighting of channels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask

UNKNOWNS = 4
"""Of each channel: three slopes and the offset."""
MIN_SAMPLES = 7
"""With fewer, the centred readings of any body lie in five dimensions or less."""
MIN_JUDGED_SAMPLES = 40
"""Samples from which touched ones can be distinguished."""
STARTS, START_SAMPLES, SCORED_SAMPLES = 60, 6, 400
"""Of the random search: an untouched start is among them at two of five samples touched."""
MAX_ROUNDS = 30
OUTLIER_DEVIATIONS = 6.0
"""Of six channels together: noise exceeds it once in 400 000 samples."""
MEDIAN_OF_SIX = 2.3126
"""Median norm of unit Gaussian noise in six dimensions."""
MIN_NOISE, MIN_TOUCH = 1e-4, 2e-3
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


def fit_slopes(raw: Array, accelerations: Array) -> RawSlopes:
    """Fit samples at rest; raw (n, 6), accelerations (n, 3) [m/s^2]."""
    n, mean, level = len(raw), accelerations.mean(axis=0), raw.mean(axis=0)
    centred = accelerations - mean
    slopes = np.linalg.lstsq(centred, raw - level, rcond=None)[0].T
    left = raw - level - centred @ slopes.T
    noise = _floored(left.T @ left / (n - UNKNOWNS), raw)
    rows = np.column_stack([centred, np.ones(n)])
    inverse = np.linalg.inv(rows.T @ rows)
    edges = np.linspace(0, n, BLOCKS + 1).astype(int)
    by_blocks = n >= BLOCKS * MIN_BLOCK_SAMPLES
    if by_blocks:
        sums = [(rows[a:b].T @ left[a:b]).reshape(-1) for a, b in pairwise(edges)]
        middle = np.einsum('bi,bj->ij', sums, sums) * BLOCKS / (BLOCKS - UNKNOWNS)
        wide = np.kron(inverse, np.eye(6))
        covariance = wide @ middle @ wide.T
    else:
        covariance = np.kron(inverse, noise)
    # The offset is the level at the mean, moved to no acceleration.
    move = np.eye(UNKNOWNS)
    move[3, :3] = -mean
    wide = np.kron(move, np.eye(6))
    # Drift: slope over time beside the other unknowns.
    time = np.linspace(-0.5, 0.5, n)
    by_gravity = np.linalg.lstsq(rows, time, rcond=None)[0]
    own = time - rows @ by_gravity
    size = max(float(own @ own), np.finfo(float).tiny)
    drift, squares = own @ left / size, size * noise
    if by_blocks:
        last = left - np.outer(own, drift)
        parts = [own[a:b] @ last[a:b] for a, b in pairwise(edges)]
        squares = np.einsum('bi,bj->ij', parts, parts) * BLOCKS / (BLOCKS - UNKNOWNS - 1)
    # Readings of an accelerometer at rest are as long as gravity but for its noise.
    variance = np.linalg.norm(accelerations, axis=1).var()
    of_accelerometer = n * variance * slopes @ by_gravity[:3]
    of_drift = (squares + np.outer(of_accelerometer, of_accelerometer)) / size**2
    return RawSlopes(
        slopes, level - slopes @ mean, np.asarray(wide @ covariance @ wide.T), noise,
        centred.T @ centred, drift, of_drift, n,
    )  # fmt: skip


def untouched(raw: Array, accelerations: Array) -> Mask:
    """
    Return the samples that fit one affine map, by least trimmed squares; two of five may not.

    raw (n, 6); accelerations (n, 3) [m/s^2]; returns (n,).
    """
    n = len(raw)
    if n < MIN_JUDGED_SAMPLES:
        return np.ones(n, dtype=bool)
    rows, spread = np.column_stack([accelerations, np.ones(n)]), raw.std(axis=0)
    scaled = (raw - raw.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)

    def nearest(distances: Array) -> Mask:
        """Return the nearest half of the samples, and a few more for the unknowns."""
        kept = np.zeros(n, dtype=bool)
        kept[np.argsort(distances, kind='stable')[: (n + UNKNOWNS + 7) // 2]] = True
        return kept

    def distances(half: Mask) -> Array:
        """Return distances (n,) from the fit of some samples, in their standard deviations."""
        left = scaled - rows @ np.linalg.lstsq(rows[half], scaled[half], rcond=None)[0]
        covariance = left[half].T @ left[half] / max(int(half.sum()) - UNKNOWNS, 1)
        factor = np.linalg.cholesky(_floored(covariance, scaled, MIN_TOUCH))
        found: Array = np.linalg.norm(np.linalg.solve(factor, left.T), axis=0)
        return found

    # The best of random starts.
    generator, best, start = np.random.default_rng(0), np.inf, np.zeros((UNKNOWNS, 6))
    some = np.linspace(0, n - 1, min(n, SCORED_SAMPLES)).astype(int)
    for _ in range(STARTS):
        drawn = some[generator.choice(len(some), START_SAMPLES, replace=False)]
        solution = np.linalg.lstsq(rows[drawn], scaled[drawn], rcond=None)[0]
        off = scaled[some] - rows[some] @ solution
        middle = float(np.median(np.linalg.norm(off, axis=1)))
        if middle < best:
            best, start = middle, solution
    half = nearest(np.linalg.norm(scaled - rows @ start, axis=1))
    for _ in range(MAX_ROUNDS):
        if ((other := nearest(distances(half))) == half).all():
            break
        half = other
    far = distances(half)
    # Half of the samples makes the covariance too small, by a factor that the median shows.
    kept = far <= OUTLIER_DEVIATIONS / MEDIAN_OF_SIX * max(np.median(far), 1.0)
    # A drifting offset spreads samples without a gap, a touch leaves one: add near samples.
    for _ in range(MAX_ROUNDS):
        near = kept | (distances(kept) <= OUTLIER_DEVIATIONS)
        if (near == kept).all():
            break
        kept = near
    return np.asarray(kept)


def _floored(covariance: Array, raw: Array, share: float = MIN_NOISE) -> Array:
    """Return a covariance with at least a share of the spread of each channel."""
    finest = (share * raw.std(axis=0)) ** 2
    return np.asarray(covariance + np.diag(np.where(finest > 0.0, finest, 1.0)))
