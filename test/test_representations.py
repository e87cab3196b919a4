# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Velocity, acceleration and wrench of a frame in every form [T chapter 2].

Each form is held against its definition along a smooth motion, against Pinocchio's frames, and
against the wheel of the thesis. Not covered: forms of a whole robot (test_free_floating.py).
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from floating_states import random_pose

from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    convert_velocity,
    convert_wrench,
    gravity_acceleration,
    pose_of_base,
    proper_acceleration,
)

LEFT, RIGHT, MIXED, SENSOR = Representation
PAIRS = list(product(Representation, repeat=2))
ROUND_OFF = 1e-12  # of a few products of numbers around ten
FIRST, SECOND = 1e-6, 1e-4  # steps of first and second differences [s]
FIRST_ERROR, SECOND_ERROR = 1e-8, 1e-5  # round-off over the step and its square, and truncation
GRAVITY = np.array([0.3, -0.5, -9.7])


class Motion:
    """A frame on a smooth path, with its derivatives straight from the definitions."""

    def __init__(self, rng):
        self.H0 = random_pose(rng)
        self.twists = [pin.Motion(v) for v in rng.normal(size=(3, 6))]

    def pose(self, t):
        path = (pin.exp6(v * s) for v, s in zip(self.twists, (t, t**2, np.sin(t))))
        H = pin.SE3(self.H0)
        for step in path:
            H = H * step
        return H.homogeneous

    def velocity(self, t, form):
        """Return the velocity as Table 2.1 defines it."""
        H = self.pose(t)
        H_rate = (self.pose(t + FIRST) - self.pose(t - FIRST)) / (2 * FIRST)
        R, o, R_rate, o_rate = H[:3, :3], H[:3, 3], H_rate[:3, :3], H_rate[:3, 3]
        if form in (LEFT, SENSOR):
            return np.concatenate([R.T @ o_rate, vee(R.T @ R_rate)])
        linear = o_rate - R_rate @ R.T @ o if form is RIGHT else o_rate
        return np.concatenate([linear, vee(R_rate @ R.T)])

    def acceleration(self, t, form):
        """Return the rate of that velocity, or (2.40)."""
        rated = MIXED if form is SENSOR else form
        rate = (self.velocity(t + SECOND, rated) - self.velocity(t - SECOND, rated)) / (2 * SECOND)
        if form is SENSOR:
            R_T = self.pose(t)[:3, :3].T
            return np.concatenate([R_T @ rate[:3], R_T @ rate[3:]])
        return rate


def vee(matrix):
    return np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0],
                     matrix[1, 0] - matrix[0, 1]]) / 2  # fmt: skip


@pytest.fixture
def motion(rng):
    return Motion(rng)


@pytest.mark.parametrize(('given', 'wanted'), PAIRS)
def test_velocities_are_those_of_the_definitions(given, wanted, motion):
    got = convert_velocity(motion.velocity(0.4, given), motion.pose(0.4), given, wanted)
    np.testing.assert_allclose(got, motion.velocity(0.4, wanted), rtol=0, atol=FIRST_ERROR)


@pytest.mark.parametrize(('given', 'wanted'), PAIRS)
def test_accelerations_are_those_of_the_definitions(given, wanted, motion):
    v, a = motion.velocity(0.4, given), motion.acceleration(0.4, given)
    got = convert_acceleration(a, v, motion.pose(0.4), given, wanted)
    np.testing.assert_allclose(got, motion.acceleration(0.4, wanted), rtol=0, atol=SECOND_ERROR)


@pytest.mark.parametrize(('given', 'wanted'), PAIRS)
def test_every_conversion_has_its_inverse(given, wanted, rng):
    H = random_pose(rng)
    v, a, f = rng.normal(0.0, 3.0, (3, 6))
    v_wanted = convert_velocity(v, H, given, wanted)
    a_wanted = convert_acceleration(a, v, H, given, wanted)
    f_wanted = convert_wrench(f, H, given, wanted)
    for got, expected in [
        (convert_velocity(v_wanted, H, wanted, given), v),
        (convert_acceleration(a_wanted, v_wanted, H, wanted, given), a),
        (convert_wrench(f_wanted, H, wanted, given), f),
        (f_wanted @ v_wanted, f @ v),
    ]:
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * 10)


@pytest.mark.parametrize(('given', 'wanted'), PAIRS)
def test_proper_accelerations_are_converted_in_the_same_way(given, wanted, rng):
    H = random_pose(rng)
    v, a = rng.normal(0.0, 3.0, (2, 6))
    expected = convert_acceleration(a, v, H, given, wanted)
    expected = proper_acceleration(expected, H, GRAVITY, wanted)
    proper = proper_acceleration(a, H, GRAVITY, given)
    got = convert_acceleration(proper, v, H, given, wanted)
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def test_an_imu_at_rest_feels_a_push_upward(rng):
    H = random_pose(rng)
    proper = proper_acceleration(np.zeros(6), H, np.array([0.0, 0.0, -9.81]), SENSOR)
    up = np.concatenate([9.81 * H[2, :3], np.zeros(3)])
    np.testing.assert_allclose(proper, up, rtol=0, atol=ROUND_OFF)


