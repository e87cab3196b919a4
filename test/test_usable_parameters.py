# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters from a topic or file that can be used, on both sides of each bound."""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import check_masses, check_usable

NAMES = ('base', 'hand')


def link(mass, center=(0.0, 0.0, 0.0), moments=(1.0, 1.0, 1.0)):
    """Return parameters from moments of inertia by mass about the centre of mass."""
    c = np.asarray(center, dtype=float)
    inertia = mass * (np.diag(moments) + c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *mass * c, *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


GOOD = link(2.0, [0.1, 0.0, 0.2])
USABLE = (
    link(9999.0),
    # Its first moment is large, its centre of mass is not.
    link(100.0, [5.0, 5.0, 5.0]),
    link(1e-6, [0.0, 9.9, 0.0]),
    # Two moments are nearly the third.
    link(1.0, moments=(1.0, 1.0, 2.0 - 1e-9)),
)
REFUSED = (
    link(10001.0),
    link(0.0),
    -GOOD,
    link(1e-3, [0.0, 10.1, 0.0]),
    link(1.0, moments=(1.0, 1.0, 2.0 + 1e-9)),
    np.where(np.arange(10) == 7, np.nan, GOOD),
    np.where(np.arange(10) == 0, np.inf, GOOD),
)


def test_parameters_are_usable_up_to_the_bounds():
    for usable in USABLE:
        check_usable(NAMES, np.array([GOOD, usable]))


@pytest.mark.parametrize('parameters', REFUSED)
def test_unusable_parameters_are_refused(parameters):
    with pytest.raises(ModelError):
        check_usable(NAMES, np.array([GOOD, parameters]))


@pytest.mark.parametrize('given', [(9.1, 3.1), (24.0, 3.0), (100.0, 1.0), (3.2, 0.1), (9.0, 3.5)])
def test_masses_far_from_the_urdf_are_refused(given):
    urdf, masses = (np.array([link(mass) for mass in each]) for each in ((10.0, 0.1), given))
    check_masses(NAMES, masses, urdf, 0.0)
    if given in ((9.1, 3.1), (24.0, 3.0)):
        check_masses(NAMES, masses, urdf, 3.0)
    else:
        with pytest.raises(ModelError):
            check_masses(NAMES, masses, urdf, 3.0)
