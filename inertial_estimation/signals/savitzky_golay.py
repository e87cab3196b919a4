# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by a polynomial through the last samples (Savitzky and Golay), with true stamps.

A polynomial is fitted by least squares to the samples of the last ``window`` seconds and
differentiated at the newest one, or at an instant inside the window. A jittering or gappy stream
is fitted where its samples really are. Nothing is returned before the window is nearly full: half
a window would multiply the noise.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.errors import ShapeError
from inertial_estimation.signals.windows import WindowClock, WindowFilter


class SavitzkyGolayFilter(WindowFilter):
    """
    Savitzky-Golay differentiator of many channels that share their stamps.

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `MIN_FILL` of the window [s].
    """

    def evaluate(self) -> Array:
        clock = self._clock
        if not clock.filled(self.order):
            return np.full((2, self.n_channels), np.nan)
        stamps, values = self._rings.newest(clock.count)
        if clock.regular:
            weights = _regular_weights(clock.count, clock.span, self.order)
        else:
            weights = _weights(stamps, self.order)
        derivatives: Array = weights @ values
        return derivatives

    def evaluate_at(self, stamp_ns: int) -> Array:
        clock, lag = self._clock, self._lag(stamp_ns)
        if lag is None:
            return np.full((3, self.n_channels), np.nan)
        stamps, values = self._rings.newest(clock.count)
        if clock.regular:
            weights = _regular_weights(clock.count, clock.span, self.order, lag)
        else:
            weights = _weights(stamps, self.order, lag)
        polynomial: Array = weights @ values
        return polynomial


def differentiate(
    stamps_ns: Stamps,
    values: Array,
    window: float,
    order: int,
) -> tuple[Array, Array]:
    """
    Differentiate a whole log, causally: what `SavitzkyGolayFilter` gives step by step.

    stamps_ns (n,) [ns]; values (n, n_channels); window [s]; returns first, second (n, n_channels)
    [1/s, 1/s^2].
    """
    if values.ndim != 2 or len(values) != len(stamps_ns):
        raise ShapeError('values', (len(stamps_ns), 'n_channels'), values.shape)
    derivatives = np.full((2, *values.shape), np.nan)
    for start, stop, count, regular in _runs(stamps_ns, round(window * 1e9), order):
        first = start - count + 1
        stamps = sliding_window_view(stamps_ns[first:stop], count)
        windows = sliding_window_view(values[first:stop], count, axis=0).swapaxes(1, 2)
        fitted = np.empty((stop - start, 2, values.shape[1]))
        if regular:
            for k, span in enumerate((stamps[:, -1] - stamps[:, 0]).tolist()):
                np.matmul(_regular_weights(count, span, order), windows[k], out=fitted[k])
        else:
            np.matmul(_weights_of_many(stamps, order), windows, out=fitted)
        derivatives[:, start:stop] = fitted.swapaxes(0, 1)
    return derivatives[0], derivatives[1]


def _runs(stamps_ns: Stamps, window_ns: int, order: int) -> list[tuple[int, int, int, bool]]:
    """Return (start, stop, count, regular) of consecutive windows with as many samples."""
    clock = WindowClock(window_ns)
    runs: list[tuple[int, int, int, bool]] = []
    for k, stamp in enumerate(stamps_ns.tolist()):
        clock.push(stamp)
        if not clock.filled(order):
            continue
        kind = (clock.count, clock.regular)
        if runs and runs[-1][1] == k and runs[-1][2:] == kind:
            runs[-1] = (runs[-1][0], k + 1, *kind)
        else:
            runs.append((k, k + 1, *kind))
    return runs


@lru_cache(maxsize=2048)
def _regular_weights(count: int, span_ns: int, order: int, lag_ns: int | None = None) -> Array:
    return _weights(np.linspace(0, span_ns, count), order, lag_ns)


def _weights(stamps: Array | Stamps, order: int, lag_ns: int | None = None) -> Array:
    """
    Return the weights of the samples.

    Returns (2, count) for the derivatives at the last stamp, or with a lag (3, count) for value
    and derivatives at an instant before it.
    """
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    powers = _powers((stamps - stamps[-1]) * (1e-9 / half) + 1.0, order)
    if lag_ns is None:
        wanted = _derivatives_at_one(order)
    else:
        wanted = _powers_and_derivatives(1.0 - 1e-9 * lag_ns / half, order)
    weights: Array = dposv(powers @ powers.T, wanted)[1].T @ powers
    weights[-2] /= half
    weights[-1] /= half * half
    return weights


def _weights_of_many(stamps: Stamps, order: int) -> Array:
    """Return the weights of `_weights` for each row of stamps, shape (n, 2, count)."""
    half = 0.5e-9 * (stamps[:, -1:] - stamps[:, :1])
    powers = _powers((stamps - stamps[:, -1:]) * (1e-9 / half) + 1.0, order).swapaxes(0, 1)
    gram = powers @ powers.swapaxes(1, 2)
    solution = np.linalg.solve(gram, _derivatives_at_one(order)[None])
    weights: Array = solution.swapaxes(1, 2) @ powers
    weights /= np.stack([half, half * half], axis=1)
    return weights


def _powers(times: Array, order: int) -> Array:
    """Return the powers of times in [-1, 1], where they are best conditioned."""
    powers = np.empty((order + 1, *times.shape))
    powers[0] = 1.0
    for k in range(order):
        np.multiply(powers[k], times, out=powers[k + 1])
    return powers


def _powers_and_derivatives(time: float, order: int) -> Array:
    """Return each power at a time and its two derivatives, shape (order + 1, 3)."""
    powers = time ** np.arange(order + 1.0)
    k = np.arange(1.0, order + 1.0)
    found = np.zeros((order + 1, 3))
    found[:, 0] = powers
    found[1:, 1] = k * powers[:-1]
    found[2:, 2] = (k * (k - 1.0))[1:] * powers[:-2]
    return found


@cache
def _derivatives_at_one(order: int) -> Array:
    """Return the first and second derivative of each power at time 1, shape (order + 1, 2)."""
    k = np.arange(order + 1.0)
    derivatives = np.stack([k, k * (k - 1.0)], axis=1)
    derivatives.flags.writeable = False
    return derivatives
