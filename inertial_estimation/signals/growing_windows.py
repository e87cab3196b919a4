# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Windows of samples that grow around an instant, and polynomials that are fitted in them.

Windows come in stacks of a few, as numpy takes as long to begin with a small one as with several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from inertial_estimation.sample import Array

Indices = NDArray[np.intp]

GROWTH = 1.4
"""
Ratio of one window's length to the next.

Sample by sample would cost several times more and gain a sixth of a window on average.
"""
LINE, PARABOLA = 1, 2
SPARE = {LINE: 1, PARABOLA: 2}
"""Samples of the shortest window beyond those that fix the polynomial."""
FACTORIALS = np.array([1.0, 1.0, 2.0])
LARGEST_BASIS = 3000
"""
Numbers in the basis of a stack of several windows.

Times 64 channels it is a product that OpenBLAS does not share out among threads, which on a busy
machine costs milliseconds.
"""


class Stack(NamedTuple):
    """Some windows, one longer than the other."""

    lengths: Array
    """Of each [s]."""
    samples: slice
    """Those of the longest."""
    rows: Array
    """
    What gives the derivatives at the instant, from the 0th, in each window.

    Shape (n_windows * (degree + 1), n), zero for samples outside the window.
    """
    basis: Array
    """What gives the polynomials at the members, shape (n_members, n_windows * (degree + 1))."""
    members: Indices
    """The samples of all windows, one window after the other, among those of the longest."""
    starts: Indices
    """Where each window begins among the members."""

    def fit(self, values: Array) -> tuple[Array, Array]:
        """
        Fit polynomials to samples.

        values (n_samples, n_channels); returns fits (n_windows, degree + 1, n_channels); errors
        (n_windows, n_channels).
        """
        inside = values[self.samples]
        fits = self.rows @ inside
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
    """
    Yield windows of the samples nearest to the instant, ever longer.

    times_ns (n_samples,) [ns].
    """
    times = np.asarray(1e-9 * times_ns, np.float64)
    several: list[slice] = []
    for samples in _windows(times, degree):
        members = sum(_size(own) for own in (*several, samples))
        if several and members * (len(several) + 1) * (degree + 1) > LARGEST_BASIS:
            yield _stack(times, several, degree)
            several = []
        several.append(samples)
    yield _stack(times, several, degree)


def _size(samples: slice) -> int:
    """Return the number of samples."""
    return int(samples.stop - samples.start)


def _stack(times: Array, several: Sequence[slice], degree: int) -> Stack:
    """Return a stack of windows, shortest first."""
    longest, n = several[-1], degree + 1
    starts = np.cumsum([0, *map(_size, several)])
    rows = np.zeros((n * len(several), _size(longest)))
    basis = np.zeros((starts[-1], n * len(several)))
    for k, own in enumerate(several):
        own_rows, own_basis = _fit(times[own], degree)
        columns = slice(n * k, n * (k + 1))
        rows[columns, own.start - longest.start : own.stop - longest.start] = own_rows
        basis[starts[k] : starts[k + 1], columns] = own_basis
    return Stack(
        lengths=np.array([times[own.stop - 1] - times[own.start] for own in several]),
        samples=longest,
        rows=rows,
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


def _fit(times: Array, degree: int) -> tuple[Array, Array]:
    """Return the rows and the basis of a window with samples at some times from the instant."""
    length = float(times[-1] - times[0])
    powers = np.vander(times / length, degree + 1, increasing=True).T
    rows = dposv(powers @ powers.T, powers)[1]
    units = FACTORIALS[: degree + 1] / length ** np.arange(degree + 1.0)
    return units[:, None] * rows, (powers / units[:, None]).T
