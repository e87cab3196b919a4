# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Priors of points, sticks and nothing become bodies; impossible ones are refused."""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.priors import SMALLEST_RADIUS, widened
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])
# Parallel axes to and fro.
ROUND_OFF = 1e-12


def masses_at(points, mass=0.5):
    """Return the parameters of point masses."""
    total = np.zeros(10)
    for x, y, z in points:
        total += mass * np.array(
            [1, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
        )
    return total


def second_moments(parameters):
    """Return the principal second moments about the centre of mass, from small to large."""
    J = pseudo_inertia(parameters)
    return np.linalg.eigvalsh(J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3])


def test_what_has_volume_stays_and_the_rest_gets_some():
    thin = [np.zeros(10), masses_at([(1, 2, 3)]), masses_at([(0, 0, 1), (0, 0, 2)])]
    found, changed = widened('abcd', np.array([BODY, *thin]))
    np.testing.assert_array_equal(found[0], BODY)
    assert changed == ('b', 'c', 'd')
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[2:, :4], np.array(thin[1:])[:, :4])
    # Nobody notices beside a link of a few hundred grams.
    assert np.abs(found - np.array([BODY, *thin])).max() <= 1e-3


def test_second_moments_are_raised_to_those_of_a_small_ball_and_no_further():
    found, _ = widened('ab', np.array([masses_at([(1, 2, 3)]), masses_at([(0, 3, 1), (0, 3, 2)])]))
    ball = SMALLEST_RADIUS**2 / 5
    np.testing.assert_allclose(second_moments(found[0]), 0.5 * ball * np.ones(3), atol=ROUND_OFF)
    # Two points a metre apart: 2 * 0.5 kg * (0.5 m)^2 along their line.
    stick = second_moments(found[1])
    np.testing.assert_allclose(stick, [ball, ball, 0.25], atol=ROUND_OFF)


def test_a_broken_triangle_inequality_is_mended():
    """Ixx > Iyy + Izz: the second moment along x is negative, the largest of the others stays."""
    broken = np.array([1.0, 0, 0, 0, 0.052, 0, 0.03, 0, 0, 0.02])
    found, changed = widened(['arm_1_link'], broken[None])
    assert changed == ('arm_1_link',)
    expected = [SMALLEST_RADIUS**2 / 5, 0.021, 0.031]
    np.testing.assert_allclose(second_moments(found[0]), expected, atol=ROUND_OFF)
    np.testing.assert_array_equal(found[0, :4], broken[:4])


def test_a_trace_of_inertia_without_mass_stays_and_gets_one():
    """As descriptions give to links that are frames."""
    found, changed = widened('a', np.array([[0, 0, 0, 0, 5e-8, 0, 5e-8, 0, 0, 5e-8]]))
    assert changed == ('a',)
    np.testing.assert_allclose(found[0, 4:], [5e-8, 0, 5e-8, 0, 0, 5e-8], atol=1e-6 * 5e-8)
    assert found[0, 0] > 0


def test_inertia_without_mass_is_refused():
    with pytest.raises(ModelError):
        widened('a', np.array([[0, 0, 0, 0, 1e-3, 0, 1e-3, 0, 0, 1e-3]]))


@pytest.mark.parametrize(
    ('index', 'value', 'said'),
    [
        (0, -1.0, 'mass of -1'),
        (0, 0.0, 'no mass'),
        (4, -0.1, 'moment of inertia of -0.'),
        (9, np.nan, 'NaN'),
        (2, 1000.0 * BODY[0], 'centre of mass 1000 m off its origin, expected up to 10'),
    ],
)
def test_the_impossible_is_refused_by_name(index, value, said):
    bad = BODY.copy()
    bad[index] = value
    with pytest.raises(ModelError):
        widened(['arm', 'leg'], np.array([BODY, bad]))


def test_ten_parameters_for_each_name():
    with pytest.raises(ShapeError):
        widened(['arm'], np.zeros((2, 10)))
