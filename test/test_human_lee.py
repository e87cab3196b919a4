# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The human of Lee, Wensing and Park (2020): 16 links, the authors' equations and their own answers.

Theirs come from an interior point solver to its default tolerances; ours are nearer to the
optimum. Not covered: where their equations come from, and how good any of these answers are.
"""

import numpy as np
import pytest
from identification_problems import pullback_distance
from scipy.optimize import brentq
from shared_data import SHARED

from inertial_estimation import Bounds, Information, Problem, Unknowns
from inertial_estimation.identification.problem import Grade, LinearBounds
from inertial_estimation.identification.solvers.divergence import entropic_divergence
from inertial_estimation.identification.solvers.methods import SOLVERS

DATA = SHARED / 'data' / 'human_lee2020' / 'human_lee2020.npz'
pytestmark = pytest.mark.skipif(not DATA.is_file(), reason='needs ../shared/data')

NEAR = {'entropic': 2e-5, 'pullback': 1e-6}
"""Distance of the authors' answers from the optimum, over their norm."""
EUCLIDEAN = 3e-6
"""Difference of costs, relative: both lie on the cone and on ellipsoids to within 1e-6."""
CONSTRAINT = 1e-8
"""By which our residual misses its bound, relative: the search for the weight."""


@pytest.fixture(scope='module')
def data():
    """Return the authors' equations, prior, ellipsoids and answers."""
    with np.load(DATA) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope='module')
def problem(data):
    """Return the problem in units of the noise, with the ellipsoids as bounds."""
    n = len(data['b'])
    weights = 1.0 / np.sqrt(np.tile(data['sigma_diag'], n // len(data['sigma_diag'])))
    information = Information.of(weights[:, None] * data['A'], weights * data['b'])
    unknowns = Unknowns(tuple(f'link_{k}' for k in range(len(data['prior']))))
    return Problem.of(unknowns, information, data['prior'], bounds=Bounds(ellipsoids=data['Q']))


@pytest.mark.parametrize(
    ('method', 'measure'), [('entropic', entropic_divergence), ('pullback', pullback_distance)]
)
def test_answer_nearest_to_the_prior_is_the_authors(method, measure, problem, data):
    solve, theirs = SOLVERS[method], data[f'sol_{method}']
    greatest = float(data['ls_bound_c']) / len(data['b'])

    def excess(exponent):
        return solve(problem, weight=float(np.exp(exponent))).mean_square - greatest

    at_prior = np.log(problem.mean_square(problem.prior_point()))
    best = brentq(excess, at_prior - 23.0, min(at_prior + 23.0, 27.0), xtol=1e-10)
    found = solve(problem, weight=float(np.exp(best)))
    assert np.linalg.norm(found.parameters - theirs) < NEAR[method] * np.linalg.norm(theirs)
    assert found.grade is Grade.OPTIMAL
    assert found.mean_square == pytest.approx(greatest, rel=CONSTRAINT)
    # Neither ellipsoids nor consistency are active.
    assert LinearBounds.of(problem.bounds, problem.unknowns).slack(found.x).min() > 0.0
    assert found.consistent
    ours = measure(found.parameters, data['prior']).sum()
    assert ours <= measure(theirs, data['prior']).sum() * (1.0 + 1e-6)


def test_euclidean_cost_is_the_authors(problem, data):
    """Theirs weighs the squared distance and the squared residual alike, without halves."""
    weight = float(data['gamma']) / len(data['b'])

    def cost(x):
        distance = np.sum((x - problem.prior_point()) ** 2)
        return 0.5 * problem.mean_square(x) + 0.5 * weight * distance

    theirs = cost(data['sol_euclidean'].ravel())
    bounds = LinearBounds.of(problem.bounds, problem.unknowns)
    found = SOLVERS['semidefinite'](problem, weight=weight, prior='euclidean')
    assert cost(found.x) == pytest.approx(theirs, rel=EUCLIDEAN)
    assert bounds.slack(found.x).min() > -1e-6
    assert found.margins.min() > -1e-6
    # Without the constraints the optimum is outside.
    plain = SOLVERS['euclidean'](problem, weight=weight)
    assert plain.grade is Grade.OPTIMAL
    assert not plain.consistent or bounds.slack(plain.x).min() < 0.0
    assert cost(plain.x) <= theirs
