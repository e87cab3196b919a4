# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Spatial algebra and representations of six-vectors [T chapter 2], and one body.

Against Pinocchio. Not covered: a whole robot (test_floating_dynamics.py).
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from robots import random_pose

from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    convert_velocity,
    convert_wrench,
    gravity_acceleration,
    net_wrench,
)
from inertial_estimation.model.spatial import (
    compose,
    cross,
    cross_matrix,
    inverse_pose,
    motion_cross,
    motion_transform,
    row_pose,
    to_child,
    to_parent,
    wrench_cross,
    wrench_transform,
)

LEFT, _, _, SENSOR = Representation
PAIRS = list(product(Representation, repeat=2))
ROUND_OFF = 1e-11  # of sums of products of numbers around ten
GRAVITY = np.array([0.3, -0.5, -9.7])


def assert_near(got, expected, atol=ROUND_OFF):
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


# Representations


@pytest.mark.parametrize(('given', 'wanted'), PAIRS)
def test_conversions_have_inverses_and_keep_power(given, wanted, rng):
    H, (v, a, f) = random_pose(rng), rng.normal(0.0, 3.0, (3, 6))
    v_wanted = convert_velocity(v, H, given, wanted)
    a_wanted = convert_acceleration(a, v, H, given, wanted)
    f_wanted = convert_wrench(f, H, given, wanted)
    v_left = convert_velocity(v, H, given, LEFT)
    a_left = convert_acceleration(a, v, H, given, LEFT)
    assert_near(v_wanted, convert_velocity(v_left, H, LEFT, wanted))
    assert_near(a_wanted, convert_acceleration(a_left, v_left, H, LEFT, wanted))
    assert_near(convert_velocity(v_wanted, H, wanted, given), v)
    assert_near(convert_acceleration(a_wanted, v_wanted, H, wanted, given), a)
    assert_near(convert_wrench(f_wanted, H, wanted, given), f)
    assert_near(f_wanted @ v_wanted, f @ v)
    proper = a - gravity_acceleration(H, GRAVITY, given)
    fall = gravity_acceleration(H, GRAVITY, wanted)
    assert_near(convert_acceleration(proper, v, H, given, wanted), a_wanted - fall)


# One body


@pytest.fixture
def body(rng):
    """Return an inertia of Pinocchio, a pose, a velocity and an acceleration."""
    pin.seed(7)
    return pin.Inertia.Random(), random_pose(rng), *rng.normal(size=(2, 6))


def test_newton_euler_of_a_body_is_pinocchio_s(body):
    inertia, A_H_B, v, a = body
    M, parameters = inertia.matrix(), inertia.toDynamicParameters()
    assert_near(spatial_inertia(parameters), M)
    np.testing.assert_array_equal(parameters_of(spatial_inertia(parameters)), parameters)
    assert_near(inertia_seen_from(M, A_H_B), pin.SE3(A_H_B).act(inertia).matrix())
    proper = a - gravity_acceleration(A_H_B, GRAVITY, LEFT)
    wrench = inertia * pin.Motion(proper) + pin.Motion(v).cross(inertia * pin.Motion(v))
    sensed = convert_acceleration(a, v, A_H_B, LEFT, SENSOR)
    proper = sensed - gravity_acceleration(A_H_B, GRAVITY, SENSOR)
    assert_near(net_wrench(parameters, v[3:], proper), wrench.vector)


def test_transforms_and_cross_products_are_pinocchio_s(rng):
    """T 2.27, 2.36-2.37, 2.47-2.50; row poses and pairs of rows are the same transforms."""
    (A_H_B, B_H_C), (v, w, f) = (random_pose(rng), random_pose(rng)), rng.normal(size=(3, 6))
    ours, theirs, twist = pin.SE3(A_H_B), pin.SE3(B_H_C), pin.Motion(v)
    assert_near(motion_transform(A_H_B), ours.toActionMatrix())
    assert_near(wrench_transform(A_H_B), ours.toDualActionMatrix())
    assert_near(inverse_pose(A_H_B), ours.inverse().homogeneous)
    assert_near(motion_cross(v) @ w, twist.cross(pin.Motion(w)).vector)
    assert_near(wrench_cross(v) @ f, twist.cross(pin.Force(f)).vector)
    assert_near(cross(v[:3], w[:3]), pin.skew(v[:3]) @ w[:3])
    pose = row_pose(A_H_B)
    assert_near(compose(pose, row_pose(B_H_C)), row_pose((ours * theirs).homogeneous))
    lever = cross_matrix(pose[3])
    there = to_parent(pose, f.reshape(2, 3), lever)
    assert_near(there.ravel(), ours.act(pin.Force(f)).vector)
    assert_near(to_child(pose, there, lever).ravel(), f)
