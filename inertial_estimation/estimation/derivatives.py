# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First and second time derivative of many channels, from the past only.

A polynomial is fitted by least squares to the samples of the last ``window`` seconds and
differentiated at the newest one (Savitzky and Golay, with true stamps: a jittering or gappy
stream is fitted where its samples really are). No value of the future is used, and nothing is
returned before the window is nearly full: half a window would multiply the noise.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from inertial_estimation.errors import ShapeError
from inertial_estimation.sample import Array

Stamps = NDArray[np.int64]

REGULAR_TOLERANCE = 1e-4
"""Intervals that differ by less than this part count as equal; a velocity errs as much."""
SPARE_SAMPLES = 3
"""
Samples beyond those that fix the polynomial, so that it is a fit.

Through ``order + 1`` samples it goes exactly, noise and all; two more take a quarter off the
noise of a cubic's second derivative. With a third, the usual 0.1 s refuse a stream of 50 Hz: they
hold five or six of its samples by turns, so that its derivatives would come and go.
"""
LEAST_FILL = 0.75
"""Part of the window that the samples must span; a log with 20 ms gaps still fills 0.1 s."""
FIRST_CAPACITY = 64


class DerivativeFilter:
    """
    Causal Savitzky-Golay differentiator of many channels that share their stamps.

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `LEAST_FILL` of the window.

    Parameters
    ----------
    n_channels : int
        Number of channels.
    window : float
        Length of the past that is fitted [s].
    order : int
        Degree of the polynomial, at least 2.

    """

    def __init__(self, n_channels: int, window: float, order: int) -> None:
        self.n_channels = n_channels
        self.order = order
        self._window_ns = round(window * 1e9)
        self._rings = _Rings(n_channels, FIRST_CAPACITY)
        self._clock = _WindowClock(self._window_ns)

    def reset(self) -> None:
        """Forget every sample."""
        self._clock = _WindowClock(self._window_ns)

    @property
    def ready(self) -> bool:
        """Whether the samples fill the window well enough for `evaluate` to return numbers."""
        return self._clock.filled(self.order)

    @property
    def lack(self) -> str:
        """What is wanting for `evaluate` to return numbers; empty while `ready`."""
        clock, least = self._clock, least_samples(self.order)
        if clock.filled(self.order):
            return ''
        window = f'derivative_window ({1e-9 * self._window_ns:g} s)'
        held = f'{clock.count} of at least {least} samples in {window}'
        if (least - 1) * clock.interval > self._window_ns:
            return f'{held}: it is too short for this rate and derivative_order {self.order}'
        return f'{held}, which is filling'

    def append(self, stamp_ns: int, values: Array) -> None:
        """
        Take one sample; `evaluate` then answers for its stamp.

        Parameters
        ----------
        stamp_ns : int
            Stamp, later than the one before [ns].
        values : ndarray, shape (n_channels,)
            A NaN costs its own channel, for one window.

        """
        self._clock.push(stamp_ns)
        if self._clock.count > self._rings.capacity:
            self._rings = self._rings.doubled()
        self._rings.push(stamp_ns, values)

    def evaluate(self) -> Array:
        """
        Return the derivatives at the newest sample.

        Returns
        -------
        ndarray, shape (2, n_channels)
            First derivative [1/s] and second derivative [1/s^2] of each channel, a fresh array;
            all NaN while not `ready`.

        """
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

    def update(self, stamp_ns: int, values: Array) -> Array:
        """
        Take one sample and return the derivatives at it: `append`, then `evaluate`.

        Parameters
        ----------
        stamp_ns : int
            Stamp, later than the one before [ns].
        values : ndarray, shape (n_channels,)
            A NaN costs its own channel, for one window.

        Returns
        -------
        ndarray, shape (2, n_channels)
            First and second derivative of each channel.

        """
        self.append(stamp_ns, values)
        return self.evaluate()


