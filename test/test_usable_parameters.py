# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What inertial parameters from elsewhere must be like to be used, on both sides of each bound."""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import check_masses, check_usable

NAMES = ('base', 'hand')


def body(mass, center, moments=(1.0, 1.0, 1.0)):
    """Return a body with these moments of inertia by mass about its centre of mass."""
    c = np.asarray(center, dtype=float)
    inertia = mass * (np.diag(moments) + c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *mass * c, *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


GOOD = body(2.0, [0.1, 0.0, 0.2])


@pytest.mark.parametrize(
    'usable',
    [
        body(9999.0, [0.0, 0.0, 0.0]),
        # Far and heavy: its first moment is large, its centre of mass is not.
        body(100.0, [5.0, 5.0, 5.0]),
        body(1e-6, [0.0, 9.9, 0.0]),
        # Nearly flat: two moments give nearly the third.
        body(1.0, [0.0, 0.0, 0.0], (1.0, 1.0, 2.0 - 1e-9)),
    ],
)
def test_what_a_robot_may_have(usable):
    check_usable(NAMES, np.array([GOOD, usable]))


@pytest.mark.parametrize(
    'spoilt',
    [
        body(10001.0, [0.0, 0.0, 0.0]),
        body(0.0, [0.0, 0.0, 0.0]),
        -GOOD,
        body(1e-3, [0.0, 10.1, 0.0]),
        body(1.0, [7.0, 7.0, 7.0]),
        body(1.0, [0.0, 0.0, 0.0], (1.0, 1.0, 2.0 + 1e-9)),
        body(1.0, [0.1, 0.0, 0.0], (0.0, 0.0, 0.0)),
        np.where(np.arange(10) == 7, np.nan, GOOD),
        np.where(np.arange(10) == 0, np.inf, GOOD),
    ],
)
def test_what_no_robot_has_is_refused_by_name(spoilt):
    with pytest.raises(ModelError):
        check_usable(NAMES, np.array([GOOD, spoilt]))


def masses(*given):
    return np.array([body(mass, [0.0, 0.0, 0.0]) for mass in given])


@pytest.mark.parametrize('given', [(8.0, 0.4), (9.1, 3.1), (24.0, 3.0), (3.4, 0.1)])
def test_masses_near_a_description_may_be_used(given):
    check_masses(NAMES, masses(*given), masses(10.0, 0.1), 3.0)


@pytest.mark.parametrize(
    'given',
    [(100.0, 1.0), (3.2, 0.1), (9.0, 3.5)],
)  # fmt: skip
def test_masses_far_from_a_description_are_refused_with_the_remedy(given):
    with pytest.raises(ModelError):
        check_masses(NAMES, masses(*given), masses(10.0, 0.1), 3.0)
    check_masses(NAMES, masses(*given), masses(10.0, 0.1), 0.0)
