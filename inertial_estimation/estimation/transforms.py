# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches in other frames, many at once.

Poses are *row poses*, as Pinocchio keeps them in memory: shape (..., 4, 3), the transposed
rotation above the origin, so that ``points_A = points_B @ pose[:3] + pose[3]``. Wrenches are
pairs of rows, shape (..., 2, 3): force above moment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SKEW = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ]
)
_SKEW.flags.writeable = False


def row_pose(homogeneous: Array) -> Array:
    """Return the row pose (..., 4, 3) of a homogeneous matrix (..., 4, 4)."""
    return np.concatenate(
        [np.swapaxes(homogeneous[..., :3, :3], -1, -2), homogeneous[..., None, :3, 3]], axis=-2
    )


def compose(A_pose_B: Array, B_pose_C: Array, out: Array | None = None) -> Array:
    """Return the row pose of C in A."""
    pose: Array = np.matmul(B_pose_C, A_pose_B[..., :3, :], out=out)
    pose[..., 3, :] += A_pose_B[..., 3, :]
    return pose


def cross_matrix(p: Array, out: Array | None = None) -> Array:
    """Return K (..., 3, 3) with ``f @ K = p x f``; out (..., 9)."""
    matrices: Array = np.matmul(p, _SKEW, out=out).reshape(*p.shape, 3)
    return matrices


def to_parent(A_pose_B: Array, B_f: Array, cross: Array, out: Array | None = None) -> Array:
    """Return wrenches in and about B in and about A; cross: `cross_matrix` of the origin."""
    A_f: Array = np.matmul(B_f, A_pose_B[..., :3, :], out=out)
    A_f[..., 1:, :] += A_f[..., :1, :] @ cross
    return A_f


def to_child(A_pose_B: Array, A_f: Array, cross: Array) -> Array:
    """Return wrenches in and about A in and about B; undoes `to_parent`."""
    about_B = A_f.copy()
    about_B[..., 1:, :] -= A_f[..., :1, :] @ cross
    return about_B @ A_pose_B[..., :3, :].swapaxes(-1, -2)
