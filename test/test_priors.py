# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Priors of URDFs, widened until they are strictly consistent. Not covered: their weight."""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.priors import SMALLEST_RADIUS, widened
from inertial_estimation.identification.solvers.mass_points import composition
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])
BALL = SMALLEST_RADIUS**2 / 5
ROUND_OFF = 1e-12  # parallel axes to and fro
POINT, STICK = (
    composition(np.array(points, dtype=float)) @ np.full(len(points), 0.5)
    for points in ([(1, 2, 3)], [(0, 3, 1), (0, 3, 2)])
)
BROKEN = np.array([1.0, 0, 0, 0, 0.052, 0, 0.03, 0, 0, 0.02])  # ixx > Iyy + Izz


@pytest.mark.parametrize(
    ('parameters', 'moments'),
    [
        (POINT, [0.5 * BALL] * 3),
        # Two points a metre apart: 2 * 0.5 kg * (0.5 m)^2 along their line.
        (STICK, [BALL, BALL, 0.25]),
        (BROKEN, [BALL, 0.021, 0.031]),
    ],
    ids=['point', 'stick', 'triangle inequality'],
)
def test_second_moments_are_raised_to_a_small_ball(parameters, moments):
    found, changed = widened('ab', np.array([BODY, parameters]))
    assert changed == ('b',)
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[0], BODY)
    np.testing.assert_array_equal(found[1, :4], parameters[:4])
    J = pseudo_inertia(found[1])
    central = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]
    np.testing.assert_allclose(np.linalg.eigvalsh(central), moments, atol=ROUND_OFF)


def test_frames_get_a_mass():
    """As URDFs describe frames: no mass, and at most a trace of inertia."""
    trace = np.array([0, 0, 0, 0, 5e-8, 0, 5e-8, 0, 0, 5e-8])
    found, changed = widened('ab', np.array([trace, np.zeros(10)]))
    assert changed == ('a', 'b') and (found[:, 0] > 0).all()
    np.testing.assert_allclose(found[0, 4:], trace[4:], atol=1e-6 * 5e-8)
    for impossible in (1e5 * trace, np.where(np.arange(10) == 4, -0.1, BODY), np.nan * BODY):
        with pytest.raises(ModelError) as error:
            widened(['arm', 'leg'], np.array([BODY, impossible]))
        assert 'leg' in str(error.value)
