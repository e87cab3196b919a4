# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Newton-Euler and momentum of one body in every form, against Pinocchio and against differences.

Not covered: bodies tied to each other (test_free_floating.py).
"""

import numpy as np
import pinocchio as pin
import pytest
from floating_states import random_pose

from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    convert_velocity,
    convert_wrench,
    proper_acceleration,
)
from inertial_estimation.model.rigid_body import (
    coriolis_matrix,
    external_wrench,
    inertia_seen_from,
    momentum,
    net_wrench,
    parameters_of,
    spatial_inertia,
)

LEFT, RIGHT, MIXED, SENSOR = Representation
ROUND_OFF = 1e-12  # of sums of products of numbers around ten
STEP = 1e-6  # of central differences [s]
DIFFERENCE = 1e-7  # round-off / step times momenta around ten
GRAVITY = np.array([0.3, -0.5, -9.7])


class Body:
    """A body that moves; velocity and acceleration left-trivialised."""

    def __init__(self, rng):
        inertia = pin.Inertia.Random()
        self.parameters = inertia.toDynamicParameters()
        self.inertia = inertia
        self.A_H_B = random_pose(rng)
        self.v, self.a = rng.normal(size=(2, 6))

    def wrench(self):
        """Return what Pinocchio says moves it."""
        proper = proper_acceleration(self.a, self.A_H_B, GRAVITY, LEFT)
        v = pin.Motion(self.v)
        return (self.inertia * pin.Motion(proper) + v.cross(self.inertia * v)).vector

    def momentum_at(self, t, form):
        """Return its momentum a short time later."""
        H = self.A_H_B @ pin.exp6(pin.Motion((self.v + self.a * t / 2) * t)).homogeneous
        v = convert_velocity(self.v + self.a * t, H, LEFT, form)
        return momentum(self.parameters, H, v, form)

    def momentum_rate(self, form):
        return (self.momentum_at(STEP, form) - self.momentum_at(-STEP, form)) / (2 * STEP)


@pytest.fixture
def body(rng):
    pin.seed(7)
    return Body(rng)


def test_the_inertia_is_pinocchio_s(body):
    M = spatial_inertia(body.parameters)
    np.testing.assert_allclose(M, body.inertia.matrix(), rtol=0, atol=ROUND_OFF)
    seen = inertia_seen_from(M, body.A_H_B)
    expected = pin.SE3(body.A_H_B).act(body.inertia).matrix()
    np.testing.assert_allclose(seen, expected, rtol=0, atol=ROUND_OFF * 10)


def test_parameters_come_back_from_the_inertia(rng):
    parameters = rng.normal(size=(4, 10))
    np.testing.assert_array_equal(parameters_of(spatial_inertia(parameters)), parameters)


@pytest.mark.parametrize('form', Representation)
def test_newton_euler_is_the_same_in_every_form(form, body):
    v = convert_velocity(body.v, body.A_H_B, LEFT, form)
    a = convert_acceleration(body.a, body.v, body.A_H_B, LEFT, form)
    got = external_wrench(body.parameters, body.A_H_B, v, a, GRAVITY, form)
    expected = convert_wrench(body.wrench(), body.A_H_B, LEFT, form)
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * 10)


@pytest.mark.parametrize('form', [MIXED, SENSOR])
def test_the_linear_velocity_does_not_enter(form, body):
    v = convert_velocity(body.v, body.A_H_B, LEFT, form)
    args = (body.a, GRAVITY, form)
    one = external_wrench(body.parameters, body.A_H_B, v, *args)
    other = external_wrench(body.parameters, body.A_H_B, v * [0, 0, 0, 1, 1, 1], *args)
    np.testing.assert_array_equal(one, other)


def test_the_net_wrench_is_that_of_the_sensor_form(body):
    alpha = convert_acceleration(body.a, body.v, body.A_H_B, LEFT, SENSOR)
    proper = proper_acceleration(alpha, body.A_H_B, GRAVITY, SENSOR)
    got = net_wrench(body.parameters, body.v[3:], proper)
    np.testing.assert_allclose(got, body.wrench(), rtol=0, atol=ROUND_OFF * 10)


def test_a_body_at_rest_is_held_against_its_weight(rng):
    H = random_pose(rng)
    H[:3, 3] = 0.0
    parameters = np.array([2.0, 0.2, -0.1, 0.4, *rng.normal(size=6)])
    wrench = external_wrench(
        parameters, H, np.zeros(6), np.zeros(6), np.array([0.0, 0.0, -9.81]), MIXED
    )
    up = np.array([0.0, 0.0, 9.81])
    moment = np.cross(H[:3, :3] @ parameters[1:4], up)
    np.testing.assert_allclose(wrench, [*(2.0 * up), *moment], rtol=0, atol=ROUND_OFF)


def test_about_the_origin_of_the_world_momentum_follows_the_wrenches(body):
    # T 2.84
    weight = spatial_inertia(body.parameters) @ -proper_acceleration(
        np.zeros(6), body.A_H_B, GRAVITY, LEFT
    )
    expected = convert_wrench(body.wrench() + weight, body.A_H_B, LEFT, RIGHT)
    np.testing.assert_allclose(body.momentum_rate(RIGHT), expected, rtol=0, atol=DIFFERENCE)


def test_in_mixed_form_it_does_so_about_the_centre_of_mass_only(body):
    # T 2.85
    def gap():
        weight = spatial_inertia(body.parameters) @ -proper_acceleration(
            np.zeros(6), body.A_H_B, GRAVITY, LEFT
        )
        expected = convert_wrench(body.wrench() + weight, body.A_H_B, LEFT, MIXED)
        return np.abs(body.momentum_rate(MIXED) - expected).max()

    assert gap() > 1e-3
    body.inertia = pin.Inertia(body.inertia.mass, np.zeros(3), body.inertia.inertia)
    body.parameters = body.inertia.toDynamicParameters()
    assert gap() < DIFFERENCE


def test_the_coriolis_matrix_is_skew_and_gives_the_forces(body):
    M, v = body.inertia.matrix(), pin.Motion(body.v)
    N = coriolis_matrix(M, body.v)
    np.testing.assert_allclose(N, -N.T, rtol=0, atol=ROUND_OFF)
    expected = v.cross(body.inertia * v).vector
    np.testing.assert_allclose(N @ body.v, expected, rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize('form', Representation)
def test_nothing_weighs_nothing(form, body):
    args = (body.A_H_B, body.v, body.a, GRAVITY, form)
    np.testing.assert_array_equal(external_wrench(np.zeros(10), *args), np.zeros(6))


def test_bodies_come_in_stacks(rng):
    parameters, v, a = rng.normal(size=(3, 10)), *rng.normal(size=(2, 3, 6))
    poses = np.array([random_pose(rng) for _ in range(3)])
    stack = external_wrench(parameters, poses, v, a, GRAVITY, RIGHT)
    net = net_wrench(parameters, v[:, 3:], a)
    for k in range(3):
        one = external_wrench(parameters[k], poses[k], v[k], a[k], GRAVITY, RIGHT)
        np.testing.assert_allclose(stack[k], one, rtol=0, atol=ROUND_OFF * 100)
        one = net_wrench(parameters[k], v[k, 3:], a[k])
        np.testing.assert_allclose(net[k], one, rtol=0, atol=ROUND_OFF * 100)
