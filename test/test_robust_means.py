# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constants from readings of which many are wrong.

Not covered: what the residuals make of them (test_attitude_residuals.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.attitude_residuals import robust_rotation, robust_vector

EXACT = 1e-13
"""Of rotations, and of vectors of length one."""
N = 500


def angle(one, other) -> float:
    return float(np.linalg.norm(Rotation.from_matrix(one.T @ other).as_rotvec()))


def noisy(rng, truth, deviation, n=N):
    turned = Rotation.from_rotvec(rng.normal(0, deviation, (n, 3))).as_matrix()
    return truth @ turned


@pytest.mark.parametrize('together', [False, True], ids=['anywhere', 'agreeing'])
def test_two_fifths_may_be_anything(together, rng):
    truth = Rotation.random(random_state=1).as_matrix()
    rotations = np.tile(truth, (N, 1, 1))
    wrong = rng.permutation(N)[: 2 * N // 5]
    others = Rotation.random(1 if together else len(wrong), random_state=2).as_matrix()
    rotations[wrong] = others
    found = robust_rotation(rotations)
    np.testing.assert_allclose(found, truth, rtol=0, atol=EXACT)
    np.testing.assert_allclose(robust_vector(rotations[:, 0]), truth[0], rtol=0, atol=EXACT)
    plain = Rotation.from_matrix(rotations).mean().as_matrix()
    assert angle(plain, truth) > 1e-3


def test_of_noise_it_is_the_mean(rng):
    truth, deviation = Rotation.random(random_state=3).as_matrix(), 0.02
    found = robust_rotation(noisy(rng, truth, deviation))
    # Five standard deviations of the mean's length.
    assert angle(found, truth) < 5 * deviation * np.sqrt(3 / N)
    plain = Rotation.from_matrix(noisy(rng, truth, deviation)).mean().as_matrix()
    assert angle(plain, truth) < 5 * deviation * np.sqrt(3 / N)
    vectors = rng.normal([1.0, 2.0, 3.0], deviation, (N, 3))
    np.testing.assert_allclose(
        robust_vector(vectors), vectors.mean(axis=0), rtol=0, atol=deviation / N
    )


def test_half_turns_apart_there_is_still_a_rotation():
    """The mean of their matrices is singular; the answer is one of them."""
    rotations = np.array([np.eye(3), np.diag([1.0, -1.0, -1.0])])
    found = robust_rotation(rotations)
    np.testing.assert_allclose(found.T @ found, np.eye(3), rtol=0, atol=EXACT)
    np.testing.assert_allclose(np.linalg.det(found), 1.0, rtol=0, atol=EXACT)
