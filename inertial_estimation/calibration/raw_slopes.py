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
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

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
    n = len(raw)
    mean, level = accelerations.mean(axis=0), raw.mean(axis=0)
    centred = accelerations - mean
    slopes = np.linalg.lstsq(centred, raw - level, rcond=None)[0].T
    left = raw - level - centred @ slopes.T
    noise = _floored(left.T @ left / (n - UNKNOWNS), raw)
    gram = centred.T @ centred
    rows = np.column_stack([centred, np.ones(n)])
    covariance = _covariance(rows, left, noise)
    # The offset is the level at the mean, moved to no acceleration.
    move = np.eye(UNKNOWNS)
    move[3, :3] = -mean
    wide = np.kron(move, np.eye(6))
    offset = level - slopes @ mean
    drift, of_drift = _drift(rows, left, slopes, accelerations, noise)
    return RawSlopes(slopes, offset, wide @ covariance @ wide.T, noise, gram, drift, of_drift, n)


def untouched(raw: Array, accelerations: Array) -> Mask:
    """
    Return which samples fit one affine map, by least trimmed squares; two of five may not.

    raw (n, 6); accelerations (n, 3) [m/s^2]; returns (n,).
    """
    n = len(raw)
    if n < MIN_JUDGED_SAMPLES:
        return np.ones(n, dtype=bool)
    rows = np.column_stack([accelerations, np.ones(n)])
    spread = raw.std(axis=0)
    scaled = (raw - raw.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    half = _nearest(_best_start(rows, scaled))
    for _ in range(MAX_ROUNDS):
        distances = _distances(rows, scaled, half)
        nearest = _nearest(distances)
        if (nearest == half).all():
            break
        half = nearest
    distances = _distances(rows, scaled, half)
    # Half of the samples makes the covariance too small, by a factor that the median shows.
    kept = distances <= OUTLIER_DEVIATIONS / MEDIAN_OF_SIX * max(np.median(distances), 1.0)
    # A drifting offset spreads samples without a gap, a touch leaves one: add near samples.
    for _ in range(MAX_ROUNDS):
        near = kept | (_distances(rows, scaled, kept) <= OUTLIER_DEVIATIONS)
        if (near == kept).all():
            break
        kept = near
    return np.asarray(kept)


def _best_start(rows: Array, scaled: Array) -> Array:
    """Return the distances (n,) of samples from the best of random starts."""
    generator = np.random.default_rng(0)
    spread = np.linspace(0, len(rows) - 1, min(len(rows), SCORED_SAMPLES)).astype(int)
    some, of_some = rows[spread], scaled[spread]
    best, found = np.inf, np.zeros((UNKNOWNS, 6))
    for _ in range(STARTS):
        drawn = generator.choice(len(some), START_SAMPLES, replace=False)
        solution = np.linalg.lstsq(some[drawn], of_some[drawn], rcond=None)[0]
        middle = float(np.median(np.linalg.norm(of_some - some @ solution, axis=1)))
        if middle < best:
            best, found = middle, solution
    return np.asarray(np.linalg.norm(scaled - rows @ found, axis=1))


def _nearest(distances: Array) -> Mask:
    """Return the half of the samples that is nearest, and a few more for the unknowns."""
    kept = np.zeros(len(distances), dtype=bool)
    kept[np.argsort(distances, kind='stable')[: (len(distances) + UNKNOWNS + 7) // 2]] = True
    return kept


def _distances(rows: Array, scaled: Array, half: Mask) -> Array:
    """Return distances (n,) from the fit of some samples, in their standard deviations."""
    solution = np.linalg.lstsq(rows[half], scaled[half], rcond=None)[0]
    left = scaled - rows @ solution
    spread = left[half].T @ left[half] / max(int(half.sum()) - UNKNOWNS, 1)
    factor = np.linalg.cholesky(_floored(spread, scaled, MIN_TOUCH))
    found: Array = np.linalg.norm(np.linalg.solve(factor, left.T), axis=0)
    return found


def _floored(covariance: Array, raw: Array, share: float = MIN_NOISE) -> Array:
    """Return a covariance with at least a share of the spread of each channel."""
    finest = (share * raw.std(axis=0)) ** 2
    return np.asarray(covariance + np.diag(np.where(finest > 0.0, finest, 1.0)))


def _drift(
    rows: Array, left: Array, slopes: Array, accelerations: Array, noise: Array
) -> tuple[Array, Array]:
    """Return the slope over time beside the other unknowns, (6,), and its covariance."""
    n = len(rows)
    time = np.linspace(-0.5, 0.5, n)
    by_gravity = np.linalg.lstsq(rows, time, rcond=None)[0]
    own = time - rows @ by_gravity
    size = max(float(own @ own), np.finfo(float).tiny)
    drift = own @ left / size
    squares = size * noise
    if n >= BLOCKS * MIN_BLOCK_SAMPLES:
        last = left - np.outer(own, drift)
        sums = [own[a:b] @ last[a:b] for a, b in pairwise(_edges(n))]
        squares = np.einsum('bi,bj->ij', sums, sums) * BLOCKS / (BLOCKS - UNKNOWNS - 1)
    # Readings of an accelerometer at rest are as long as gravity but for its noise.
    variance = np.linalg.norm(accelerations, axis=1).var()
    of_accelerometer = n * variance * slopes @ by_gravity[:3]
    return drift, (squares + np.outer(of_accelerometer, of_accelerometer)) / size**2


def _edges(n: int) -> NDArray[np.int_]:
    """Return the edges of blocks."""
    return np.linspace(0, n, BLOCKS + 1).astype(int)


def _covariance(rows: Array, left: Array, noise: Array) -> Array:
    """Return the covariance of slopes and level, (24, 24)."""
    n = len(rows)
    inverse = np.linalg.inv(rows.T @ rows)
    if n < BLOCKS * MIN_BLOCK_SAMPLES:
        return np.kron(inverse, noise)
    sums = [(rows[a:b].T @ left[a:b]).reshape(-1) for a, b in pairwise(_edges(n))]
    middle = np.einsum('bi,bj->ij', sums, sums) * BLOCKS / (BLOCKS - UNKNOWNS)
    wide = np.kron(inverse, np.eye(6))
    return np.asarray(wide @ middle @ wide.T)
