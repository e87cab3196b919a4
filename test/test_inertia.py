# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Pseudo-inertia and physical consistency.

Not covered: how parameters get out of a URDF (test_robot.py).
"""

import numpy as np
import pytest

from inertial_estimation.model.inertia import (
    consistency_margin,
    first_moment_complaint,
    inertia_complaint,
    pseudo_inertia,
)

# Sums of a few dozen products of order one.
ROUND_OFF = 1e-13


def parameters_of_points(masses, points):
    """Return the parameters of point masses, straight from the definitions."""
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    return np.array([masses.sum(), *(masses @ points), xx, xy, yy, xz, yz, zz])


def test_pseudo_inertia_is_the_second_moment_of_the_mass(rng):
    masses, points = rng.uniform(0.1, 1.0, 12), rng.normal(size=(12, 3))
    homogeneous = np.column_stack([points, np.ones(12)])
    expected = (masses[:, None] * homogeneous).T @ homogeneous
    got = pseudo_inertia(parameters_of_points(masses, points))
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def test_many_bodies_at_once(rng):
    parameters = rng.normal(size=(2, 5, 10))
    stacked, margins = pseudo_inertia(parameters), consistency_margin(parameters)
    assert stacked.shape == (2, 5, 4, 4)
    assert margins.shape == (2, 5)
    for index in np.ndindex(2, 5):
        single = pseudo_inertia(parameters[index])
        np.testing.assert_array_equal(stacked[index], single)
        smallest = np.linalg.eigvalsh(single)[0]
        np.testing.assert_allclose(margins[index], smallest, rtol=0, atol=ROUND_OFF)


def test_a_body_with_volume_is_consistent_and_a_plate_is_on_the_border(rng):
    masses, points = rng.uniform(0.1, 1.0, 12), rng.normal(size=(12, 3))
    assert consistency_margin(parameters_of_points(masses, points)) > 0.01
    points[:, 2] = 0.3
    flat = consistency_margin(parameters_of_points(masses, points))
    np.testing.assert_allclose(flat, 0.0, atol=ROUND_OFF)


def test_sound_parameters_bring_no_complaint(nested_humanoid):
    assert {inertia_complaint(p) for p in nested_humanoid.parameters} == {''}


@pytest.mark.parametrize(
    ('changes', 'complaint'),
    [
        ({}, 'has no mass and no inertia'),
        ({0: np.nan}, 'holds NaN or infinity'),
        ({0: 1.0, 5: np.inf}, 'holds NaN or infinity'),
        # A point, on the boundary.
        ({0: 1.0}, 'not fully physically consistent'),
        ({0: -1.0, 4: 1.0, 6: 1.0, 9: 1.0}, 'has a mass of -1 kg'),
        ({4: 1.0, 6: 1.0, 9: 1.0}, 'has a mass of 0 kg'),
        # A positive definite inertia that breaks the triangle inequality.
        ({0: 1.0, 4: 1.0, 6: 1.0, 9: 3.0}, 'not fully physically consistent'),
        # The centre of mass too far out for the inertia about the origin.
        ({0: 1.0, 1: 2.0, 4: 1.0, 6: 1.0, 9: 1.0}, 'not fully physically consistent'),
    ],
)
def test_complaints(changes, complaint):
    parameters = np.zeros(10)
    for index, value in changes.items():
        parameters[index] = value
    assert complaint in inertia_complaint(parameters)


@pytest.mark.parametrize(
    ('mass', 'moment', 'largest', 'said'),
    [
        (0.0, 0.0, 1.0, ''),
        (0.0, 1e-300, 1.0, 'no mass'),
        (0.0, 0.1, 1.0, 'no mass'),
        (1e-300, 0.0, 1.0, ''),
        # A centre of mass 10 km away, of a body that would not be noticed there.
        (1e-20, 1e-16, 1.0, ''),
        (1e-4, 0.1, 1.0, ''),
        (-1e-4, 0.1, 1.0, ''),
        # 0.01 / 1e-9 is beyond a million, unless a robot is that heavy.
        (1e-9, 0.1, 1.0, 'a mass of 1e-09 kg: with the centre of mass 1e+08 m away'),
        (-1e-9, 0.1, 1.0, 'a mass of -1e-09 kg'),
        (1e-9, 0.1, 20.0, ''),
    ],
)
def test_a_centre_of_mass_must_not_be_too_far_away(mass, moment, largest, said):
    parameters = np.array([mass, 0.0, moment, 0.0, *np.ones(6)])
    complaint = first_moment_complaint(parameters, largest)
    assert said in complaint and bool(said) == bool(complaint)
