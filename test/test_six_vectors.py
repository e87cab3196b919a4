# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Representations of six-vectors [T chapter 2] and the Newton-Euler equations of one body.

Against Pinocchio. Not covered: a whole robot (test_floating_dynamics.py).
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from floating_states import random_pose

from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    convert_velocity,
    convert_wrench,
    coriolis_matrix,
    external_wrench,
    net_wrench,
    proper_acceleration,
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
    proper = convert_acceleration(proper_acceleration(a, H, GRAVITY, given), v, H, given, wanted)
    assert_near(proper, proper_acceleration(a_wanted, H, GRAVITY, wanted))


# One body


@pytest.fixture
def body(rng):
    """Return an inertia of Pinocchio, a pose, a velocity and an acceleration."""
    pin.seed(7)
    return pin.Inertia.Random(), random_pose(rng), *rng.normal(size=(2, 6))


def test_inertia_and_coriolis_matrix_are_pinocchio_s(body):
    inertia, A_H_B, v, _ = body
    M, N = inertia.matrix(), coriolis_matrix(inertia.matrix(), v)
    parameters = inertia.toDynamicParameters()
    assert_near(spatial_inertia(parameters), M)
    np.testing.assert_array_equal(parameters_of(spatial_inertia(parameters)), parameters)
    assert_near(inertia_seen_from(M, A_H_B), pin.SE3(A_H_B).act(inertia).matrix())
    assert_near(N, -N.T)
    assert_near(N @ v, pin.Motion(v).cross(inertia * pin.Motion(v)).vector)


@pytest.mark.parametrize('form', Representation)
def test_newton_euler_is_the_same_in_every_representation(form, body):
    inertia, A_H_B, v_left, a_left = body
    proper, v = proper_acceleration(a_left, A_H_B, GRAVITY, LEFT), pin.Motion(v_left)
    wrench = (inertia * pin.Motion(proper) + v.cross(inertia * v)).vector
    v = convert_velocity(v_left, A_H_B, LEFT, form)
    a = convert_acceleration(a_left, v_left, A_H_B, LEFT, form)
    parameters = inertia.toDynamicParameters()
    got = external_wrench(parameters, A_H_B, v, a, GRAVITY, form)
    assert_near(got, convert_wrench(wrench, A_H_B, LEFT, form))
    if form is SENSOR:
        proper = proper_acceleration(a, A_H_B, GRAVITY, SENSOR)
        assert_near(net_wrench(parameters, v_left[3:], proper), wrench)
