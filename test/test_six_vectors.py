# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Spatial algebra and representations of six-vectors [T chapter 2], one body and its consistency.

Against Pinocchio and mass points. Not covered: a whole robot (test_floating_dynamics.py).
"""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from robots import random_pose

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import (
    check_centres,
    consistency_margin,
    inertia_complaint,
    inertia_seen_from,
    parameters_of,
    pseudo_inertia,
    spatial_inertia,
)
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
SUMS = 1e-13  # sums of a few dozen products of order one
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


def test_pseudo_inertia_is_the_second_moment_of_the_mass(rng):
    masses, points = rng.uniform(0.1, 1.0, 12), rng.normal(size=(12, 3))
    for plate in (False, True):
        points[:, 2] = 0.3 if plate else points[:, 2]
        homogeneous = np.column_stack([points, np.ones(12)])
        inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points))
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
        parameters = np.array([masses.sum(), *(masses @ points), xx, xy, yy, xz, yz, zz])
        expected = (masses[:, None] * homogeneous).T @ homogeneous
        np.testing.assert_allclose(pseudo_inertia(parameters), expected, rtol=0, atol=SUMS)
        margin = consistency_margin(parameters)
        assert abs(margin) < SUMS if plate else margin > 0.01


def test_inconsistent_parameters_are_named(nested_humanoid):
    assert {inertia_complaint(p) for p in nested_humanoid.parameters} == {''}
    for changes in (
        {0: 1.0, 5: np.inf},
        {0: 1.0},  # a point, on the boundary
        {0: -1.0, 4: 1.0, 6: 1.0, 9: 1.0},
        {0: 1.0, 4: 1.0, 6: 1.0, 9: 3.0},  # breaks the triangle inequality
        {0: 1.0, 1: 2.0, 4: 1.0, 6: 1.0, 9: 1.0},  # the centre of mass too far out
    ):
        parameters = np.zeros(10)
        parameters[list(changes)] = list(changes.values())
        assert inertia_complaint(parameters)


def test_centre_of_mass_must_not_be_too_far_away():
    for mass, moment, largest, refused in (
        (0.0, 0.0, 1.0, False),
        (0.0, 1e-300, 1.0, True),
        # A centre of mass 10 km away, of a body that would not be noticed there.
        (1e-20, 1e-16, 1.0, False),
        # 0.01 / 1e-9 is beyond a million, unless a robot is that heavy.
        (-1e-9, 0.1, 1.0, True),
        (1e-9, 0.1, 20.0, False),
    ):
        parameters = np.array([[mass, 0.0, moment, 0.0, *np.ones(6)]])
        with pytest.raises(ModelError) if refused else nullcontext():
            check_centres(['hand'], parameters, largest)


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
