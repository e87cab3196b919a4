# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by a polynomial through the last samples (Savitzky and Golay), with true stamps.

A polynomial is fitted by least squares to the samples of the last ``window`` seconds and
differentiated at an instant inside the window. A jittering or gappy stream is fitted where its
samples really are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.signals.windows import WindowFilter


class SavitzkyGolayFilter(WindowFilter):
    """
    Savitzky-Golay differentiator of many channels that share their stamps.

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `MIN_FILL` of the window [s].
    """

    def evaluate_at(self, stamp_ns: int) -> Array:
        clock, lag = self._clock, self._lag(stamp_ns)
        if lag is None:
            return np.full((3, self.n_channels), np.nan)
        stamps, values = self._samples.newest(clock.count)
        if clock.regular:
            weights = _regular_weights(clock.count, clock.span, lag, self.order)
        else:
            weights = _weights(stamps, lag, self.order)
        polynomial: Array = weights @ values
        return polynomial


@lru_cache(maxsize=2048)
def _regular_weights(count: int, span_ns: int, lag_ns: int, order: int) -> Array:
    return _weights(np.linspace(0, span_ns, count), lag_ns, order)


def _weights(stamps: Array | Stamps, lag_ns: int, order: int) -> Array:
    """Return the weights of samples in value and derivatives before the last one, (3, count)."""
    # In units of half the span, -1 to 1, powers are best conditioned.
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    times = (stamps - stamps[-1]) * (1e-9 / half) + 1.0
    powers = np.vander(times, order + 1, increasing=True).T
    wanted = _powers_and_derivatives(1.0 - 1e-9 * lag_ns / half, order)
    weights: Array = dposv(powers @ powers.T, wanted)[1].T @ powers
    weights[1] /= half
    weights[2] /= half * half
    return weights


@lru_cache(maxsize=64)
def _powers_and_derivatives(time: float, order: int) -> Array:
    """Return each power at a time and its two derivatives, shape (order + 1, 3)."""
    k = np.arange(order + 1.0)
    first = k * time ** np.maximum(k - 1.0, 0.0)
    second = k * (k - 1.0) * time ** np.maximum(k - 2.0, 0.0)
    return np.stack([time**k, first, second], axis=1)
