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

from inertial_estimation.errors import ShapeError
from inertial_estimation.sample import Array
from inertial_estimation.signals.windows import Stamps, WindowClock, WindowFilter


class SavitzkyGolayFilter(WindowFilter):
    """
    Savitzky-Golay differentiator of many channels that share their stamps.

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `LEAST_FILL` of the window [s].
    """

    def evaluate(self) -> Array:
        """Return the derivatives at the newest sample; returns (2, n_channels) [1/s]."""
        clock = self._clock
        if not clock.filled(self.order):
            return np.full((2, self.n_channels), np.nan)
        count = clock.count
        stamps, values = self._rings.newest(count)
        if clock.regular:
            rows = _regular_rows(count, clock.span, self.order)
        else:
            rows = _rows(stamps, self.order)
        derivatives: Array = rows @ values
        return derivatives

    def evaluate_at(self, stamp_ns: int) -> Array:
        """
        Return the polynomial and its derivatives at an instant inside the window.

        Returns (3, n_channels) [1/s].
        """
        clock = self._clock
        lag = max(clock.newest - stamp_ns, 0) if clock.count else 0
        if not clock.filled(self.order) or lag > clock.span:
            return np.full((3, self.n_channels), np.nan)
        count = clock.count
        stamps, values = self._rings.newest(count)
        if clock.regular:
            rows = _regular_rows_at(count, clock.span, self.order, lag)
        else:
            rows = _rows_at(stamps, self.order, lag)
        polynomial: Array = rows @ values
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
                np.matmul(_regular_rows(count, span, order), windows[k], out=fitted[k])
        else:
            np.matmul(_rows_of_many(stamps, order), windows, out=fitted)
        derivatives[:, start:stop] = fitted.swapaxes(0, 1)
    return derivatives[0], derivatives[1]


def _runs(stamps_ns: Stamps, window_ns: int, order: int) -> list[tuple[int, int, int, bool]]:
    """Return (start, stop, count, regular) of each stretch that one set of rows can serve."""
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


@lru_cache(maxsize=1024)
def _regular_rows(count: int, span_ns: int, order: int) -> Array:
    return _rows(np.linspace(0, span_ns, count), order)


@lru_cache(maxsize=1024)
def _regular_rows_at(count: int, span_ns: int, order: int, lag_ns: int) -> Array:
    return _rows_at(np.linspace(0, span_ns, count), order, lag_ns)


def _rows(stamps: Array | Stamps, order: int) -> Array:
    """Return what, times the values, gives both derivatives at the last stamp, (2, count)."""
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    powers = _powers((stamps - stamps[-1]) * (1e-9 / half) + 1.0, order)
    solution = dposv(powers @ powers.T, _derivatives_at_one(order))[1]
    rows: Array = solution.T @ powers
    rows[0] /= half
    rows[1] /= half * half
    return rows


def _rows_at(stamps: Array | Stamps, order: int, lag_ns: int) -> Array:
    """Return what gives value and derivatives at an instant before the last stamp, (3, count)."""
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    powers = _powers((stamps - stamps[-1]) * (1e-9 / half) + 1.0, order)
    wanted = _powers_and_derivatives(1.0 - 1e-9 * lag_ns / half, order)
    solution = dposv(powers @ powers.T, wanted)[1]
    rows: Array = solution.T @ powers
    rows[1] /= half
    rows[2] /= half * half
    return rows


def _rows_of_many(stamps: Stamps, order: int) -> Array:
    """Return what `_rows` does for each row of stamps, shape (n, 2, count)."""
    half = 0.5e-9 * (stamps[:, -1:] - stamps[:, :1])
    powers = _powers((stamps - stamps[:, -1:]) * (1e-9 / half) + 1.0, order).swapaxes(0, 1)
    gram = powers @ powers.swapaxes(1, 2)
    solution = np.linalg.solve(gram, _derivatives_at_one(order)[None])
    rows: Array = solution.swapaxes(1, 2) @ powers
    rows /= np.stack([half, half * half], axis=1)
    return rows


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
