# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How well the mean of a signal is known whose samples resemble their neighbours.

A filter, a slow vibration or a drift makes samples say the same thing again: n of them tell no
more than n divided by the sum of their correlations [Sokal 1997, section 3].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 4
"""
Of giving back what a mean that follows the signal takes from its correlations: of a signal of ten
times that over which it resembles itself a quarter of the deviation. Of a much shorter one nothing
tells how far its mean is off, and what is stated is too small.
"""
ROUND_OFF = 1e-12
"""A signal that varies by less than this share of its size is constant."""


def deviations_of_means(signals: Array) -> Array:
    """
    Return the standard deviation of the mean of each signal.

    signals (n, m); returns (m,).
    """
    n = len(signals)
    if n < 2:
        return np.full(signals.shape[1], np.nan)
    centred = signals - signals.mean(axis=0)
    variances = (centred**2).mean(axis=0)
    varies = variances > (ROUND_OFF * np.abs(signals).max(axis=0)) ** 2
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, length, axis=0)) ** 2
    covariances = np.fft.irfft(spectrum, length, axis=0)[:n] / n
    overlap = (1.0 - np.arange(n) / n)[:, None]
    squares = np.zeros(signals.shape[1])
    for _ in range(ROUNDS):
        squares = _squares_of_means(covariances + overlap * squares, varies)
    return np.asarray(np.where(varies, np.sqrt(squares), 0.0))


def _squares_of_means(covariances: Array, varies: NDArray[np.bool_]) -> Array:
    """Return the variance of means of signals of these covariances by lags, (m,)."""
    n = len(covariances)
    correlations = covariances / np.where(varies, covariances[0], 1.0)
    pairs = correlations[: n // 2 * 2].reshape(-1, 2, covariances.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
    times = np.clip(2.0 * np.where(positive, pairs, 0.0).sum(axis=0) - 1.0, 1.0, n)
    found: Array = covariances[0] * times / n
    return found
