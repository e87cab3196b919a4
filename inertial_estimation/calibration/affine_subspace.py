# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The three-dimensional affine subspace of raw readings under gravity [T Lemma 5.1, 5.6-5.9].

One rigid body beyond a sensor makes readings that are affine in gravity, which has three
directions: six channels move along three, and noise alone moves them along the others. Joints
that move beyond the sensor, and hands that touch, move them along all six.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError

Array = NDArray[np.float64]

DIMENSIONS = 3
LEAST_GAP = 4.0
"""
Third singular value over the fourth. A body of 1 kg that tilts by 35 degrees makes 8 against a
noise of 0.1 N; limbs of a real iCub whose joints move make 1.3 to 1.9, tools on real arms 100.
"""
STANDSTILL = 1e-9
"""Of the readings, what round-off makes of readings that stay the same."""


@dataclass(frozen=True, eq=False)
class AffineSubspace:
    """Where raw readings lie, and how far from there."""

    point: Array
    """Mean of the readings, shape (6,) [raw unit], T 5.6."""
    metric: Array
    """Takes raw readings to units in which channels are comparable, shape (6, 6)."""
    basis: Array
    """Orthonormal in these units, columns, shape (6, 6); the first three span it, T 5.7."""
    singular_values: Array
    """Of the centred readings in these units, falling, shape (6,)."""
    n_samples: int

    @property
    def gap(self) -> float:
        """Third singular value over the fourth; infinite if the fourth alone is zero."""
        third, fourth = self.singular_values[DIMENSIONS - 1 : DIMENSIONS + 1]
        if third == 0.0:
            return 0.0
        return float(third / fourth) if fourth > 0.0 else float('inf')

    @property
    def spreads(self) -> Array:
        """Root mean square of the readings along each direction, shape (6,)."""
        return np.asarray(self.singular_values / np.sqrt(self.n_samples))

    def coordinates(self, raw: Array) -> Array:
        """
        Return coordinates along all directions, the first three within the subspace [T 5.9].

        raw (..., 6); returns (..., 6).
        """
        return np.asarray((raw - self.point) @ self.metric.T @ self.basis)

    def projection(self) -> Array:
        """
        Return the map of differences of raw readings onto the subspace.

        Returns (6, 6).
        """
        within = self.basis[:, :DIMENSIONS]
        return np.asarray(np.linalg.solve(self.metric, within @ within.T @ self.metric))

    def require_gap(self, what: str, least: float = LEAST_GAP) -> None:
        """Refuse readings that move along more than three directions."""
        if self.spreads[0] <= STANDSTILL * np.abs(self.metric @ self.point).max():
            raise LogError(
                f'{what}: the readings do not change while gravity does: the sensor is frozen, or '
                'nothing is beyond it'
            )
        if self.gap >= least:
            return
        values = ', '.join(f'{x:.3g}' for x in self.spreads)
        raise LogError(
            f'{what}: the readings move along more than three directions ({values}: the third is '
            f'{self.gap:.2g} times the fourth, expected {least:g} at least), so what is beyond '
            'the sensor is not one rigid body at rest that nothing touches: hold all joints '
            'beyond the sensor, and let nothing touch; or, if nothing moved, the load is too '
            'light for the noise of the sensor'
        )


def affine_subspace(raw: Array, metric: Array | None = None) -> AffineSubspace:
    """
    Find the subspace of readings.

    raw (n, 6); metric (6, 6).
    """
    units = np.eye(6) if metric is None else metric
    point = raw.mean(axis=0)
    triangle = np.linalg.qr((raw - point) @ units.T, mode='r')
    _, sigma, Vt = np.linalg.svd(triangle)
    return AffineSubspace(point, units, Vt.T, sigma, len(raw))
