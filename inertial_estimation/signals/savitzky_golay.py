# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by least squares: a polynomial through the samples of a window (Savitzky, Golay).

It has their true stamps, and is differentiated at an instant inside the window. In the middle a
quintic over twice the window has less noise in its derivatives than a cubic, and the error of its
acceleration by the shape of the motion is of the fourth power of the window, not of the second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Stamps

try:
    compiled: Any = import_module('inertial_estimation.signals._window')
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
            size = max(FIRST_CAPACITY, 4 * kept)
            stamps, old = self.newest(kept)
            self._stamps = np.zeros(size, dtype=np.int64)
            self._values = np.zeros((size, len(values)))
            self._stamps[:kept], self._values[:kept], self._end = stamps, old, kept
        self._stamps[self._end], self._values[self._end] = stamp_ns, values
        self._end += 1

    def newest(self, count: int) -> tuple[Stamps, Array]:
        """Return the last samples, oldest first: stamps (count,) [ns]; values (count, n)."""
        last = slice(self._end - count, self._end)
        return self._stamps[last], self._values[last]


class SavitzkyGolayFilter:
    """
    Savitzky-Golay differentiator of many channels that share their stamps, over a window [s].

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `MIN_FILL` of the window.
    """

    def __init__(self, n_channels: int, window: float, order: int = CUBIC) -> None:
        self.n_channels, self._order = n_channels, order
        self._window_ns = round(1e9 * window)
        self._samples = Samples(n_channels)
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._stamps: deque[int] = deque()
        self._before_gap_ns = self._instant = -1
        self._weights = np.empty((3, 0))
        self._interval = self._run = 0
        self.ready = False
        """True if the samples fill the window well enough for a fit."""

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; values (n_channels,)."""
        stamps = self._stamps
        if stamps:
            interval = stamp_ns - stamps[-1]
            if interval > MAX_GAP * self._window_ns:
                self._before_gap_ns = stamps[-1]
            if abs(interval - self._interval) <= REGULAR_TOLERANCE * self._interval:
                self._run += 1
            else:
                self._interval, self._run = interval, 1
        stamps.append(stamp_ns)
        while stamps[0] < stamp_ns - self._window_ns:
            stamps.popleft()
        self._samples.push(stamp_ns, values, len(stamps) - 1)
        self._instant = -1
        self.ready = (
            len(stamps) > self._order + SPARE_SAMPLES
            and stamp_ns - stamps[0] >= MIN_FILL * self._window_ns
            and not self._has_gap
        )

    @property
    def lack(self) -> str:
        """Samples that are missing for a fit; empty while `ready`."""
        if self.ready:
            return ''
        window = 1e-9 * self._window_ns
        gap = ' without a gap' if self._has_gap else ''
        return (
            f'{len(self._stamps)} samples in a window of {window:g} s, a fit needs '
            f'{self._order + 1 + SPARE_SAMPLES} that span {MIN_FILL * window:.3g} s{gap}'
        )

    @property
    def _has_gap(self) -> bool:
        return bool(self._stamps) and self._stamps[0] <= self._before_gap_ns

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return value and derivatives, (3, n_channels); NaN: the instant is not in the window."""
        stamps, count = self._stamps, len(self._stamps)
        if not self.ready or stamp_ns < stamps[0]:
            return np.full((3, self.n_channels), np.nan)
        if compiled is not None:
            found, lag = np.empty((3, self.n_channels)), max(stamps[-1] - stamp_ns, 0)
            how = self._run >= count - 1, lag, 0.5 * self._window_ns, self._order
            compiled.evaluate(*self._samples.newest(count), *how, found)
            return found
        solve_together((self,), stamp_ns)
        polynomial: Array = self._weights @ self._samples.newest(count)[1]
        return polynomial


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
        instant = min(stamp_ns, one._stamps[-1])
        if instant == one._instant:
            continue
        one._instant, count = instant, len(one._stamps)
        if one._run >= count - 1:
            span, lag = one._stamps[-1] - one._stamps[0], one._stamps[-1] - instant
            one._weights = _regular_weights(count, span, lag, one._window_ns, one._order)
        else:
            alike.setdefault(one._samples.newest(count)[0].tobytes(), []).append(one)
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
