# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments of identification get an error of the package."""

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
        ('prior_extras', np.array([np.nan, 0.0])),
        ('count', 0.0),
        ('bounds', Bounds(mass=np.full((5, 2), np.nan))),
        ('bounds', Bounds(total_mass=np.zeros((2, 5)))),
        ('bounds', Bounds(ellipsoids=np.tile(np.diag([1.0, 1.0, 1.0, np.nan]), (5, 1, 1)))),
    ],
)
def test_fields_of_a_problem(problem, name, value):
    with pytest.raises(InertialEstimationError):
        replace(problem, **{name: value})


@pytest.mark.parametrize('method', SOLVERS)
def test_options_of_methods(problem, method):
    options = {'noise': -1.0, 'weight': 'a'} if SOLVERS[method].weighted else {'noise': -1.0}
    for name, value in options.items():
        with pytest.raises(InertialEstimationError):
            SOLVERS[method](problem, **{name: value})


@pytest.mark.parametrize(
    'wrong',
    [
        lambda problem: SOLVERS['entropic'](problem, start=np.full(52, np.nan)),
        lambda problem: SOLVERS['semidefinite'](problem, prior='euclid'),
        lambda problem: Information.of(np.array([[np.nan]]), np.zeros(1)),
        lambda problem: Information.empty(3).merge(Information.empty(4)),
        lambda problem: Unknowns(('arm', 'arm')),
        lambda problem: fit(None, [], 'nonsense'),
    ],
)
def test_other_arguments(problem, wrong):
    with pytest.raises(InertialEstimationError):
        wrong(problem)
