# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Six-vectors: transforms and cross products of motions and wrenches [T sections 2.2, 2.3 and 2.5].

Motions are [linear; angular], wrenches [force; moment]. All functions take stacks of arrays.

The estimator keeps poses as *row poses*, as Pinocchio does in memory: shape (..., 4, 3), the
transposed rotation above the origin, so that ``points_A = points_B @ pose[:3] + pose[3]``, and
wrenches as pairs of rows, shape (..., 2, 3): force above moment.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array


def hat(v: Array) -> Array:
    """Return (..., 3, 3), the matrix of the cross product of v (..., 3) [T 2.5]."""
    matrix = np.zeros((*v.shape, 3))
    x, y, z = np.moveaxis(v, -1, 0)
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -z, y, -x
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = z, -y, x
    return matrix


def cross(a: Array, b: Array) -> Array:
    """Return a x b (..., 3); ``np.cross`` takes several times as long."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    x = ay * bz - az * by
    found = np.empty((*x.shape, 3))
    found[..., 0] = x
    found[..., 1] = az * bx - ax * bz
    found[..., 2] = ax * by - ay * bx
    return found


def apply(matrix: Array, vector: Array) -> Array:
    """Return the product of stacks of matrices (..., n, m) and of vectors (..., m)."""
    return np.asarray((matrix @ vector[..., None])[..., 0], dtype=np.float64)


def inverse_pose(A_H_B: Array) -> Array:
    """Return the pose of A in B, (..., 4, 4) [m]."""
    B_H_A = np.zeros_like(A_H_B)
    B_R_A = np.swapaxes(A_H_B[..., :3, :3], -1, -2)
    B_H_A[..., :3, :3] = B_R_A
    B_H_A[..., :3, 3] = -(B_R_A @ A_H_B[..., :3, 3:])[..., 0]
    B_H_A[..., 3, 3] = 1.0
    return B_H_A


def motion_transform(A_H_B: Array) -> Array:
    """Return A_X_B (..., 6, 6), which takes motions expressed in B to A [T 2.27]."""
    R = A_H_B[..., :3, :3]
    A_X_B = np.zeros((*A_H_B.shape[:-2], 6, 6))
    A_X_B[..., :3, :3] = A_X_B[..., 3:, 3:] = R
    A_X_B[..., :3, 3:] = hat(A_H_B[..., :3, 3]) @ R
    return A_X_B


def wrench_transform(A_H_B: Array) -> Array:
    """Return A_Xf_B (..., 6, 6), the transpose of B_X_A: wrenches in and about B to A [T 2.47]."""
    return np.swapaxes(motion_transform(inverse_pose(A_H_B)), -1, -2)


def motion_cross(v: Array) -> Array:
    """Return v× (..., 6, 6); the rate of A_X_B is A_X_B v× [T 2.36, 2.37]."""
    matrix = np.zeros((*v.shape, 6))
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = hat(v[..., 3:])
    matrix[..., :3, 3:] = hat(v[..., :3])
    return matrix


def wrench_cross(v: Array) -> Array:
    """Return v×* (..., 6, 6), the cross product of a motion with wrenches [T 2.49, 2.50]."""
    return -np.swapaxes(motion_cross(v), -1, -2)


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
