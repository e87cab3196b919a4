# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Robust residual scales, and covariances of fits to correlated samples.

Neighbouring samples of a log share posture, touches and filters. Contiguous blocks of them serve
as the draws for covariances, and as the parts that cross-validation holds out.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import LogError, ModelError, ShapeError

Blocks = NDArray[np.intp]

SCALE = np.repeat([1.0, 0.1], 3)
"""Makes moments comparable to forces: a moment over 0.1 m counts as a force, shape (6,)."""
N_BLOCKS, MIN_BLOCK_SAMPLES = 10, 5
"""Contiguous parts of a log, and samples of each at least."""
MAX_BLOCK_SHARE = 0.95
"""Share of a direction above which one block holds too much of it to show its own errors."""
QUANTILE, NORMAL_QUANTILE = 0.8, 1.2816
"""Quantile of absolute residuals that gives their scale, and its value for unit normal noise."""
OUTLIER_DEVIATIONS = 6.0
HUBER_DEVIATIONS = 2.0
ROBUST_ROUNDS = 10
TOUCH_REACH = 0.1
"""Duration of a touch before and after its outliers [s]."""
MIN_TOUCH = 3.0
"""Residuals below are no touch [N]."""
MAX_DISTURBED = 0.5
CORRELATION_ROUNDS = 4
"""Corrections of the correlations for the estimated mean, see `deviations_of_means`."""
ROUND_OFF, ROTATION_TOLERANCE = 1e-12, 1e-6


def require_shape(name: str, array: NDArray[Any], *shape: int) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise ShapeError(name, shape, array.shape)


def require_direction(direction: int) -> None:
    """Refuse anything but 1 and -1."""
    if direction not in (1, -1):
        raise ModelError(f"'direction' is {direction!r}, expected 1 or -1", about=('direction',))


def require_rotation(name: str, R: Array) -> None:
    """Refuse a matrix (3, 3) that is no rotation."""
    if np.abs(R @ R.T - np.eye(3)).max() > ROTATION_TOLERANCE or np.linalg.det(R) < 0.0:
        raise ModelError(f"'{name}' holds no rotation", about=(name,))


def scales(residuals: Array) -> Array:
    """Return robust standard deviations of columns; residuals (n, m), returns (m,)."""
    found: Array = np.quantile(np.abs(residuals), QUANTILE, axis=0) / NORMAL_QUANTILE
    return found


def distances(residuals: Array, least: float = 0.0) -> Array:
    """Return the largest residual of each sample in robust deviations of its column, (n,)."""
    size = np.maximum(scales(residuals), least)
    floor = 1e-9 * max(1.0, float(np.abs(residuals).max(initial=0.0)))
    found: Array = (np.abs(residuals) / np.maximum(size, floor)).max(axis=1)
    return found


def huber_weights(residuals: Array) -> Array:
    """Return the Huber weight of each sample; residuals (n, m), returns (n,)."""
    far = np.maximum(distances(residuals), HUBER_DEVIATIONS)
    found: Array = np.minimum(1.0, HUBER_DEVIATIONS / far)
    return found


def near(found: Mask, times: NDArray[Any], reach: float) -> Mask:
    """Return the samples (n,) within some time of those that are found; times (n,) rising."""
    at = times[found]
    first = np.searchsorted(at, times - reach, 'left')
    return np.asarray(np.searchsorted(at, times + reach, 'right') > first)


def undisturbed(times: Array, residuals: Array, reach: float, least: float = 0.0) -> Mask:
    """
    Return the samples that are neither outliers nor within `reach` [s] of one.

    times (n,) [s]; residuals (n, m); least: smaller residuals are no outliers; returns (n,).
    """
    far = distances(residuals, least / OUTLIER_DEVIATIONS) > OUTLIER_DEVIATIONS
    return ~near(far, times, reach)


def robustly_undisturbed(columns: Array, values: Array, times: Array, ridge: float = 0.0) -> Mask:
    """
    Return the `undisturbed` samples (n,) of a fit of values by columns and a constant.

    columns (n, p); values (n, m) [N]; ridge: mean square of columns that the prior of zero counts
    as.
    """
    n, p = columns.shape
    rows, prior = np.column_stack([columns, np.ones(n)]), np.sqrt(ridge) * np.eye(p, p + 1)
    targets, weights = np.vstack([values, np.zeros((p, values.shape[1]))]), np.ones(n)
    for _ in range(ROBUST_ROUNDS):
        root = np.sqrt(np.append(weights, np.full(p, weights.sum())))[:, None]
        A = root * np.vstack([rows, prior])
        residuals = values - rows @ np.linalg.lstsq(A, root * targets, rcond=None)[0]
        weights = huber_weights(residuals)
    return undisturbed(times, residuals, TOUCH_REACH, MIN_TOUCH)


def require_mostly_undisturbed(n_disturbed: int, n: int, name: str) -> None:
    """Refuse a log in which something else acts most of the time."""
    if n_disturbed > MAX_DISTURBED * n:
        raise LogError(
            f'{n_disturbed} of {n} samples of {name} are disturbed, limit {MAX_DISTURBED:.0%}'
        )


def contiguous_blocks(times: Array) -> Blocks:
    """Return the block of each sample, of `N_BLOCKS` of equal size; times (n,) [s]."""
    if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
        raise ModelError("'times' go back or are not finite")
    if len(times) < N_BLOCKS * MIN_BLOCK_SAMPLES:
        least = N_BLOCKS * MIN_BLOCK_SAMPLES
        raise LogError(f'{len(times)} usable samples, {N_BLOCKS} blocks need {least}')
    return np.arange(len(times)) * N_BLOCKS // len(times)


def fit_by_blocks(columns: Array, values: Array, blocks: Blocks) -> tuple[Array, Array]:
    """
    Return the least-squares solution, and its covariance by blocks for each column of values.

    columns (n, p), values (n, k), blocks (n,); returns (p, k) and (k, p, p).
    """
    scale = np.sqrt((columns**2).mean(axis=0))
    Q, R = np.linalg.qr(columns / scale)
    back = np.linalg.inv(R) / scale[:, None]
    found = np.linalg.solve(R, Q.T @ values) / scale[:, None]
    covariances = covariances_by_blocks(Q, values - columns @ found, blocks)
    return found, np.asarray(back @ covariances @ back.T)


def covariances_by_blocks(basis: Array, left: Array, blocks: Blocks) -> Array:
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
    Return standard deviations of means of correlated signals [Sokal 1997, section 3].

    Subtracting the mean lowers the estimated correlations; `CORRELATION_ROUNDS` give that back.
    signals (n, m); returns (m,).
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
