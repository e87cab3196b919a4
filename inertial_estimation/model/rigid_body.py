# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The Newton-Euler equations of one body in every representation [T sections 2.6-2.8].

Inertial parameters (..., 10) are those of `model.inertia`, about the origin of the body frame B;
inertias are (..., 6, 6), six-vectors (..., 6), poses A_H_B (..., 4, 4). All functions take stacks,
and parameters of no real body (zero mass) as well.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.inertia import inertia_seen_from, spatial_inertia
from inertial_estimation.model.representations import (
    Representation,
    gravity_acceleration,
    pose_of_base,
)
from inertial_estimation.model.spatial import (
    apply,
    hat,
    motion_cross,
    wrench_cross,
)


def external_wrench(
    parameters: Array,
    A_H_B: Array,
    velocity: Array,
    acceleration: Array,
    gravity: Array,
    representation: Representation,
) -> Array:
    """Return the wrench that moves a body as given, its weight aside [N, Nm] [T 2.76-2.79]."""
    M = inertia_seen_from(spatial_inertia(parameters), pose_of_base(A_H_B, representation))
    v = np.array(velocity)
    if representation in (Representation.MIXED, Representation.SENSOR):
        v[..., :3] = 0.0
    fall = gravity_acceleration(A_H_B, gravity, representation)
    return _newton_euler(M, v, acceleration - fall)


def net_wrench(parameters: Array, angular_velocity: Array, proper_acceleration: Array) -> Array:
    """
    Return the wrench that moves a body, from the readings of an IMU in it [N, Nm] [T 2.80].

    angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2, rad/s^2].
    """
    v = np.zeros(proper_acceleration.shape)
    v[..., 3:] = angular_velocity
    return _newton_euler(spatial_inertia(parameters), v, proper_acceleration)


def coriolis_matrix(M: Array, v: Array) -> Array:
    """Return the skew matrix N with N v = v ×* M v [T 3.58b]."""
    h = apply(M, v)
    with_momentum = np.zeros_like(M)
    with_momentum[..., :3, 3:] = with_momentum[..., 3:, :3] = -hat(h[..., :3])
    with_momentum[..., 3:, 3:] = -hat(h[..., 3:])
    return np.asarray((wrench_cross(v) @ M + M @ motion_cross(v) + with_momentum) / 2)


def momentum(
    parameters: Array, A_H_B: Array, velocity: Array, representation: Representation
) -> Array:
    """
    Return the momentum of a body [N s, Nm s] [T 2.83].

    With `RIGHT` its rate is the sum of weight and external wrench [T 2.84]; with `MIXED` if the
    origin of B is the centre of mass [T 2.85].
    """
    M = inertia_seen_from(spatial_inertia(parameters), pose_of_base(A_H_B, representation))
    return apply(M, velocity)


def _newton_euler(M: Array, v: Array, a: Array) -> Array:
    """Return M a + v ×* M v."""
    return apply(M, a) + apply(wrench_cross(v), apply(M, v))
