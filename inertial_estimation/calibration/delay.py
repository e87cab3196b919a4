# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Streams with clocks of their own, smoothed and interpolated, and the delay between them.

A spline through noisy samples is less noisy halfway between them than at them, which would bias
the delay towards half a sample; so both streams are smoothed alike before they are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GRID_STEPS = 4
"""Steps of the even grid in one standard deviation of the smoothing."""
SMOOTHING_REACH = 4.0
"""Standard deviations of the smoothing to either side."""
MIN_GAP_PERIODS = 4.0
MIN_SAMPLES = 8
DELAY_TOLERANCE = 1e-7
"""[s]."""


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
        """Return at which times (n,) it is known, `around` [s] before and after."""
        known: Mask = (times - around >= self.first) & (times + around <= self.last)
        for begin, end in self.gaps:
            known &= (times + around < begin) | (times - around > end)
        return known


def clean(what: str, times: Array, values: Array) -> Stream:
    """Return a stream without NaN and stamps that go back; times (n,) [s]."""
    if times.ndim != 1:
        raise ShapeError(f'times of {what}', ('n',), times.shape)
    if values.ndim != 2 or len(values) != len(times):
        raise ShapeError(what, (len(times), 'm'), values.shape)
    kept = np.isfinite(times) & np.isfinite(values).all(axis=1)
    times, values = times[kept], values[kept]
    later = np.ones(len(times), dtype=bool)
    later[1:] = times[1:] > np.maximum.accumulate(times)[:-1]
    if later.sum() < MIN_SAMPLES:
        raise LogError(f'{what}: {later.sum()} usable samples, at least {MIN_SAMPLES} are needed')
    return Stream(times[later], values[later])


def smooth(stream: Stream, width: float) -> SmoothStream:
    """Smooth a stream with a Gaussian of standard deviation `width` [s]."""
    from scipy.interpolate import CubicSpline
    from scipy.ndimage import gaussian_filter1d

    times, values = stream
    margin = SMOOTHING_REACH * width
    if times[-1] - times[0] <= 2.0 * margin:
        raise LogError(
            f'a stream of {times[-1] - times[0]:.3g} s is too short to be smoothed over '
            f'{2.0 * margin:.3g} s'
        )
    grid = np.arange(times[0], times[-1], width / GRID_STEPS)
    even = CubicSpline(times, values)(grid)
    smoothed = gaussian_filter1d(even, GRID_STEPS, axis=0, truncate=SMOOTHING_REACH)
    spline = CubicSpline(grid, smoothed)
    wide = np.flatnonzero(np.diff(times) > MIN_GAP_PERIODS * stream.period)
    gaps = np.column_stack([times[wide] - margin, times[wide + 1] + margin])
    return SmoothStream(spline, times[0] + margin, grid[-1] - margin, gaps)


def search_delay(cost: Callable[[float], float], most: float, step: float) -> float:
    """Return the delay of least cost within `most`, on a grid of `step` first [s]."""
    from scipy.optimize import minimize_scalar

    n = max(2, int(np.ceil(most / step)))
    tried = np.linspace(-most, most, 2 * n + 1)
    costs = [cost(delay) for delay in tried]
    best = int(np.argmin(costs))
    if best in (0, len(tried) - 1):
        raise DelayAtEdge(
            f"the streams fit best with a delay of {tried[best]:.3g} s, the limit 'max_delay'",
            about=('max_delay',),
        )
    bounds = (tried[best - 1], tried[best + 1])
    options = {'xatol': DELAY_TOLERANCE}
    found = minimize_scalar(cost, bounds=bounds, method='bounded', options=options)
    return float(found.x)
