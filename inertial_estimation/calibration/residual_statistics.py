# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Channels that cannot be right, robust residual scales, covariances of fits to correlated samples.

Neighbouring samples of a log share posture, touches and filters. Contiguous blocks of them serve
as the draws for covariances, and as the parts that cross-validation holds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import LogError, ModelError, ShapeError
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.ft_calibration import WRENCH_SCALE
from inertial_estimation.model.sensors import AXES

MIN_SAMPLES = 7
"""With fewer, centred readings of any body lie in five dimensions or less."""
CONSTANT_ROUND_OFF = 1e-13
USUAL_BIAS = 0.2
"""Bias of an accelerometer without calibration: 20 mg in data sheets, deviation [m/s^2]."""
MIN_CELSIUS, MAX_CELSIUS = -60.0, 150.0
"""Of an FT sensor; rooms have 290 K and more."""
SCALE = WRENCH_SCALE
"""Makes moments comparable to forces: a moment over 0.1 m counts as a force, shape (6,)."""
N_BLOCKS, MIN_BLOCK_SAMPLES = 10, 5
"""Contiguous parts of a log, and samples of each at least."""
MAX_BLOCK_SHARE = 0.95
"""Share of a direction above which one block holds too much of it to show its own errors."""
QUANTILE, NORMAL_QUANTILE = 0.8, 1.2816
"""Quantile of absolute residuals that gives their scale, and its value for unit normal noise."""
STARTS, SCORED_SAMPLES = 100, 400
"""Of the random search for a consensus: with two of five touched, a start of six is clean."""
MAX_ROUNDS = 30
OUTLIER_DEVIATIONS = 6.0
"""Of six channels together: noise exceeds it once in 400 000 samples."""
MEDIAN_OF_SIX = 2.3126
"""Median norm of unit Gaussian noise in six dimensions."""
TOUCH_REACH = 0.1
"""Duration of a touch before and after its outliers [s]."""
MIN_TOUCH = 3.0
"""Residuals below are no touch [N]."""
MAX_LEFT_OUT = 0.4
"""Share of samples that do not fit the others: above it the majority is uncertain."""
MAX_MODEL_ERROR, NOISE_DEVIATIONS = 0.25, 3.0
"""Residual over load, and over noise, that contradicts the model; real sensors reach 0.2."""
CORRELATION_ROUNDS = 4
"""Corrections of the correlations for the estimated mean, see `deviations_of_means`."""
ROUND_OFF = 1e-12


def require_shape(name: str, array: NDArray[Any], *shape: int) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise ShapeError(name, shape, array.shape)


def require_direction(direction: int) -> None:
    """Refuse anything but 1 and -1."""
    if direction not in (1, -1):
        raise ModelError(f"'direction' is {direction!r}, expected 1 or -1", about=('direction',))


def constant_channels(readings: Array) -> Mask:
    """Return the channels (6,) that never change while others do; readings (n, 6)."""
    known = readings[np.isfinite(readings).all(axis=1)]
    if len(known) < MIN_SAMPLES:
        return np.zeros(6, dtype=bool)
    constant: Mask = np.ptp(known, axis=0) <= CONSTANT_ROUND_OFF * np.abs(known).max(axis=0)
    return constant & (not constant.all())


def implausible(temperatures: Array) -> str:
    """Return the fault of temperatures (n,) of an FT sensor in Celsius; empty: none."""
    usual = float(np.median(temperatures))
    if MIN_CELSIUS <= usual <= MAX_CELSIUS:
        return ''
    return f'temperature {usual:.2f}, expected {MIN_CELSIUS:g} to {MAX_CELSIUS:g} degrees Celsius'


def names_of(channels: Mask) -> str:
    """Return the names of channels (6,), by number and as of a wrench."""
    return ', '.join(f'{k + 1} ({AXES[k]})' for k in np.flatnonzero(channels))


def scales(residuals: Array) -> Array:
    """Return robust standard deviations of columns; residuals (n, m), returns (m,)."""
    found: Array = np.quantile(np.abs(residuals), QUANTILE, axis=0) / NORMAL_QUANTILE
    return found


def near(found: Mask, times: NDArray[Any], reach: float) -> Mask:
    """Return the samples (n,) within some time of those that are found; times (n,) rising."""
    at = times[found]
    first = np.searchsorted(at, times - reach, 'left')
    return np.asarray(np.searchsorted(at, times + reach, 'right') > first)


