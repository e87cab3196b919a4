# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which orientations a log holds, and which it lacks.

What an offset is, and what weight, shows only where the direction of gravity changes: readings
are affine in gravity, and gravity that stays in a plane of the body leaves the offset free to
move across that plane. A body that turns about one axis alone does just that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError

Array = NDArray[np.float64]

ENOUGH = 0.03
"""
Spread of gravity over its size from which a direction is excited: tilting by 20 degrees to each
side of a pose moves the direction along gravity by so much. Noise of an accelerometer has a
tenth of it or less, and biases the slope along that direction by the square of their ratio.
"""


class Orientations(NamedTuple):
    """How far gravity moves in the body, along three directions."""

    spreads: Array
    """Root mean square about the mean, over the size of gravity, falling, shape (3,)."""
    directions: Array
    """Unit vectors in the accelerometer's axes, rows, shape (3, 3)."""

    @property
    def n_excited(self) -> int:
        """Number of directions along which gravity moves."""
        return int((self.spreads >= ENOUGH).sum())

    def require_three(self, what: str) -> None:
        """Refuse what leaves a direction out."""
        n = self.n_excited
        if n == 3:
            return
        missing = self.directions[n]
        shape = ('a point', 'a line', 'a plane')[n]
        axis = ', '.join(f'{x + 0.0:.2f}' for x in missing)
        raise LogError(
            f'{what}: gravity moves along {n} of 3 directions of the body and stays in {shape}: '
            f'along ({axis}) of the accelerometer its spread is {self.spreads[n]:.2%} of g, '
            f'expected {ENOUGH:.0%} at least; turn the body about another axis as well'
        )


def orientations(accelerations: Array) -> Orientations:
    """
    Return how far gravity moves in the body.

    accelerations (n, 3) [m/s^2].
    """
    mean = accelerations.mean(axis=0)
    size = float(np.sqrt((accelerations**2).sum(axis=1).mean())) or 1.0
    triangle = np.linalg.qr(np.vstack([accelerations - mean, np.zeros((3, 3))]), mode='r')
    _, sigma, Vt = np.linalg.svd(triangle)
    return Orientations(sigma / (np.sqrt(len(accelerations)) * size), Vt)
