# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Transforms and cross products of six-vectors against Pinocchio's and against differences.

Not covered: which frame to use when (test_representations.py), the row poses of the engine
(test_transforms.py).
"""

import numpy as np
import pinocchio as pin
import pytest
from floating_states import STEP, random_pose

from inertial_estimation.model.spatial import (
    hat,
    inverse_pose,
    motion_cross,
    motion_transform,
    wrench_cross,
    wrench_transform,
)

ROUND_OFF = 1e-13  # of a few products of numbers around ten
DIFFERENCE = 1e-8  # of central differences of numbers around ten


@pytest.fixture
def A_H_B(rng):
    return random_pose(rng)


def test_hat_is_the_cross_product(rng):
    v, w = rng.normal(size=(2, 4, 3))
    got = (hat(v) @ w[..., None])[..., 0]
    np.testing.assert_allclose(got, np.cross(v, w), rtol=0, atol=ROUND_OFF)


def test_the_inverse_undoes_a_pose(A_H_B):
    np.testing.assert_allclose(inverse_pose(A_H_B) @ A_H_B, np.eye(4), rtol=0, atol=ROUND_OFF)


def test_transforms_are_pinocchio_s(A_H_B):
    M = pin.SE3(A_H_B)
    for got, expected in [
        (motion_transform(A_H_B), M.toActionMatrix()),
        (wrench_transform(A_H_B), M.toDualActionMatrix()),
    ]:
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def test_cross_products_are_pinocchio_s(rng):
    v, w, f = rng.normal(size=(3, 6))
    twist = pin.Motion(v)
    for got, expected in [
        (motion_cross(v) @ w, twist.cross(pin.Motion(w)).vector),
        (wrench_cross(v) @ f, twist.cross(pin.Force(f)).vector),
    ]:
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def test_rates_of_transforms_are_cross_products(A_H_B, rng):
    v = rng.normal(size=6)
    later, before = (A_H_B @ pin.exp6(sign * STEP * v).homogeneous for sign in (1, -1))
    for transform, cross in [(motion_transform, motion_cross), (wrench_transform, wrench_cross)]:
        X_rate = (transform(later) - transform(before)) / (2 * STEP)
        np.testing.assert_allclose(X_rate, transform(A_H_B) @ cross(v), rtol=0, atol=DIFFERENCE)


def test_a_cross_product_may_be_taken_in_any_frame(A_H_B, rng):
    # T 2.51
    v = rng.normal(size=6)
    A_Xf_B, A_v = wrench_transform(A_H_B), motion_transform(A_H_B) @ v
    got, expected = wrench_cross(A_v) @ A_Xf_B, A_Xf_B @ wrench_cross(v)
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * 10)


def test_power_is_the_same_in_every_frame(A_H_B, rng):
    # T 2.48
    v, f = rng.normal(size=(2, 6))
    power = (wrench_transform(A_H_B) @ f) @ (motion_transform(A_H_B) @ v)
    assert power == pytest.approx(f @ v, abs=ROUND_OFF * 10)


@pytest.mark.parametrize('function', [inverse_pose, motion_transform, wrench_transform])
def test_poses_come_in_stacks(function, rng):
    poses = np.array([[random_pose(rng) for _ in range(3)] for _ in range(2)])
    np.testing.assert_array_equal(function(poses)[1, 2], function(poses[1, 2]))


@pytest.mark.parametrize('function', [hat, motion_cross, wrench_cross])
def test_vectors_come_in_stacks(function, rng):
    vectors = rng.normal(size=(2, 3, 3 if function is hat else 6))
    np.testing.assert_array_equal(function(vectors)[1, 2], function(vectors[1, 2]))