def consensus(
    left_by: Callable[[Indices | Mask], Array], n: int, least: Array, unknowns: int, start: int
) -> Mask:
    """
    Return the samples (n,) that fit one model, by least trimmed squares; two of five may not.

    left_by: returns the residuals (n, 6) of all samples in the fit of some; least (6,): smallest
    standard deviations; unknowns: of a channel; start: samples that determine a fit.
    """

    def nearest(distances: Array) -> Mask:
        """Return the nearest half of the samples, and a few more for the unknowns."""
        kept = np.zeros(n, dtype=bool)
        kept[np.argsort(distances, kind='stable')[: (n + unknowns + 7) // 2]] = True
        return kept

    def distances(some: Mask) -> Array:
        """Return distances (n,) from the fit of some samples, in their standard deviations."""
        left = left_by(some)
        covariance = left[some].T @ left[some] / max(int(some.sum()) - unknowns, 1)
        factor = np.linalg.cholesky(covariance + np.diag(least**2))
        return np.asarray(np.linalg.norm(np.linalg.solve(factor, left.T), axis=0))

    whole = np.ones(n, dtype=bool)
    if (np.abs(left_by(whole)) <= OUTLIER_DEVIATIONS * least).all():
        return whole
    # The best of random starts.
    generator, best, half = np.random.default_rng(0), np.inf, whole
    scored = np.linspace(0, n - 1, min(n, SCORED_SAMPLES)).astype(np.intp)
    for _ in range(STARTS):
        drawn = scored[generator.choice(len(scored), start, replace=False)]
        off = np.linalg.norm(left_by(drawn) / least, axis=1)
        if (middle := float(np.median(off[scored]))) < best:
            best, half = middle, nearest(off)
    for _ in range(MAX_ROUNDS):
        before, half = half, nearest(distances(half))
        if (half == before).all():
            break
    far = distances(half)
    # Half of the samples makes the covariance too small, by a factor that the median shows.
    kept = far <= OUTLIER_DEVIATIONS / MEDIAN_OF_SIX * max(np.median(far), 1.0)
    # A drifting offset spreads samples without a gap, a touch leaves one: add near samples.
    for _ in range(MAX_ROUNDS):
        before, kept = kept, kept | (distances(kept) <= OUTLIER_DEVIATIONS)
        if (kept == before).all():
            break
    return np.asarray(kept)


def undisturbed(columns: Array, values: Array, times: Array, ridge: float = 0.0) -> Mask:
    """
    Return the samples (n,) of a fit of values by columns and a constant in which nothing acts.

    columns (n, p); values (n, 6) [N]; ridge: mean square of columns that the prior of zero counts
    as.
    """
    n, p = columns.shape
    rows, prior = np.column_stack([columns, np.ones(n)]), np.sqrt(ridge) * np.eye(p, p + 1)
    if n < 2 * (p + 4):
        return np.ones(n, dtype=bool)

    def left_by(some: Indices | Mask) -> Array:
        A = np.vstack([rows[some], np.sqrt(len(rows[some])) * prior])
        targets = np.vstack([values[some], np.zeros((p, 6))])
        return np.asarray(values - rows @ np.linalg.lstsq(A, targets, rcond=None)[0])

    least = np.full(6, MIN_TOUCH / OUTLIER_DEVIATIONS)
    return ~near(~consensus(left_by, n, least, p + 1, p + 4), times, TOUCH_REACH)


def contradictions(
    subject: str, what: str, residual: Array, load: Array, noise: Array, left_out: float
) -> Iterator[Finding]:
    """
    Yield errors of a fit that contradicts its model: no calibration is to be written from it.

    residual, load, noise (6,): root mean squares of samples that are used [N, Nm]; left_out: share
    of samples that do not fit the others.
    """
    left, size, least = (float(np.linalg.norm(x / SCALE)) for x in (residual, load, noise))
    if left_out > MAX_LEFT_OUT:
        yield finding('disturbed', subject, level=Level.ERROR, share=left_out)
    if left > max(MAX_MODEL_ERROR * size, NOISE_DEVIATIONS * least):
        share = left / max(size, ROUND_OFF)
        yield finding('residual', subject, level=Level.ERROR, what=what, share=share)


def contiguous_blocks(times: Array) -> Indices:
    """Return the block of each sample, of `N_BLOCKS` of equal size; times (n,) [s]."""
    if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
        raise ModelError("'times' go back or are not finite")
    if len(times) < N_BLOCKS * MIN_BLOCK_SAMPLES:
        least = N_BLOCKS * MIN_BLOCK_SAMPLES
        raise LogError(f'{len(times)} usable samples, {N_BLOCKS} blocks need {least}')
    return np.arange(len(times)) * N_BLOCKS // len(times)


def fit_by_blocks(columns: Array, values: Array, blocks: Indices) -> tuple[Array, Array]:
    """Return a fit (p, k) and its covariances (k, p, p); columns (n, p), values (n, k)."""
    scale = np.sqrt((columns**2).mean(axis=0))
    Q, R = np.linalg.qr(columns / scale)
    back = np.linalg.inv(R) / scale[:, None]
    found = np.linalg.solve(R, Q.T @ values) / scale[:, None]
    covariances = covariances_by_blocks(Q, values - columns @ found, blocks)
    return found, np.asarray(back @ covariances @ back.T)


def covariances_by_blocks(basis: Array, left: Array, blocks: Indices) -> Array:
    """
    Return covariances of least squares whose independent draws are whole blocks.

    basis (n, p): orthonormal columns; left (n, k): residuals; blocks (n,); returns (k, p, p).
    """
    edges = np.searchsorted(blocks, np.arange(int(blocks[-1]) + 2))
    draws = np.zeros((len(edges) - 1, left.shape[1], basis.shape[1]))
    alone, known = np.zeros((basis.shape[1],) * 2), 0.0
    for block, (first, last) in enumerate(pairwise(edges)):
        part = basis[first:last]
        shares, axes = np.linalg.eigh(part.T @ part)
        shows = shares < MAX_BLOCK_SHARE
        shown, hidden = axes[:, shows], axes[:, ~shows]
        whole = shown.T @ (part.T @ left[first:last]) / np.sqrt(1.0 - shares[shows, None])
        draws[block] = (shown @ whole).T
        known += float(shares[shows].sum())
        alone += hidden * shares[~shows] @ hidden.T
    found = [_shrunk(draws[:, k], known, alone, basis.T @ basis) for k in range(left.shape[1])]
    return np.array(found)


def _shrunk(draws: Array, known: float, alone: Array, gram: Array) -> Array:
    """Return the covariance of a sum of draws, shrunk towards white noise [Ledoit, Wolf 2004]."""
    size = (draws**2).sum() / known if known > 0.0 else np.nan
    plain, target = draws.T @ draws + size * alone, size * gram
    apart = ((plain - target) ** 2).sum()
    if not apart > 0.0:
        return target
    products = np.einsum('bi,bj->bij', draws, draws)
    n = len(draws)
    share = min(1.0, ((n * products - plain) ** 2).sum() / n**2 / apart)
    found: Array = share * target + (1.0 - share) * plain
    return found


def deviations_of_means(signals: Array) -> Array:
    """
    Return deviations of means of correlated signals [Sokal 1997, section 3]; signals (n, m).

    Subtracting the mean lowers the estimated correlations; `CORRELATION_ROUNDS` give that back.
    """
    n, m = signals.shape
    if n < 2:
        return np.full(m, np.nan)
    centred = signals - signals.mean(axis=0)
    varies = (centred**2).mean(axis=0) > (ROUND_OFF * np.abs(signals).max(axis=0)) ** 2
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, length, axis=0)) ** 2
    measured = np.fft.irfft(spectrum, length, axis=0)[:n] / n
    overlap = (1.0 - np.arange(n) / n)[:, None]
    squares = np.zeros(m)
    for _ in range(CORRELATION_ROUNDS):
        covariances = measured + overlap * squares
        correlations = covariances / np.where(varies, covariances[0], 1.0)
        pairs = correlations[: n // 2 * 2].reshape(-1, 2, m).sum(axis=1)
        positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
        times = np.clip(2.0 * np.where(positive, pairs, 0.0).sum(axis=0) - 1.0, 1.0, n)
        squares = covariances[0] * times / n
    return np.asarray(np.where(varies, np.sqrt(squares), 0.0))
