# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The bias of an accelerometer from gravity alone: at rest, readings less the bias are equally long.

``|a|^2 = 2 d a + c`` is linear in the bias d. Orientations all around tell it; those of a leg that
swings to some side do not, as gains of the axes that differ by a percent look the same there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.blocks import covariances_by_blocks
from inertial_estimation.calibration.excitation import orientations

Array = NDArray[np.float64]

FEWEST = 10
"""Samples, for four unknowns and their deviations."""
BLOCKS = 20
"""Parts of a log whose errors are taken as independent."""
MOST_ROUNDS = 20
"""Of taking the half that fits best; it settles after a few."""
AROUND = 0.25
"""Spread of gravity over its size along each direction, `Orientations`; 0.58 is all around."""
WORTH = 5.0
"""Deviations from which a bias is one."""
LEAST = 0.03
"""Smaller ones are not worth a word [m/s^2]."""
KNOWN = 0.05
"""A bias whose deviations are larger is not known [m/s^2]."""


class Bias(NamedTuple):
    """What an accelerometer reads too much."""

    bias: Array
    """Shape (3,) [m/s^2]."""
    deviations: Array
    """Standard deviations, shape (3,) [m/s^2]; infinite if orientations do not tell."""

    @property
    def is_known(self) -> bool:
        """Whether orientations tell it."""
        return bool((self.deviations < KNOWN).all())

    @property
    def is_there(self) -> bool:
        """Whether it is known and not zero."""
        beyond = np.abs(self.bias) > np.maximum(WORTH * self.deviations, LEAST)
        return self.is_known and bool(beyond.any())


def accelerometer_bias(accelerations: Array) -> Bias:
    """Accelerations (n, 3) [m/s^2]."""
    n = len(accelerations)
    unknown = Bias(np.zeros(3), np.full(3, np.inf))
    if n < FEWEST or orientations(accelerations).spreads[2] < AROUND:
        return unknown
    rows = np.column_stack([2.0 * accelerations, np.ones(n)])
    squares = (accelerations**2).sum(axis=1)
    half = np.ones(n, dtype=bool)
    found = np.zeros(4)
    for _ in range(MOST_ROUNDS):
        found, _, rank, _ = np.linalg.lstsq(rows[half], squares[half], rcond=1e-6)
        if rank < 4:
            return unknown
        left = np.abs(squares - rows @ found)
        nearest = np.zeros(n, dtype=bool)
        nearest[np.argsort(left, kind='stable')[: (n + 5) // 2]] = True
        if (nearest == half).all():
            break
        half = nearest
    left = np.abs(squares - rows @ found)
    # The median of the sizes of noise is 0.6745 of its deviation.
    noise = float(np.median(left)) / 0.6745
    kept = left <= max(WORTH * noise, 1e-9 * float(squares.max()))
    found = np.linalg.lstsq(rows[kept], squares[kept], rcond=None)[0]
    return Bias(found[:3], _deviations(rows[kept], squares[kept] - rows[kept] @ found)[:3])


def _deviations(rows: Array, left: Array) -> Array:
    """Return the deviations of least squares, (4,)."""
    scale = np.sqrt((rows**2).mean(axis=0))
    Q, R = np.linalg.qr(rows / scale)
    blocks = np.arange(len(rows)) * min(BLOCKS, len(rows)) // len(rows)
    back = np.linalg.inv(R) / scale[:, None]
    covariance = back @ covariances_by_blocks(Q, left[:, None], blocks)[0] @ back.T
    return np.asarray(np.sqrt(np.diagonal(covariance)))
