# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Representations of velocity, acceleration and wrench of one frame [T chapter 2].

B moves with the body, A is inertial, B[A] has the origin of B and the axes of A. Every function
takes six-vectors (..., 6), or stacks of them with a stack of poses A_H_B (..., 4, 4).
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.inertia import spatial_inertia
from inertial_estimation.model.spatial import (
    apply,
    inverse_pose,
    motion_transform,
    wrench_cross,
    wrench_transform,
)


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


def convert_velocity(
    velocity: Array, A_H_B: Array, given: Representation, wanted: Representation
) -> Array:
    """Return a velocity in another representation [m/s, rad/s] [T Table 2.1]."""
    return apply(motion_transform(_between(A_H_B, given, wanted)), velocity)


def convert_wrench(
    wrench: Array, A_H_B: Array, given: Representation, wanted: Representation
) -> Array:
    """Return a wrench in another representation [N, Nm] [T 2.46]."""
    return apply(wrench_transform(_between(A_H_B, given, wanted)), wrench)


def convert_acceleration(
    acceleration: Array,
    velocity: Array,
    A_H_B: Array,
    given: Representation,
    wanted: Representation,
) -> Array:
    """Return an acceleration in another representation [m/s^2, rad/s^2] [T Table 2.2]."""
    mixed = convert_velocity(velocity, A_H_B, given, Representation.MIXED)
    # The rate of the origin is the linear part of the rate of six-vectors only in the mixed form.
    turning = np.zeros(mixed.shape)
    turning[..., :3] = np.cross(mixed[..., :3], mixed[..., 3:])
    rate = convert_velocity(acceleration, A_H_B, given, Representation.MIXED)
    if given in (Representation.LEFT, Representation.RIGHT):
        rate = rate - turning
    if wanted in (Representation.LEFT, Representation.RIGHT):
        rate = rate + turning
    return convert_velocity(rate, A_H_B, Representation.MIXED, wanted)


def gravity_acceleration(A_H_B: Array, gravity: Array, representation: Representation) -> Array:
    """Return the acceleration of free fall without rotation, (..., 6) [T 2.41-2.43]."""
    fall = np.zeros((*A_H_B.shape[:-2], 6))
    # Without the hat of the origin: gravity is a field of parallel vectors.
    axes = pose_of_base(A_H_B, representation)[..., :3, :3]
    fall[..., :3] = (axes @ np.swapaxes(A_H_B[..., :3, :3], -1, -2)) @ gravity
    return fall


def _between(A_H_B: Array, given: Representation, wanted: Representation) -> Array:
    """Return the pose of the frame of one representation in that of another."""
    return pose_of_base(A_H_B, wanted) @ inverse_pose(pose_of_base(A_H_B, given))


def net_wrench(parameters: Array, angular_velocity: Array, proper_acceleration: Array) -> Array:
    """
    Return the wrench that moves a body, from the readings of an IMU in it [N, Nm] [T 2.80].

    angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2, rad/s^2].
    """
    v = np.zeros(proper_acceleration.shape)
    v[..., 3:] = angular_velocity
    M = spatial_inertia(parameters)
    return apply(M, proper_acceleration) + apply(wrench_cross(v), apply(M, v))
