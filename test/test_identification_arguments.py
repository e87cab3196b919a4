# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is no argument of identification gets an error of the package, which names it.

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
from inertial_estimation.identification.unknowns import Extra, Unknowns


@pytest.fixture(scope='module')
def problem():
    """Return a small problem."""
    return humanoid_case(np.random.default_rng(0)).problem()


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('factor', None),
        ('factor', [[1.0]]),
        ('factor', np.array([['a']])),
        ('factor', np.zeros((3, 52), dtype=complex)),
        ('target', [1.0]),
        ('target', None),
        ('prior', [[1.0] * 10]),
        ('prior', np.full((5, 10), 'a')),
        ('prior_extras', [0.0, 0.0]),
        ('prior_extras', np.array([np.nan, 0.0])),
        ('extra_scales', np.array([0.0, 1.0])),
        ('unknowns', None),
        ('bounds', {}),
        ('energy', 'a'),
        ('energy', -1.0),
        ('energy', np.nan),
        ('count', 'a'),
        ('count', np.nan),
        ('count', np.inf),
    ],
)
def test_fields_of_a_problem(problem, name, value):
    with pytest.raises(InertialEstimationError):
        replace(problem, **{name: value})


@pytest.mark.parametrize('limits', [[[0.0, 1.0]] * 5, np.full((5, 2), np.nan), np.zeros((2, 5))])
def test_bounds_of_a_problem(problem, limits):
    with pytest.raises(InertialEstimationError, match='bounds.mass'):
        replace(problem, bounds=Bounds(mass=limits))


@pytest.mark.parametrize(
    ('method', 'name', 'value'),
    [
        *[(method, 'noise', -1.0) for method in SOLVERS],
        *[(method, 'noise', 'a') for method in SOLVERS],
        *[(method, 'weight', 'a') for method in SOLVERS if method != 'least_squares'],
        ('entropic', 'weight', None),
        ('semidefinite', 'weight', np.ones(2)),
        ('entropic', 'start', np.full(52, np.nan)),
        ('entropic', 'start', [0.0] * 52),
        ('entropic', 'max_iterations', -1),
        ('manifold', 'max_iterations', 'a'),
        ('manifold', 'time_limit', np.nan),
        ('mass_points', 'time_limit', -1.0),
        ('mass_points', 'regularization', 'a'),
        ('mass_points', 'mass_errors', np.ones(3)),
        ('mass_points', 'mass_errors', np.zeros(5)),
        ('mass_points', 'base_map', np.ones((2, 3))),
        ('semidefinite', 'time_limit', -1.0),
        ('semidefinite', 'scales', np.ones(3)),
        ('semidefinite', 'prior', 'euclid'),
        ('semidefinite', 'consistency', 'foo'),
        ('semidefinite', 'margin', 'a'),
        ('least_squares', 'fill', 'foo'),
    ],
)
def test_options_of_methods(problem, method, name, value):
    with pytest.raises(InertialEstimationError):
        SOLVERS[method](problem, **{name: value})


def test_choices_may_be_named(problem):
    named = SOLVERS['semidefinite'](problem, prior='none')
    assert np.isinf(named.deviations).any()


def test_no_budget_at_all_is_one(problem):
    result = SOLVERS['mass_points'](problem, max_iterations=0, time_limit=0.0)
    assert result.consistent


@pytest.mark.parametrize(
    'wrong',
    [
        lambda: Information.of([[1.0]], [1.0]),
        lambda: Information.of(np.float64(3.0), np.zeros(1)),
        lambda: Information.of(np.array([['a']]), np.zeros(1)),
        lambda: Information.empty(-1),
        lambda: Information.empty('a'),
        lambda: Unknowns('arm'),
        lambda: Unknowns(('arm', 'arm')),
        lambda: Extra('arm', 'offset'),
        lambda: fit(None, [], 'nonsense'),
    ],
)
def test_other_arguments(wrong):
    with pytest.raises(InertialEstimationError):
        wrong()