def differentiate(
    stamps_ns: Stamps,
    values: Array,
    window: float,
    order: int,
) -> tuple[Array, Array]:
    """
    Differentiate a whole log, causally: what `DerivativeFilter` gives step by step.

    Parameters
    ----------
    stamps_ns : ndarray of int64, shape (n,)
        Increasing stamps [ns].
    values : ndarray, shape (n, n_channels)
        Samples.
    window : float
        Length of the past that is fitted [s].
    order : int
        Degree of the polynomial, at least 2.

    Returns
    -------
    first, second : ndarray, shape (n, n_channels)
        Derivatives at each sample [1/s, 1/s^2]; NaN where the window is not filled yet.

    Raises
    ------
    ShapeError
        If there is not one row of values for each stamp.

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


def least_samples(order: int) -> int:
    """
    Return how many samples a window must hold.

    Parameters
    ----------
    order : int
        Degree of the polynomial.

    Returns
    -------
    int

    """
    return order + 1 + SPARE_SAMPLES


class _WindowClock:
    """Which of the last samples are in the window, and whether their stamps are regular."""

    __slots__ = ('_interval', '_run', '_stamps', '_window_ns')

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._stamps: deque[int] = deque()
        self._interval = 0
        self._run = 0

    def push(self, stamp_ns: int) -> None:
        stamps = self._stamps
        if stamps:
            interval = stamp_ns - stamps[-1]
            if abs(interval - self._interval) <= REGULAR_TOLERANCE * self._interval:
                self._run += 1
            else:
                self._interval, self._run = interval, 1
        stamps.append(stamp_ns)
        oldest = stamp_ns - self._window_ns
        while stamps[0] < oldest:
            stamps.popleft()

    @property
    def count(self) -> int:
        return len(self._stamps)

    @property
    def span(self) -> int:
        return self._stamps[-1] - self._stamps[0]

    @property
    def interval(self) -> int:
        return self._interval

    @property
    def regular(self) -> bool:
        return self._run >= len(self._stamps) - 1

    def filled(self, order: int) -> bool:
        enough = len(self._stamps) >= least_samples(order)
        return enough and self.span >= LEAST_FILL * self._window_ns


class _Rings:
    """Last samples, each written twice, so that any last few of them are one slice."""

    __slots__ = ('_next', '_stamps', '_values', 'capacity')

    def __init__(self, n_channels: int, capacity: int) -> None:
        self.capacity = capacity
        self._stamps = np.zeros(2 * capacity, dtype=np.int64)
        self._values = np.zeros((2 * capacity, n_channels))
        self._next = 0

    def push(self, stamp_ns: int, values: Array) -> None:
        here, there = self._next, self._next + self.capacity
        self._stamps[here] = self._stamps[there] = stamp_ns
        self._values[here] = values
        self._values[there] = values
        self._next = here + 1 if here + 1 < self.capacity else 0

    def newest(self, count: int) -> tuple[Stamps, Array]:
        stop = self._next + self.capacity
        return self._stamps[stop - count : stop], self._values[stop - count : stop]

    def doubled(self) -> _Rings:
        other = _Rings(self._values.shape[1], 2 * self.capacity)
        for stamp, values in zip(*self.newest(self.capacity), strict=True):
            other.push(int(stamp), values)
        return other


def _runs(stamps_ns: Stamps, window_ns: int, order: int) -> list[tuple[int, int, int, bool]]:
    """Return (start, stop, count, regular) of each stretch that one set of rows can serve."""
    clock = _WindowClock(window_ns)
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


def _rows(stamps: Array | Stamps, order: int) -> Array:
    """Return what, times the values, gives both derivatives at the last stamp, (2, count)."""
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    powers = _powers((stamps - stamps[-1]) * (1e-9 / half) + 1.0, order)
    solution = dposv(powers @ powers.T, _derivatives_at_one(order))[1]
    rows: Array = solution.T @ powers
    rows[0] /= half
    rows[1] /= half * half
    return rows


def _rows_of_many(stamps: Stamps, order: int) -> Array:
    """Return the same for each row of stamps, shape (n, 2, count)."""
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


@cache
def _derivatives_at_one(order: int) -> Array:
    """Return the first and second derivative of each power at time 1, shape (order + 1, 2)."""
    k = np.arange(order + 1.0)
    derivatives = np.stack([k, k * (k - 1.0)], axis=1)
    derivatives.flags.writeable = False
    return derivatives
