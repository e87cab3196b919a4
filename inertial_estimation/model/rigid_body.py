# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The Newton-Euler equations of one body in every representation [T sections 2.6-2.8].

Inertial parameters are those of `model.inertia`, about the origin of the body frame B. All
functions take stacks of arrays. Parameters of no real body (zero mass) are as good as any.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.arguments import stacked
from inertial_estimation.model.representations import (
    Representation,
    as_representation,
    gravity_acceleration,
    pose_of_base,
)
from inertial_estimation.model.spatial import (
    hat,
    motion_cross,
    wrench_cross,
    wrench_transform,
)

Array = NDArray[np.float64]


def spatial_inertia(parameters: Array) -> Array:
    """
    Return the 6 x 6 inertia M of a body about the origin of its frame [T 2.67].

    parameters (..., 10); returns (..., 6, 6) [m 1, -(mc)^].
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(
        stacked('parameters', parameters, 10), -1, 0
    )
    M = np.zeros((*m.shape, 6, 6))
    M[..., range(3), range(3)] = m[..., None]
    M[..., 3:, :3] = hat(np.stack([hx, hy, hz], axis=-1))
    M[..., :3, 3:] = -M[..., 3:, :3]
    rows = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    M[..., 3:, 3:] = np.moveaxis(rows, (0, 1), (-2, -1))
    return M


def parameters_of(M: Array) -> Array:
    """
    Return the inertial parameters of a 6 x 6 inertia: the inverse of `spatial_inertia`.

    M (..., 6, 6); returns (..., 10).
    """
    rows = [0, 5, 3, 4, 3, 3, 4, 3, 4, 5]
    columns = [0, 1, 2, 0, 3, 4, 4, 5, 5, 5]
    return stacked('M', M, 6, 6)[..., rows, columns]


def inertia_seen_from(M: Array, C_H_B: Array) -> Array:
    """
    Return the inertia of a body in another frame, C_Xf_B M B_X_C [T section 2.7].

    M (..., 6, 6) [kg, kg m, kg m^2]; C_H_B (..., 4, 4) [m]; returns (..., 6, 6) [kg, kg m, kg
    m^2].
    """
    C_Xf_B, M = wrench_transform(C_H_B), stacked('M', M, 6, 6)
    return np.asarray(C_Xf_B @ M @ np.swapaxes(C_Xf_B, -1, -2), dtype=np.float64)


def external_wrench(
    parameters: Array,
    A_H_B: Array,
    velocity: Array,
    acceleration: Array,
    gravity: Array,
    representation: Representation,
) -> Array:
    """
    Return the wrench that moves a body as given, its weight aside [T 2.76-2.79].

    parameters (..., 10); A_H_B (..., 4, 4) [m]; velocity, acceleration (..., 6) [m/s, rad/s];
    gravity (3,) [m/s^2]; returns (..., 6) [N, Nm].
    """
    M = inertia_seen_from(spatial_inertia(parameters), pose_of_base(A_H_B, representation))
    representation = as_representation(representation)
    v = np.array(stacked('velocity', velocity, 6))
    if representation in (Representation.MIXED, Representation.SENSOR):
        v[..., :3] = 0.0
    fall = gravity_acceleration(A_H_B, gravity, representation)
    return _newton_euler(M, v, stacked('acceleration', acceleration, 6) - fall)


def net_wrench(parameters: Array, angular_velocity: Array, proper_acceleration: Array) -> Array:
    """
    Return the wrench that moves a body, from what an IMU in it measures [T 2.80].

    parameters (..., 10); angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2,
    rad/s^2]; returns (..., 6) [N, Nm].
    """
    proper_acceleration = stacked('proper_acceleration', proper_acceleration, 6)
    v = np.zeros(proper_acceleration.shape)
    v[..., 3:] = stacked('angular_velocity', angular_velocity, 3)
    return _newton_euler(spatial_inertia(parameters), v, proper_acceleration)


def coriolis_matrix(M: Array, v: Array) -> Array:
    """
    Return the skew matrix N with N v = v ×* M v [T 3.58b].

    M (..., 6, 6) [kg, kg m, kg m^2]; v (..., 6) [m/s, rad/s]; returns (..., 6, 6).
    """
    M, v = stacked('M', M, 6, 6), stacked('v', v, 6)
    h = _apply(M, v)
    with_momentum = np.zeros_like(M)
    with_momentum[..., :3, 3:] = with_momentum[..., 3:, :3] = -hat(h[..., :3])
    with_momentum[..., 3:, 3:] = -hat(h[..., 3:])
    return np.asarray((wrench_cross(v) @ M + M @ motion_cross(v) + with_momentum) / 2)


def momentum(
    parameters: Array, A_H_B: Array, velocity: Array, representation: Representation
) -> Array:
    """
    Return the momentum of a body [T 2.83].

    With `RIGHT` its rate is the sum of weight and external wrench [T 2.84]; with `MIXED` if the
    origin of B is the centre of mass [T 2.85].

    parameters (..., 10); A_H_B (..., 4, 4) [m]; velocity (..., 6) [m/s, rad/s]; returns (..., 6)
    [N s, Nm s].
    """
    M = inertia_seen_from(spatial_inertia(parameters), pose_of_base(A_H_B, representation))
    return _apply(M, stacked('velocity', velocity, 6))


def _newton_euler(M: Array, v: Array, a: Array) -> Array:
    """Return M a + v ×* M v."""
    return _apply(M, a) + _apply(wrench_cross(v), _apply(M, v))


def _apply(matrix: Array, six: Array) -> Array:
    """Return the product of stacks of matrices and of vectors."""
    return np.asarray((matrix @ np.asarray(six)[..., None])[..., 0], dtype=np.float64)
