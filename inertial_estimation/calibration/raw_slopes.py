# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How raw readings of an FT sensor follow the gravity of one rigid body: raw = b + K a [T 5.4].

Of the body nothing is known, nor how the accelerometer is turned against the sensor: whatever
linear map lies between the two is in K. Six readings are fitted to the same four unknowns each,
so that least squares do not depend on how channels are weighed, nor on their units.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNKNOWNS = 4
"""Of each channel: three slopes and the offset."""
FEWEST = 7
"""Samples: with fewer, the centred readings of any body lie in five dimensions or less."""
ENOUGH_TO_JUDGE = 40
"""Samples from which those that are touched can be told apart."""
STARTS = 60
"""Of the search for samples that agree; an untouched draw is among them at 2 of 5 touched."""
DRAWN = 6
"""Samples of each start."""
JUDGES = 400
"""Samples, evenly spread, that starts are drawn from and held against."""
MOST_ROUNDS = 30
"""Of taking the half that fits best; it settles after a few."""
FAR = 6.0
"""
Standard deviations of six channels together beyond which a sample is touched: noise reaches that
once in 400 000 samples.
"""
MEDIAN_OF_SIX = 2.3126
"""Median distance of Gaussian noise in six directions, in standard deviations."""
FINEST = 1e-4
"""
Of the spread of a channel, the smallest noise that it is believed to have: quantisation and
hysteresis are not less, and exact data would have none to weigh by.
"""
HARMLESS = 2e-3
"""Of the spread of a channel: `FAR` times that off, a sample does not harm a fit."""
BLOCKS = 40
"""Parts of a log whose errors are taken as independent; 10 samples each at least."""
BLOCK = 10


class RawSlopes(NamedTuple):
    """An affine map from accelerometer to raw readings, and how well it is known."""

    slopes: Array
    """K, shape (6, 3) [raw unit per m/s^2]."""
    offset: Array
    """b, what the sensor would read without weight, shape (6,) [raw unit]."""
    covariance: Array
    """
    Of K by columns and then b, shape (24, 24). Errors that last for a while count as such if
    there are samples enough, `BLOCKS`; otherwise they are taken as independent.
    """
    noise: Array
    """Covariance of what is left of a sample, shape (6, 6)."""
    gram: Array
    """Sum of squares of accelerations about their mean, shape (3, 3)."""
    drift: Array
    """Change of the offset from the first to the last sample, along a line, (6,) [raw unit]."""
    drift_covariance: Array
    """
    Of `drift`, shape (6, 6): beside noise that lasts or does not, what noise of the accelerometer
    makes of gravity that moves on with time.
    """
    n_samples: int
    """Samples that were used."""


