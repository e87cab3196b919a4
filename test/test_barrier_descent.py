# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Going down inside limits: the optimum, the limits, and an early end.

Not covered: the function that it is for, see `test_excitation`.
"""

import numpy as np
import pytest

from inertial_estimation.identification.excitation.barrier_descent import (
    LinearLimits,
    Value,
    minimise_inside,
)

STEP = 1e-6
# Square of the step and round-off over it, at slopes of order ten.
DIFFERENCED = 1e-7
# The last step may leave this much of the function, whose curvature is two.
TOLERANCE = 1e-10
NEAR = 1e-4


@pytest.fixture
def limits(rng):
    """Return a box of two groups of three variables, cut by random planes."""
    A = np.concatenate([np.tile(np.eye(3), (2, 1, 1)), 0.3 * rng.normal(size=(2, 5, 3))], axis=1)
    return LinearLimits(A, 0.1 * rng.normal(size=A.shape[:2]))


def bowl(centre):
    return lambda x: Value(float(np.sum((x - centre) ** 2)), 2.0 * (x - centre))


def test_slopes_and_curvature_of_the_barrier(limits, rng):
    x = 0.2 * rng.normal(size=(2, 3))
    here, curvature = limits.barrier(x), limits.curvature(x)
    for group, k in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[group, k] = STEP
        up, down = limits.barrier(x + step), limits.barrier(x - step)
        slope = (up.value - down.value) / (2 * STEP)
        np.testing.assert_allclose(here.gradient[group, k], slope, atol=DIFFERENCED)
        change = (up.gradient - down.gradient)[group] / (2 * STEP)
        np.testing.assert_allclose(curvature[group, k], change, atol=DIFFERENCED)


def test_an_optimum_inside_is_found(limits):
    centre = np.full((2, 3), 0.15)
    found = minimise_inside(bowl(centre), limits, np.zeros((2, 3)), 1e-9, tolerance=TOLERANCE)
    np.testing.assert_allclose(found, centre, atol=NEAR)


def test_an_optimum_outside_is_approached_from_inside():
    box = LinearLimits(np.eye(3)[None], np.zeros((1, 3)))
    found = minimise_inside(
        bowl(np.array([[2.0, 0.0, -3.0]])), box, np.zeros((1, 3)), 1e-6, tolerance=TOLERANCE
    )
    assert np.abs(box.values(found)).max() < 1.0
    np.testing.assert_allclose(found, [[1.0, 0.0, -1.0]], atol=NEAR)


def test_an_early_end_is_inside_and_no_worse(limits):
    function, start = bowl(np.full((2, 3), 5.0)), np.zeros((2, 3))
    found = minimise_inside(function, limits, start, 0.1, stop=lambda: True)
    assert np.abs(limits.values(found)).max() < 1.0
    assert function(found).value < function(start).value
