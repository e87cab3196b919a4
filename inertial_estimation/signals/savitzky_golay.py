# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by least squares: a polynomial through the samples of a window (Savitzky, Golay).

It has their true stamps, and is differentiated at an instant inside the window. In the middle a
quintic over twice the window has less noise in its derivatives than a cubic, and the error of its
acceleration by the shape of the motion is of the fourth power of the window, not of the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Stamps

try:
    compiled: Any = import_module('inertial_estimation.signals._streams')
except ImportError:
    # There was no compiler when the package was installed.
    compiled = None

CUBIC, QUINTIC = 3, 5
REGULAR_TOLERANCE = 1e-4
"""Relative difference of intervals that count as equal; a velocity errs as much."""
SPARE_SAMPLES = 3
"""
Samples beyond those that fix the polynomial, so that it is a fit.

Through ``order + 1`` samples it goes exactly, noise and all; two more take a quarter off the
noise of a cubic's second derivative. With a third, the usual 0.1 s refuse a stream of 50 Hz: they
hold five or six of its samples by turns, so that its derivatives would come and go.
"""
MIN_FILL = 0.75
"""Part of the window that the samples must span; a log with 20 ms gaps still fills 0.1 s."""
MAX_GAP = 0.3
"""
Part of the window that may pass between two samples.

A fit across a longer gap extrapolates: a lone sample behind a gap of 0.8 of the window has twenty
times the usual noise in its derivatives. Behind a gap of this length it has less than three times.
"""
FIRST_CAPACITY = 64


class Samples:
    """The last samples, in arrays that are written on and replaced when they are full."""

    __slots__ = ('_end', '_stamps', '_values')

    def __init__(self, n_channels: int) -> None:
        self._stamps = np.zeros(FIRST_CAPACITY, dtype=np.int64)
        self._values = np.zeros((FIRST_CAPACITY, n_channels))
        self._end = 0

    def push(self, stamp_ns: int, values: Array, kept: int) -> None:
        """Add a sample, and keep some before it; values (n_channels,)."""
        if self._end == len(self._stamps):
            self.grow(kept)
        self._stamps[self._end], self._values[self._end] = stamp_ns, values
        self._end += 1

    def grow(self, kept: int) -> None:
        """Make room behind the last samples."""
        size = max(FIRST_CAPACITY, 4 * kept)
        stamps, values = self.newest(kept)
        self._stamps = np.zeros(size, dtype=np.int64)
        self._values = np.zeros((size, values.shape[1]))
        self._stamps[:kept], self._values[:kept], self._end = stamps, values, kept

    def newest(self, count: int) -> tuple[Stamps, Array]:
        """Return the last samples, oldest first: stamps (count,) [ns]; values (count, n)."""
        last = slice(self._end - count, self._end)
        return self._stamps[last], self._values[last]


FilterFields = object if compiled is None else compiled.FilterFields
"""Numbers of a filter where compiled code finds them."""