def fit_slopes(raw: Array, accelerations: Array) -> RawSlopes:
    """
    Fit the affine map to samples at rest.

    raw (n, 6); accelerations (n, 3) [m/s^2].
    """
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
    Tell which samples agree with one affine map; two of five may be anything.

    raw (n, 6); accelerations (n, 3) [m/s^2]; returns (n,).
    """
    n = len(raw)
    if n < ENOUGH_TO_JUDGE:
        return np.ones(n, dtype=bool)
    rows = np.column_stack([accelerations, np.ones(n)])
    spread = raw.std(axis=0)
    scaled = (raw - raw.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    half = _nearest(_best_start(rows, scaled))
    for _ in range(MOST_ROUNDS):
        distances = _distances(rows, scaled, half)
        nearest = _nearest(distances)
        if (nearest == half).all():
            break
        half = nearest
    distances = _distances(rows, scaled, half)
    # Half of the samples make the covariance too small by a factor that the median tells.
    kept = distances <= FAR / MEDIAN_OF_SIX * max(np.median(distances), 1.0)
    # An offset that drifts spreads samples without a gap, a touch leaves one: what is near to
    # those that are kept is kept as well.
    for _ in range(MOST_ROUNDS):
        near = kept | (_distances(rows, scaled, kept) <= FAR)
        if (near == kept).all():
            break
        kept = near
    return np.asarray(kept)


def _best_start(rows: Array, scaled: Array) -> Array:
    """Return how far all samples are from the map of a few that is nearest to most."""
    generator = np.random.default_rng(0)
    spread = np.linspace(0, len(rows) - 1, min(len(rows), JUDGES)).astype(int)
    some, of_some = rows[spread], scaled[spread]
    best, found = np.inf, np.zeros((UNKNOWNS, 6))
    for _ in range(STARTS):
        drawn = generator.choice(len(some), DRAWN, replace=False)
        solution = np.linalg.lstsq(some[drawn], of_some[drawn], rcond=None)[0]
        middle = float(np.median(np.linalg.norm(of_some - some @ solution, axis=1)))
        if middle < best:
            best, found = middle, solution
    return np.asarray(np.linalg.norm(scaled - rows @ found, axis=1))


def _nearest(distances: Array) -> Mask:
    """Return the smaller half of the distances, and a few more for the unknowns."""
    kept = np.zeros(len(distances), dtype=bool)
    kept[np.argsort(distances, kind='stable')[: (len(distances) + UNKNOWNS + 7) // 2]] = True
    return kept


def _distances(rows: Array, scaled: Array, half: Mask) -> Array:
    """Return how far all samples are from the map of some, in deviations of these."""
    solution = np.linalg.lstsq(rows[half], scaled[half], rcond=None)[0]
    left = scaled - rows @ solution
    spread = left[half].T @ left[half] / max(int(half.sum()) - UNKNOWNS, 1)
    factor = np.linalg.cholesky(_floored(spread, scaled, HARMLESS))
    found: Array = np.linalg.norm(np.linalg.solve(factor, left.T), axis=0)
    return found


def _floored(covariance: Array, raw: Array, share: float = FINEST) -> Array:
    """Return a covariance in which no channel has less than a share of its spread."""
    finest = (share * raw.std(axis=0)) ** 2
    return np.asarray(covariance + np.diag(np.where(finest > 0.0, finest, 1.0)))


def _drift(
    rows: Array, left: Array, slopes: Array, accelerations: Array, noise: Array
) -> tuple[Array, Array]:
    """Return what a line in time explains beside the other unknowns, (6,), and its covariance."""
    n = len(rows)
    time = np.linspace(-0.5, 0.5, n)
    by_gravity = np.linalg.lstsq(rows, time, rcond=None)[0]
    own = time - rows @ by_gravity
    told = max(float(own @ own), np.finfo(float).tiny)
    drift = own @ left / told
    squares = told * noise
    if n >= BLOCKS * BLOCK:
        last = left - np.outer(own, drift)
        sums = [own[a:b] @ last[a:b] for a, b in pairwise(_edges(n))]
        squares = np.einsum('bi,bj->ij', sums, sums) * BLOCKS / (BLOCKS - UNKNOWNS - 1)
    # Readings of an accelerometer at rest are as long as gravity but for its noise.
    variance = np.linalg.norm(accelerations, axis=1).var()
    of_accelerometer = n * variance * slopes @ by_gravity[:3]
    return drift, (squares + np.outer(of_accelerometer, of_accelerometer)) / told**2


def _edges(n: int) -> NDArray[np.int_]:
    """Return where blocks begin and end."""
    return np.linspace(0, n, BLOCKS + 1).astype(int)


def _covariance(rows: Array, left: Array, noise: Array) -> Array:
    """Return the covariance of slopes and level; of blocks where there are enough samples."""
    n = len(rows)
    inverse = np.linalg.inv(rows.T @ rows)
    if n < BLOCKS * BLOCK:
        return np.kron(inverse, noise)
    sums = [(rows[a:b].T @ left[a:b]).reshape(-1) for a, b in pairwise(_edges(n))]
    middle = np.einsum('bi,bj->ij', sums, sums) * BLOCKS / (BLOCKS - UNKNOWNS)
    wide = np.kron(inverse, np.eye(6))
    return np.asarray(wide @ middle @ wide.T)


def require_samples(n: int, left_out: dict[str, int], what: str) -> None:
    """Refuse too few samples."""
    if n >= FEWEST:
        return
    reasons = ', '.join(f'{count} {reason}' for reason, count in left_out.items() if count)
    raise LogError(
        f'{what}: {n} samples at rest, expected {FEWEST} at least'
        f'{f"; left out: {reasons}" if reasons else ""}: record more poses, and stay in each'
    )