def test_free_fall_is_the_motion_of_a_thrown_point(rng):
    H = random_pose(rng)
    v = np.concatenate([rng.normal(size=3), np.zeros(3)])
    for form in (LEFT, RIGHT, MIXED):
        thrown = np.concatenate([GRAVITY, np.zeros(3)])
        expected = convert_acceleration(thrown, v, H, MIXED, form)
        fall = gravity_acceleration(H, GRAVITY, form)
        np.testing.assert_allclose(fall, expected, rtol=0, atol=ROUND_OFF)


def test_forms_are_pinocchio_s_frames(nested_humanoid, rng):
    model = pin.buildModelFromXML(nested_humanoid.urdf, pin.JointModelFreeFlyer())
    data = model.createData()
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v, a = rng.normal(size=(2, model.nv))
    pin.forwardKinematics(model, data, q, v, a)
    for name in ('foot', 'hand', 'sole'):
        k = model.getFrameId(name)
        H = pin.updateFramePlacement(model, data, k).homogeneous
        local_v = pin.getFrameVelocity(model, data, k, pin.LOCAL).vector
        local_a = pin.getFrameAcceleration(model, data, k, pin.LOCAL).vector
        for form, frame in [
            (LEFT, pin.LOCAL),
            (RIGHT, pin.WORLD),
            (MIXED, pin.LOCAL_WORLD_ALIGNED),
            (SENSOR, pin.LOCAL),
        ]:
            classical = form in (MIXED, SENSOR)
            acceleration = (
                pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
            )
            expected = pin.getFrameVelocity(model, data, k, frame).vector
            got = convert_velocity(local_v, H, LEFT, form)
            np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)
            expected = acceleration(model, data, k, frame).vector
            got = convert_acceleration(local_a, local_v, H, LEFT, form)
            np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * 10)


def test_the_spinning_wheel():
    # T section 2.4.5, with the origin of B as printed in (2.44).
    r, g, theta, w, w_rate = 0.7, 9.81, 0.6, 3.0, -2.0
    c, s, centre = np.cos(theta), np.sin(theta), np.array([0.4, -0.3, 0.2])
    H = np.eye(4)
    H[:2, :2] = [[c, -s], [s, c]]
    H[:3, 3] = centre + np.array([-s * r, c * r, 0.0])
    about_origin = np.array([centre[1], -centre[0], 0.0])
    velocities = {
        LEFT: [-r * w, 0, 0],
        RIGHT: about_origin * w,
        MIXED: [-c * r * w, -s * r * w, 0],
    }
    accelerations = {
        LEFT: [-r * w_rate, 0, 0],
        RIGHT: about_origin * w_rate,
        MIXED: [-c * r * w_rate + s * r * w**2, -s * r * w_rate - c * r * w**2, 0],
        SENSOR: [-r * w_rate, -r * w**2, 0],
    }
    left_v, left_a = ([*x[LEFT], 0, 0, y] for x, y in ((velocities, w), (accelerations, w_rate)))
    for form, linear in velocities.items():
        got = convert_velocity(np.array(left_v), H, LEFT, form)
        np.testing.assert_allclose(got, [*linear, 0, 0, w], rtol=0, atol=ROUND_OFF)
    for form, linear in accelerations.items():
        got = convert_acceleration(np.array(left_a), np.array(left_v), H, LEFT, form)
        np.testing.assert_allclose(got, [*linear, 0, 0, w_rate], rtol=0, atol=ROUND_OFF)
    proper = proper_acceleration(got, H, np.array([0.0, -g, 0.0]), SENSOR)
    expected = [-r * w_rate + s * g, -r * w**2 + c * g, 0, 0, 0, w_rate]
    np.testing.assert_allclose(proper, expected, rtol=0, atol=ROUND_OFF)


def test_six_vectors_come_in_stacks(rng):
    poses = np.array([random_pose(rng) for _ in range(3)])
    v, a = rng.normal(size=(2, 3, 6))
    stack = convert_acceleration(a, v, poses, RIGHT, SENSOR)
    for k in range(3):
        one = convert_acceleration(a[k], v[k], poses[k], RIGHT, SENSOR)
        np.testing.assert_allclose(stack[k], one, rtol=0, atol=ROUND_OFF)


def test_the_pose_of_the_base_is_not_the_caller_s_array(rng):
    H = random_pose(rng)
    pose_of_base(H, RIGHT)[:] = 0.0
    assert H.any()
