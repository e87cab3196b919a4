# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much white noise signals of a motion can have at most, whatever is stated of them.

Fourth differences of samples hardly leave anything of a motion that is slow beside their rate,
and 70 times the variance of white noise. What they leave is more than noise while something
shakes the robot, so the lowest level counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ORDER, GAIN = 4, 70.0
"""Of the differences, and the sum of the squares of their weights."""
ALIKE = 2.0
"""Levels that differ by less are one: of a stretch of 100 samples one errs by a fifth."""
LEAST = 90
"""Differences that make a level: the lowest ones of a few would be far below the noise."""
LONGEST = 100
"""Levels whose mean is kept."""


class WhiteNoise:
    """The lowest level of signals so far."""

    def __init__(self) -> None:
        self._forget(0)

    def _forget(self, k: int) -> None:
        """Begin with so many signals."""
        self._level, self._alike = np.full(k, np.inf), np.zeros(k)
        self._squares, self._count = np.zeros(k), np.zeros(k)

    def update(self, signals: Array) -> Array:
        """
        Look at a further stretch.

        signals (n, k); returns (k,).
        """
        if signals.shape[1] != len(self._level):
            self._forget(signals.shape[1])
        squares, count = _differences(signals)
        stands = (count > 0) & (squares == 0.0)
        self._squares += squares
        self._count += np.where(stands, 0, count)
        whole = self._count >= LEAST
        self._learn(np.where(whole, self._squares / (GAIN * np.maximum(self._count, 1)), np.inf))
        self._squares[whole] = self._count[whole] = 0.0
        return np.where(stands, 0.0, self._level)

    def _learn(self, new: Array) -> None:
        """Take new levels over that are lower, and the mean of those that are alike."""
        lower = new * ALIKE < self._level
        alike = ~lower & (new < self._level * ALIKE)
        self._alike[alike] = np.minimum(self._alike[alike] + 1.0, LONGEST)
        self._level[alike] += (new[alike] - self._level[alike]) / self._alike[alike]
        self._level[lower], self._alike[lower] = new[lower], 1.0


def _differences(signals: Array) -> tuple[Array, Array]:
    """Return the sum of squares of differences of each signal, and how many there are."""
    if len(signals) <= ORDER:
        return np.zeros(signals.shape[1]), np.zeros(signals.shape[1])
    differences = np.diff(signals, ORDER, axis=0)
    finite = np.isfinite(differences)
    return np.sum(np.where(finite, differences, 0.0) ** 2, axis=0), finite.sum(axis=0)
