# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Products of 3-vectors, several at a time."""

from __future__ import annotations

import numpy as np

from inertial_estimation.sample import Array

_AHEAD, _BEHIND = [1, 2, 0], [2, 0, 1]


def cross(left: Array, right: Array) -> Array:
    """Return left x right, shape (..., 3): numpy's own takes several times as long."""
    return left[..., _AHEAD] * right[..., _BEHIND] - left[..., _BEHIND] * right[..., _AHEAD]


def turned_back(A_R_B: Array, A_vectors: Array) -> Array:
    """Return vectors of A in the axes of B, shape (n, 3), from n rotations (n, 3, 3)."""
    return np.asarray(np.einsum('nji,nj->ni', A_R_B, A_vectors))
