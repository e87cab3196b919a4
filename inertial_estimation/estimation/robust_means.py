# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constants from readings of which some are wrong: a vector, or a rotation.

The start is, of some of the readings, the one with the smallest median distance to all others
(least median of squares); then those count that are near, and their mean takes its place. Two
fifths of the readings may be anything: the others decide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CANDIDATES = 60
"""Readings, evenly spread, of which one is the start; each is held against all."""
REACH = 3.0
"""Of the median distance: Gaussian noise in three directions has one in 10^5 beyond it."""
ROUND_OFF = 1e-12
"""Of the size of the readings: exact ones differ by so little."""
MOST_ROUNDS = 30
"""Of taking the mean; which readings are near settles after a few."""


def robust_vector(vectors: Array) -> Array:
    """Return the vector that most readings agree on; vectors (n, m); returns (m,)."""
    return _robust(vectors, lambda mean: mean)


def robust_rotation(rotations: Array) -> Array:
    """Return the rotation that most readings agree on; rotations (n, 3, 3); returns (3, 3)."""
    return _robust(rotations.reshape(-1, 9), _nearest_rotation).reshape(3, 3)


def _robust(points: Array, project: Callable[[Array], Array]) -> Array:
    """Return the projected mean of the points that are near to it, NaN if there are none."""
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return np.full(points.shape[1], np.nan)
    centre, kept = _start(points), np.zeros(len(points), dtype=bool)
    for _ in range(MOST_ROUNDS):
        near = _near(points, centre)
        if (near == kept).all():
            break
        kept, centre = near, project(points[near].mean(axis=0))
    return centre


def _start(points: Array) -> Array:
    """Return the candidate with the smallest median distance to all points."""
    n = len(points)
    candidates = np.unique(np.linspace(0, n - 1, min(n, CANDIDATES)).round().astype(np.intp))
    medians = [np.median(_distances(points, points[k])) for k in candidates]
    return np.asarray(points[candidates[int(np.argmin(medians))]])


def _near(points: Array, centre: Array) -> Mask:
    """Tell which points count; always half of them or more."""
    distances = _distances(points, centre)
    least = ROUND_OFF * float(np.abs(centre).max())
    return np.asarray(distances <= max(REACH * float(np.median(distances)), least))


def _distances(points: Array, centre: Array) -> Array:
    """Return Euclidean distances; those of rotation matrices grow with the angle between them."""
    return np.asarray(np.linalg.norm(points - centre, axis=1))


def _nearest_rotation(matrix: Array) -> Array:
    """Return the rotation nearest to a matrix, as nine numbers."""
    left, _, right = np.linalg.svd(matrix.reshape(3, 3))
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    return np.asarray((left * signs @ right).reshape(9))
