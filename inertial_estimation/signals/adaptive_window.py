# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by a window that adapts to the motion (Janabi-Sharifi, Hayward and Chen 2000).

The window of each channel grows from the newest samples into the past while a line that is fitted
to all its samples passes each of them within the noise band; the slope of the last such line is
the first derivative. The second comes from a parabola and a window of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.signals.windows import WindowFilter

GROWTH = 1.4
"""
Ratio of one window's length to the next.

Sample by sample would cost several times more and gain a sixth of a window on average.
"""
LINE, PARABOLA = 1, 2
SHOWN = {LINE: slice(0, 2), PARABOLA: slice(2, 3)}
"""Derivatives that are taken from each polynomial."""
SPARE = {LINE: 1, PARABOLA: 2}
"""Samples of the shortest window beyond those that fix the polynomial."""
FACTORIALS = np.array([1.0, 1.0, 2.0])
MAX_BASIS = 3000
"""
Numbers in the basis of a stack of several windows.

Times 64 channels it is a product that OpenBLAS does not share out among threads, which on a busy
machine costs milliseconds.
"""


class Stack(NamedTuple):
    """Some windows, one longer than the other."""

    samples: slice
    """Those of the longest."""
    weights: Array
    """
    Weights of the samples in the 0th, 1st, ... derivative at the instant, for each window.

    Shape (n_windows * (degree + 1), n), zero for samples outside the window.
    """
    basis: Array
    """Polynomials at the members, shape (n_members, n_windows * (degree + 1))."""
    members: NDArray[np.intp]
    """The samples of all windows, one window after the other, among those of the longest."""
    starts: NDArray[np.intp]
    """First member of each window."""

    def fit(self, values: Array) -> tuple[Array, Array]:
        """
        Fit polynomials to samples.

        values (n_samples, n_channels); returns fits (n_windows, degree + 1, n_channels); errors
        (n_windows, n_channels).
        """
        inside = values[self.samples]
        fits = self.weights @ inside
        errors = self.basis @ fits
        errors -= inside.take(self.members, axis=0)
        np.abs(errors, out=errors)
        shape = len(self.starts), -1, values.shape[1]
        return fits.reshape(shape), np.maximum.reduceat(errors, self.starts, axis=0)


@lru_cache(maxsize=256)
def regular_stacks(count: int, span_ns: int, lag_ns: int, degree: int) -> tuple[Stack, ...]:
    """Return the windows of samples with equal intervals, shortest first."""
    return tuple(stacks(np.linspace(lag_ns - span_ns, lag_ns, count), degree))


def stacks(times_ns: NDArray[Any], degree: int) -> Iterator[Stack]:
    """Yield ever longer windows of the samples nearest to the instant; times_ns (n,) [ns]."""
    times = np.asarray(1e-9 * times_ns, np.float64)
    several: list[slice] = []
    for samples in _windows(times, degree):
        members = sum(own.stop - own.start for own in (*several, samples))
        if several and members * (len(several) + 1) * (degree + 1) > MAX_BASIS:
            yield _stack(times, several, degree)
            several = []
        several.append(samples)
    yield _stack(times, several, degree)


class AdaptiveWindowFilter(WindowFilter):
    """
    Differentiator of many channels that share their stamps, each with a window of its own.

    It is ready once the samples fill the longest window [s], as the filter of fixed window is; the
    noise band is in units of the values.
    """

    def __init__(self, n_channels: int, window: float, band: float, highest: int = 2) -> None:
        super().__init__(n_channels, window, PARABOLA)
        self._band = band
        self._degrees = (LINE, PARABOLA)[:highest]

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return the fits at an instant, whose windows grow to both sides of it."""
        lag = self._lag(stamp_ns)
        fits = np.full((3, self.n_channels), np.nan)
        if lag is None:
            return fits
        count = len(self._stamps)
        stamps, values = self._samples.newest(count)
        known: Mask = np.logical_and.reduce(np.isfinite(values), axis=0)
        if not known.all():
            values = np.where(known, values, 0.0)
        for degree in self._degrees:
            if self._regular:
                windows: Iterable[Stack] = regular_stacks(count, self._span, lag, degree)
            else:
                windows = stacks(stamps - (stamps[-1] - lag), degree)
            found = self._grow(windows, values, known)
            fits[SHOWN[degree]] = found[SHOWN[degree]]
        return fits

    def _grow(self, windows: Iterable[Stack], values: Array, known: Mask) -> Array:
        """Return the fit of each channel in its longest window, (degree + 1, n_channels)."""
        found = []
        grown = np.zeros(self.n_channels, dtype=np.intp)
        growing = known
        for stack in windows:
            fits, errors = stack.fit(values)
            found.append(fits)
            fitting = np.logical_and.accumulate(errors <= self._band, axis=0) & growing
            grown += fitting.sum(axis=0)
            growing = fitting[-1]
            if not growing.any():
                break
        # The shortest window is taken as it is: there is none that would be better.
        last = np.maximum(grown - 1, 0)
        best: Array = np.concatenate(found)[last, :, np.arange(self.n_channels)].T
        best[:, ~known] = np.nan
        return best


def _stack(times: Array, several: Sequence[slice], degree: int) -> Stack:
    """Return a stack of windows, shortest first."""
    longest, n = several[-1], degree + 1
    sizes = [own.stop - own.start for own in several]
    starts = np.cumsum([0, *sizes])
    weights = np.zeros((n * len(several), sizes[-1]))
    basis = np.zeros((starts[-1], n * len(several)))
    for k, own in enumerate(several):
        columns = slice(n * k, n * (k + 1))
        inside = slice(own.start - longest.start, own.stop - longest.start)
        length = float(times[own.stop - 1] - times[own.start])
        powers = np.vander(times[own] / length, n, increasing=True).T
        units = (FACTORIALS[:n] / length ** np.arange(float(n)))[:, None]
        weights[columns, inside] = units * dposv(powers @ powers.T, powers)[1]
        basis[starts[k] : starts[k + 1], columns] = (powers / units).T
    return Stack(
        samples=longest,
        weights=weights,
        basis=basis,
        members=np.concatenate([np.arange(own.start, own.stop) for own in several])
        - longest.start,
        starts=starts[:-1],
    )


def _windows(times: Array, degree: int) -> Iterator[slice]:
    """Yield the samples of ever longer windows; times from the instant."""
    nearest = np.argsort(np.abs(times), kind='stable')
    firsts, lasts = np.minimum.accumulate(nearest), np.maximum.accumulate(nearest)
    size = degree + 1 + SPARE[degree]
    while True:
        size = min(size, len(times))
        yield slice(int(firsts[size - 1]), int(lasts[size - 1]) + 1)
        if size == len(times):
            return
        size = max(size + 1, int(GROWTH * size))
