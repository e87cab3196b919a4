# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Representations of velocity, acceleration and wrench of one frame [T chapter 2].

B moves with the body, A is inertial, B[A] has the origin of B and the axes of A. Every function
takes stacks of poses A_H_B (..., 4, 4) and of vectors.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.inertia import spatial_inertia
from inertial_estimation.model.spatial import apply, wrench_cross


class Representation(Enum):
    """
    Frame C in which the six-vectors of a frame B are written [T Tables 2.1 and 2.2].

    The acceleration is the rate of the velocity's components, but for `SENSOR`.
    """

    LEFT = 'left'
    """Left-trivialised, C = B; Pinocchio's LOCAL, iDynTree's BODY_FIXED."""
    RIGHT = 'right'
    """Right-trivialised, C = A; Pinocchio's WORLD, iDynTree's INERTIAL_FIXED."""
    MIXED = 'mixed'
    """C = B[A]: rate of the origin, angular velocity in A; LOCAL_WORLD_ALIGNED, MIXED."""
    SENSOR = 'sensor'
    """Velocity and wrench as `LEFT`; acceleration [B_R_A A_o''; B_omega'] [T 2.40]."""


def pose_of_base(A_H_B: Array, representation: Representation) -> Array:
    """Return the pose of B in the frame C of a representation, (..., 4, 4) [m]."""
    if representation is Representation.RIGHT:
        return np.array(A_H_B)
    C_H_B = np.zeros(A_H_B.shape)
    C_H_B[..., range(4), range(4)] = 1.0
    if representation is Representation.MIXED:
        C_H_B[..., :3, :3] = A_H_B[..., :3, :3]
    return C_H_B


def gravity_acceleration(A_H_B: Array, gravity: Array) -> Array:
    """Return the acceleration of free fall without rotation, in B, (..., 6) [T 2.41]."""
    fall = np.zeros((*A_H_B.shape[:-2], 6))
    # Without the hat of the origin: gravity is a field of parallel vectors.
    fall[..., :3] = np.swapaxes(A_H_B[..., :3, :3], -1, -2) @ gravity
    return fall


def net_wrench(parameters: Array, angular_velocity: Array, proper_acceleration: Array) -> Array:
    """
    Return the wrench that moves a body, from the readings of an IMU in it [N, Nm] [T 2.80].

    angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2, rad/s^2].
    """
    v = np.zeros(proper_acceleration.shape)
    v[..., 3:] = angular_velocity
    M = spatial_inertia(parameters)
    return apply(M, proper_acceleration) + apply(wrench_cross(v), apply(M, v))
