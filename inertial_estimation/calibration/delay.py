# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Two streams with clocks of their own, compared at instants between their samples.

Both are smoothed in the same way before they are evaluated anywhere: a spline through noisy
samples is less noisy halfway between them than at them, so that without it the best delay would be
drawn to half a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STEPS = 4
"""Steps of the even grid in one standard deviation of the smoothing."""
REACH = 4.0
"""Standard deviations that the smoothing looks to either side."""
GAP = 4.0
"""Times the usual period from which on samples are missing."""
FEWEST = 8
"""Samples that a stream must have to be smoothed."""
EXACT = 1e-7
"""To which a delay is searched for [s]."""


class DelayAtEdge(LogError):
    """The best delay is at the edge of what is searched."""


class Stream(NamedTuple):
    """Samples of one stream on its own clock."""

    times: Array
    """Rising, shape (n,) [s]."""
    values: Array
    """Shape (n, m)."""

    @property
    def period(self) -> float:
        """Usual time from one sample to the next [s]."""
        return float(np.median(np.diff(self.times)))


class SmoothStream(NamedTuple):
    """A stream that can be evaluated at any time."""

    spline: Callable[[Array], Array]
    first: float
    """From here on it is known [s]."""
    last: float
    """Up to here [s]."""
    gaps: Array
    """Where it is not known in between, shape (g, 2) [s]."""

    def knows(self, times: Array, around: float = 0.0) -> Mask:
        """
        Tell at which times it is known.

        times (n,) [s]; around [s]; returns (n,).
        """
        known: Mask = (times - around >= self.first) & (times + around <= self.last)
        for begin, end in self.gaps:
            known &= (times + around < begin) | (times - around > end)
        return known


def clean(what: str, times: Array, values: Array) -> Stream:
    """
    Return a stream without the samples that hold NaN or do not come after the one before.

    times (n,) [s]; values (n, m).
    """
    if times.ndim != 1:
        raise ShapeError(f'times of {what}', ('n',), times.shape)
    if values.ndim != 2 or len(values) != len(times):
        raise ShapeError(what, (len(times), 'm'), values.shape)
    kept = np.isfinite(times) & np.isfinite(values).all(axis=1)
    times, values = times[kept], values[kept]
    later = np.ones(len(times), dtype=bool)
    later[1:] = times[1:] > np.maximum.accumulate(times)[:-1]
    if later.sum() < FEWEST:
        raise LogError(f'{what}: {later.sum()} usable samples, at least {FEWEST} are needed')
    return Stream(times[later], values[later])


def smooth(stream: Stream, width: float) -> SmoothStream:
    """
    Smooth a stream with a Gaussian.

    width [s].
    """
    from scipy.interpolate import CubicSpline
    from scipy.ndimage import gaussian_filter1d

    times, values = stream
    margin = REACH * width
    if times[-1] - times[0] <= 2.0 * margin:
        raise LogError(
            f'a stream of {times[-1] - times[0]:.3g} s is too short to be smoothed over '
            f'{2.0 * margin:.3g} s: take a longer log'
        )
    grid = np.arange(times[0], times[-1], width / STEPS)
    even = CubicSpline(times, values)(grid)
    spline = CubicSpline(grid, gaussian_filter1d(even, STEPS, axis=0, truncate=REACH))
    wide = np.flatnonzero(np.diff(times) > GAP * stream.period)
    gaps = np.column_stack([times[wide] - margin, times[wide + 1] + margin])
    return SmoothStream(spline, times[0] + margin, grid[-1] - margin, gaps)


def search_delay(cost: Callable[[float], float], most: float, step: float) -> float:
    """
    Return the delay of least cost.

    most [s]; step [s].
    """
    from scipy.optimize import minimize_scalar

    n = max(2, int(np.ceil(most / step)))
    tried = np.linspace(-most, most, 2 * n + 1)
    costs = [cost(delay) for delay in tried]
    best = int(np.argmin(costs))
    if best in (0, len(tried) - 1):
        raise DelayAtEdge(
            f'the streams fit best with a delay of {tried[best]:.3g} s or more, the edge of the '
            "search: allow a larger 'most_delay', or check that their stamps are of one clock",
            about=('most_delay',),
        )
    bounds = (tried[best - 1], tried[best + 1])
    found = minimize_scalar(cost, bounds=bounds, method='bounded', options={'xatol': EXACT})
    return float(found.x)
