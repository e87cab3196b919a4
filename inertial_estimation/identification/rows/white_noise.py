# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much white noise signals of a motion can have at most, whatever is stated of them.

Fourth differences of samples hardly leave anything of a motion that is slow beside their rate,
and 70 times the variance of white noise. What they leave is more than noise while something
shakes the robot, so the lowest level that comes back counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ORDER, GAIN = 4, 70.0
"""Of the differences, and the sum of the squares of their weights."""
ALIKE = 2.0
"""Levels that differ by less are one: of a stretch of 100 samples one errs by a fifth."""
LONGEST = 100
"""Stretches whose mean is kept."""


class WhiteNoise:
    """The lowest level of signals so far."""

    def __init__(self) -> None:
        self._level: Array | None = None
        self._count: Array = np.zeros(0)

    def update(self, signals: Array) -> Array:
        """
        Look at a further stretch.

        Parameters
        ----------
        signals : ndarray, shape (n, k)
            Evenly sampled, NaN where there is nothing.

        Returns
        -------
        ndarray, shape (k,)
            Variance of white noise in each that is not exceeded; infinite where nothing tells.

        """
        new = _level(signals)
        if self._level is None or len(self._level) != len(new):
            self._level, self._count = new, np.ones(len(new))
            return self._level
        lower = new * ALIKE < self._level
        alike = ~lower & (new < self._level * ALIKE) & np.isfinite(new)
        count = np.minimum(self._count + 1.0, LONGEST)
        mean = self._level + (new - self._level) / count
        self._level = np.where(lower, new, np.where(alike, mean, self._level))
        self._count = np.where(lower, 1.0, np.where(alike, count, self._count))
        return self._level


def _level(signals: Array) -> Array:
    """Return the variance of white noise that leaves these differences; infinity: none are."""
    if len(signals) <= ORDER:
        return np.full(signals.shape[1], np.inf)
    differences = np.diff(signals, ORDER, axis=0)
    finite = np.isfinite(differences)
    count = finite.sum(axis=0)
    squares = np.where(finite, differences, 0.0) ** 2
    return np.where(count > 0, squares.sum(axis=0) / (GAIN * np.maximum(count, 1)), np.inf)
