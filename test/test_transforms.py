# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Poses and wrenches in rows against 4 x 4 and 6 x 6 matrices in columns.

Not covered: where poses come from (test_forest.py).
"""

import brute_force
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation import transforms

# Some ten products of numbers of order ten.
ROUND_OFF = 1e-12
LEADS = [(), (1,), (4,), (2, 3), (0,), (0, 3)]


def random_poses(lead, rng):
    poses = np.tile(np.eye(4), (*lead, 1, 1))
    for index in np.ndindex(*lead):
        poses[index][:3, :3] = Rotation.random(random_state=rng.integers(2**31)).as_matrix()
        poses[index][:3, 3] = rng.normal(0.0, 2.0, 3)
    return poses


def assert_close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize('lead', LEADS)
def test_row_poses_move_points(lead, rng):
    poses, points = random_poses(lead, rng), rng.normal(size=(*lead, 5, 3))
    rows = transforms.row_pose(poses)
    assert rows.shape == (*lead, 4, 3)
    moved = points @ rows[..., :3, :] + rows[..., 3:, :]
    for index in np.ndindex(*lead):
        column = poses[index] @ np.vstack([points[index].T, np.ones(5)])
        assert_close(moved[index], column[:3].T)


@pytest.mark.parametrize('lead', LEADS)
def test_composition(lead, rng):
    A_H_B, B_H_C = random_poses(lead, rng), random_poses(lead, rng)
    rows = transforms.compose(transforms.row_pose(A_H_B), transforms.row_pose(B_H_C))
    assert_close(rows, transforms.row_pose(A_H_B @ B_H_C))


@pytest.mark.parametrize('lead', LEADS)
def test_cross_products(lead, rng):
    p, f = rng.normal(size=(2, *lead, 3))
    K = transforms.cross_matrix(p)
    assert K.shape == (*lead, 3, 3)
    assert_close((f[..., None, :] @ K)[..., 0, :], np.cross(p, f))


@pytest.mark.parametrize('lead', LEADS)
def test_wrenches_there_and_back(lead, rng):
    A_H_B, B_f = random_poses(lead, rng), rng.normal(0.0, 10.0, (*lead, 6))
    rows = transforms.row_pose(A_H_B)
    cross = transforms.cross_matrix(rows[..., 3, :])
    pairs = B_f.reshape(*lead, 2, 3)
    A_f = transforms.to_parent(rows, pairs, cross)
    for index in np.ndindex(*lead):
        expected = brute_force.wrench_transform(A_H_B[index]) @ B_f[index]
        assert_close(A_f[index].ravel(), expected)
    assert_close(transforms.to_child(rows, A_f, cross), pairs)


def test_a_body_at_rest_presses_down_at_its_lever_arm():
    """Pin the sign: 10 N upwards, one metre along x, turn about -y."""
    A_H_B = np.eye(4)
    A_H_B[0, 3] = 1.0
    rows = transforms.row_pose(A_H_B)
    up = np.array([[0.0, 0.0, 10.0], [0.0, 0.0, 0.0]])
    A_f = transforms.to_parent(rows, up, transforms.cross_matrix(rows[3]))
    np.testing.assert_array_equal(A_f, [[0.0, 0.0, 10.0], [0.0, -10.0, 0.0]])
