# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The correction of a matrix that makes readings what they should be, held back by a prior.

In wrenches that the prior matrix makes of raw readings, moments over a length, so that all six
are newtons: target = (1 + D) wrench - offset, with D small. The prior counts as much as further
readings would that spread by the square root of its weight along each of the six directions, and
of which D = 0 is true. The offset has no prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUND_OFF = 1e-12
"""Singular values below this times the largest, or their square, are round-off."""


class Spectrum(NamedTuple):
    """Readings, decomposed once for all weights."""

    mean: Array
    """Of the readings, shape (6,) [N]."""
    sizes: Array
    """Root mean square along each direction, about the mean, falling, shape (6,) [N]."""
    directions: Array
    """Of the readings' principal axes, rows of unit length, shape (6, 6)."""
    target_mean: Array
    """Of what is missing, shape (6,) [N]."""
    projected: Array
    """How what is missing goes with each direction, one direction a row, shape (6, 6) [N]."""

    @classmethod
    def of(cls, wrenches: Array, missing: Array, counts: Array | None = None) -> Spectrum:
        """
        Decompose.

        wrenches (n, 6) [N]; missing (n, 6) [N]; counts (n,).
        """
        n = len(wrenches)
        parts = np.full(n, 1.0 / n) if counts is None else counts / counts.sum()
        mean, target_mean = parts @ wrenches, parts @ missing
        root = np.sqrt(parts)[:, None]
        left, sizes, directions = np.linalg.svd(root * (wrenches - mean), full_matrices=False)
        projected = left.T @ (root * (missing - target_mean))
        return cls(mean, sizes, directions, target_mean, projected)

    def correction(self, weight: float) -> tuple[Array, Array]:
        """
        Return the correction with a weight of the prior.

        weight [N^2]; returns D (6, 6); offset (6,) [N].
        """
        filtered = self._gains(weight)[:, None] * self.projected
        D: Array = filtered.T @ self.directions
        offset: Array = D @ self.mean - self.target_mean
        return D, offset

    def shares(self, weight: float) -> Array:
        """
        Return how much the data decide along each direction.

        weight [N^2]; returns (6,).
        """
        found: Array = self._gains(weight) * self.sizes
        return found

    def _gains(self, weight: float) -> Array:
        """Return what multiplies the projections along each direction, (6,) [1/N]."""
        kept = self.sizes > ROUND_OFF * max(self.sizes[0], ROUND_OFF)
        if np.isinf(weight):
            return np.zeros(len(self.sizes))
        safe = np.where(kept, self.sizes, 1.0)
        gains: Array = np.where(kept, safe / (safe**2 + weight), 0.0)
        return gains
