# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrong arguments of identification get an error of the package.

Not covered: settings and logs of the command, which have tests of their own.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import Unknowns


@pytest.fixture(scope='module')
def problem():
    return humanoid_case(np.random.default_rng(0)).problem()


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('factor', np.zeros((3, 52), dtype=complex)),
        ('target', None),
        ('prior_extras', np.array([np.nan, 0.0])),
        ('extra_scales', np.array([0.0, 1.0])),
        ('energy', -1.0),
        ('count', np.inf),
        ('count', 0.0),
        *[('bounds', Bounds(mass=one)) for one in ([[0, 1]], np.full((5, 2), np.nan))],
        ('bounds', Bounds(total_mass=np.zeros((2, 5)))),
        ('bounds', Bounds(ellipsoids=np.tile(np.diag([1.0, 1.0, 1.0, np.nan]), (5, 1, 1)))),
    ],
)
def test_fields_of_a_problem(problem, name, value):
    with pytest.raises(InertialEstimationError):
        replace(problem, **{name: value})


@pytest.mark.parametrize(
    ('method', 'name', 'value'),
    [
        *[(method, 'noise', -1.0) for method in SOLVERS],
        *[(method, 'weight', 'a') for method in SOLVERS if method != 'least_squares'],
        ('entropic', 'start', np.full(52, np.nan)),
        ('manifold', 'max_iterations', 'a'),
        ('semidefinite', 'prior', 'euclid'),
        ('semidefinite', 'prior', 'entropic'),
        ('semidefinite', 'consistency', 'foo'),
        ('semidefinite', 'margin', 'a'),
    ],
)
def test_options_of_methods(problem, method, name, value):
    with pytest.raises(InertialEstimationError):
        SOLVERS[method](problem, **{name: value})


@pytest.mark.parametrize(
    'wrong',
    [
        lambda: Information.of([[1.0]], [1.0]),
        lambda: Information.of(np.array([[np.nan]]), np.zeros(1)),
        lambda: Information.empty(3).add(np.zeros((2, 4)), np.zeros(2)),
        lambda: Information.empty(3).merge(Information.empty(4)),
        lambda: Information.empty(3).forget(0.0),
        lambda: Unknowns(('arm', 'arm')),
        lambda: fit(None, [], 'nonsense'),
    ],
)
def test_other_arguments(wrong):
    with pytest.raises(InertialEstimationError):
        wrong()
