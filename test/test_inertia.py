# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Pseudo-inertia and physical consistency.

Not covered: how parameters get out of a URDF (test_robot.py).
"""

from contextlib import nullcontext

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import (
    check_centres,
    consistency_margin,
    inertia_complaint,
    pseudo_inertia,
)

ROUND_OFF = 1e-13  # sums of a few dozen products of order one


def test_pseudo_inertia_is_the_second_moment_of_the_mass(rng):
    masses, points = rng.uniform(0.1, 1.0, 12), rng.normal(size=(12, 3))
    for plate in (False, True):
        points[:, 2] = 0.3 if plate else points[:, 2]
        homogeneous = np.column_stack([points, np.ones(12)])
        inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points))
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
        parameters = np.array([masses.sum(), *(masses @ points), xx, xy, yy, xz, yz, zz])
        expected = (masses[:, None] * homogeneous).T @ homogeneous
        np.testing.assert_allclose(pseudo_inertia(parameters), expected, rtol=0, atol=ROUND_OFF)
        margin = consistency_margin(parameters)
        assert abs(margin) < ROUND_OFF if plate else margin > 0.01


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
