# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Six-vectors: transforms and cross products of motions and wrenches [T sections 2.2, 2.3 and 2.5].

Motions are [linear; angular], wrenches [force; moment]. All functions take stacks of arrays, and
raise ModelError or ShapeError for what is no numbers or of another shape.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.arguments import stacked

Array = NDArray[np.float64]


def hat(v: Array) -> Array:
    """
    Return the matrix of the cross product, ``hat(v) @ w = v x w`` [T 2.5].

    v (..., 3); returns (..., 3, 3).
    """
    v = stacked('v', v, 3)
    matrix = np.zeros((*v.shape, 3))
    x, y, z = np.moveaxis(v, -1, 0)
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -z, y, -x
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = z, -y, x
    return matrix


def inverse_pose(A_H_B: Array) -> Array:
    """
    Return the pose of A in B.

    A_H_B (..., 4, 4) [m]; returns (..., 4, 4) [m].
    """
    A_H_B = stacked('A_H_B', A_H_B, 4, 4)
    B_H_A = np.zeros_like(A_H_B)
    B_R_A = np.swapaxes(A_H_B[..., :3, :3], -1, -2)
    B_H_A[..., :3, :3] = B_R_A
    B_H_A[..., :3, 3] = -(B_R_A @ A_H_B[..., :3, 3:])[..., 0]
    B_H_A[..., 3, 3] = 1.0
    return B_H_A


def motion_transform(A_H_B: Array) -> Array:
    """
    Return A_X_B, which takes motions expressed in B to A [T 2.27].

    A_H_B (..., 4, 4) [m]; returns (..., 6, 6).
    """
    A_H_B = stacked('A_H_B', A_H_B, 4, 4)
    R = A_H_B[..., :3, :3]
    A_X_B = np.zeros((*A_H_B.shape[:-2], 6, 6))
    A_X_B[..., :3, :3] = A_X_B[..., 3:, 3:] = R
    A_X_B[..., :3, 3:] = hat(A_H_B[..., :3, 3]) @ R
    return A_X_B


def wrench_transform(A_H_B: Array) -> Array:
    """
    Return A_Xf_B, which takes wrenches in and about B to A; the transpose of B_X_A [T 2.47].

    A_H_B (..., 4, 4) [m]; returns (..., 6, 6).
    """
    return np.swapaxes(motion_transform(inverse_pose(A_H_B)), -1, -2)


def motion_cross(v: Array) -> Array:
    """
    Return the matrix v× of the cross product; the rate of A_X_B is A_X_B v× [T 2.36, 2.37].

    v (..., 6) [m/s, rad/s]; returns (..., 6, 6).
    """
    v = stacked('v', v, 6)
    matrix = np.zeros((*v.shape, 6))
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = hat(v[..., 3:])
    matrix[..., :3, 3:] = hat(v[..., :3])
    return matrix


def wrench_cross(v: Array) -> Array:
    """
    Return the dual cross product ×*, of a motion with a wrench [T 2.49, 2.50].

    v (..., 6) [m/s, rad/s]; returns (..., 6, 6).
    """
    return -np.swapaxes(motion_cross(v), -1, -2)