class SavitzkyGolayFilter(FilterFields):  # type: ignore[misc, valid-type]
    """
    Savitzky-Golay differentiator of many channels that share their stamps, over a window [s].

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `MIN_FILL` of the window.
    """

    def __init__(self, n_channels: int, window: float, order: int = CUBIC) -> None:
        self.n_channels, self._order = n_channels, order
        self._window_ns = round(1e9 * window)
        self._least = order + 1 + SPARE_SAMPLES
        self._min_span_ns, self._max_gap_ns = MIN_FILL * self._window_ns, MAX_GAP * self._window_ns
        self._tolerance = REGULAR_TOLERANCE
        self._samples = Samples(n_channels)
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._count = 0
        """Samples in the window."""
        self._before_gap_ns = self._instant = -1
        self._weights = np.empty((3, 0))
        self._interval = self._run = 0
        self.ready = False
        """True if the samples fill the window well enough for a fit."""

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; values (n_channels,)."""
        if compiled is not None and values.flags.c_contiguous:
            compiled.append(self, stamp_ns, values)
            return
        if self._count:
            last_ns = int(self._stamps[-1])
            interval = stamp_ns - last_ns
            if interval > self._max_gap_ns:
                self._before_gap_ns = last_ns
            if abs(interval - self._interval) <= self._tolerance * self._interval:
                self._run += 1
            else:
                self._interval, self._run = interval, 1
        self._samples.push(stamp_ns, values, self._count)
        self._count += 1
        self._count -= int(np.searchsorted(self._stamps, stamp_ns - self._window_ns))
        self._instant = -1
        span = stamp_ns - int(self._stamps[0])
        self.ready = self._count >= self._least and span >= self._min_span_ns and not self._has_gap

    @property
    def _stamps(self) -> Stamps:
        return self._samples.newest(self._count)[0]

    @property
    def lack(self) -> str:
        """Reason that there is no fit; empty while `ready`."""
        if self.ready:
            return ''
        samples, window = f'{self._count} samples', 1e-9 * self._window_ns
        if self._count < self._least:
            return f'{samples} in a window of {window:g} s, a fit needs {self._least}'
        if self._has_gap:
            return f'a gap in a window of {window:g} s'
        span = 1e-9 * int(self._stamps[-1] - self._stamps[0])
        return f'{samples} span {span:.3g} s, a fit needs {MIN_FILL * window:.3g} s'

    @property
    def _has_gap(self) -> bool:
        return self._count > 0 and bool(self._stamps[0] <= self._before_gap_ns)

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return value and derivatives, (3, n_channels); NaN: the instant is not in the window."""
        if compiled is not None:
            found = np.empty((3, self.n_channels))
            if compiled.evaluate(self, stamp_ns, found):
                return found
        elif self.ready and stamp_ns >= self._stamps[0]:
            solve_together((self,), stamp_ns)
            return np.asarray(self._weights @ self._samples.newest(self._count)[1])
        return np.full((3, self.n_channels), np.nan)


def solve_together(filters: Iterable[object], stamp_ns: int) -> None:
    """
    Find the weights at an instant of polynomials of one order and window; equal stamps share them.

    `evaluate_at` then only multiplies by the values. A compiled one does all of it alone.
    """
    if compiled is not None:
        return
    alike: dict[bytes, list[SavitzkyGolayFilter]] = {}
    for one in [each for each in filters if isinstance(each, SavitzkyGolayFilter)]:
        if not one.ready or stamp_ns < one._stamps[0]:
            continue
        first, last, count = int(one._stamps[0]), int(one._stamps[-1]), one._count
        instant = min(stamp_ns, last)
        if instant == one._instant:
            continue
        one._instant = instant
        if one._run >= count - 1:
            span, lag = last - first, last - instant
            one._weights = _regular_weights(count, span, lag, one._window_ns, one._order)
        else:
            alike.setdefault(one._stamps.tobytes(), []).append(one)
    if alike:
        windows = [np.frombuffer(stamps, np.int64) for stamps in alike]
        found = _weights(windows, stamp_ns, one._window_ns, one._order)
        for same, weights in zip(alike.values(), found):
            for other in same:
                other._weights = weights


@lru_cache(maxsize=2048)
def _regular_weights(count: int, span_ns: int, lag_ns: int, window_ns: int, order: int) -> Array:
    return _weights([np.linspace(-span_ns, 0, count)], -lag_ns, window_ns, order)[0]


def _weights(
    windows: Sequence[Array | Stamps], instant_ns: int, window_ns: int, order: int
) -> list[Array]:
    """Return the weights of samples in value and derivatives at an instant, (3, n) for each."""
    # In units of half the window, -1 to 1, powers are best conditioned.
    unit = 0.5 * window_ns
    stamps = np.concatenate([window - window[-1] for window in windows])
    powers = np.ones((order + 1, len(stamps)))
    times = np.multiply(stamps, 1.0 / unit, out=powers[1])
    times += 1.0
    for k in range(1, order):
        np.multiply(powers[k], times, out=powers[k + 1])
    found, start = [], 0
    for window in windows:
        own = powers[:, start : start + len(window)]
        start += len(window)
        lag = max(int(window[-1]) - instant_ns, 0)
        wanted = _powers_and_derivatives(1.0 - lag / unit, 1e-9 * unit, order)
        found.append(dposv(own @ own.T, wanted)[1].T @ own)
    return found


@lru_cache(maxsize=64)
def _powers_and_derivatives(time: float, unit: float, order: int) -> Array:
    """Return each power at a time in a unit [s] and its two derivatives, shape (order + 1, 3)."""
    k = np.arange(order + 1.0)
    first = k * time ** np.maximum(k - 1.0, 0.0) / unit
    second = k * (k - 1.0) * time ** np.maximum(k - 2.0, 0.0) / unit**2
    return np.stack([time**k, first, second], axis=1)
