# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by a window that adapts to the motion (Janabi-Sharifi, Hayward and Chen 2000).

The window of each channel grows from the newest samples into the past while a line that is fitted
to all its samples passes each of them within the noise band; the slope of the last such line is
the first derivative. At rest the window is long and the noise small, in motion it is short and so
is the lag.

The second derivative comes from a parabola and a window of its own that grows by the same rule.
Applying the line again to the first derivative would need the noise band of that derivative, which
changes with each window and is not known; and inside the window of a line the curvature is by
construction not distinguishable from noise.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.sample import Array
from inertial_estimation.signals.growing_windows import (
    LINE,
    PARABOLA,
    Stack,
    regular_stacks,
    stacks,
)
from inertial_estimation.signals.windows import Rings, WindowClock

Flags = NDArray[np.bool_]


class AdaptiveWindowFilter:
    """
    Differentiator of many channels that share their stamps, each with a window of its own.

    It is ready once the samples fill the longest window, as it is for the filter of fixed window.

    window [s]; band [unit].
    """

    def __init__(self, n_channels: int, window: float, band: float, highest: int = 2) -> None:
        self.n_channels = n_channels
        self._band = band
        self._degrees = (LINE, PARABOLA)[:highest]
        self._window_ns = round(window * 1e9)
        self._rings = Rings(n_channels)
        self._clock = WindowClock(self._window_ns)

    def reset(self) -> None:
        """Forget every sample."""
        self._clock = WindowClock(self._window_ns)

    @property
    def ready(self) -> bool:
        """Whether the samples fill the window well enough for `evaluate` to return numbers."""
        return self._clock.filled(PARABOLA)

    @property
    def lack(self) -> str:
        """What is wanting for `evaluate` to return numbers; empty while `ready`."""
        return self._clock.lack(PARABOLA)

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; `evaluate` then answers for its stamp; values (n_channels,)."""
        self._clock.push(stamp_ns)
        if self._clock.count > self._rings.capacity:
            self._rings = self._rings.doubled()
        self._rings.push(stamp_ns, values)

    def evaluate(self) -> Array:
        """Return the derivatives at the newest sample; returns (2, n_channels) [1/s]."""
        if not self._clock.count:
            return np.full((2, self.n_channels), np.nan)
        return self.evaluate_at(self._clock.newest)[1:]

    def update(self, stamp_ns: int, values: Array) -> Array:
        """
        Take one sample and return the derivatives at it: `append`, then `evaluate`.

        values (n_channels,); returns (2, n_channels).
        """
        self.append(stamp_ns, values)
        return self.evaluate()

    def evaluate_at(self, stamp_ns: int) -> Array:
        """
        Return the fits at an instant: the window grows to both sides of it, as far as it can.

        Returns (3, n_channels) [1/s].
        """
        return self.fit_at(stamp_ns)[0]

    def fit_at(self, stamp_ns: int) -> tuple[Array, Array]:
        """
        Return what `evaluate_at` does, and the lengths of the windows it comes from.

        Returns fits (3, n_channels); lengths (2, n_channels) [s].
        """
        clock = self._clock
        fits = np.full((3, self.n_channels), np.nan)
        lengths = np.full((2, self.n_channels), np.nan)
        lag = max(clock.newest - stamp_ns, 0) if clock.count else 0
        if not clock.filled(PARABOLA) or lag > clock.span:
            return fits, lengths
        stamps, values = self._rings.newest(clock.count)
        known: Flags = np.logical_and.reduce(np.isfinite(values), axis=0)
        if not known.all():
            values = np.where(known, values, 0.0)
        for degree in self._degrees:
            if clock.regular:
                windows: Iterable[Stack] = regular_stacks(clock.count, clock.span, lag, degree)
            else:
                windows = stacks(stamps - (clock.newest - lag), degree)
            found, lengths[degree - 1] = self._grow(windows, values, known)
            if degree == LINE:
                fits[:2] = found
            else:
                fits[2] = found[2]
        return fits, lengths

    def _grow(self, windows: Iterable[Stack], values: Array, known: Flags) -> tuple[Array, Array]:
        """Return the fit of each channel in its longest window, and the length of that."""
        tried, found = [], []
        grown = np.zeros(self.n_channels, dtype=np.intp)
        growing = known
        for stack in windows:
            fits, errors = stack.fit(values)
            tried.append(stack.lengths)
            found.append(fits)
            fitting = np.logical_and.accumulate(errors <= self._band, axis=0) & growing
            grown += fitting.sum(axis=0)
            growing = fitting[-1]
            if not growing.any():
                break
        # The shortest window is taken as it is: there is none that would be better.
        last = np.maximum(grown - 1, 0)
        best = np.concatenate(found)[last, :, np.arange(self.n_channels)].T
        best[:, ~known] = np.nan
        return best, np.where(known, np.concatenate(tried)[last], np.nan)
