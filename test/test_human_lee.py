# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The human of Lee, Wensing and Park (2020): 16 links, the authors' rows and their own answers.

Theirs come from an interior point solver to its default tolerances; ours is nearer to the
optimum. Not covered: where their rows come from, and how good any of these answers are.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from shared_data import SHARED

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    pullback_distance,
)
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.quadratic import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.unknowns import Unknowns

DATA = SHARED / 'data' / 'human_lee2020' / 'human_lee2020.npz'
pytestmark = pytest.mark.skipif(
    not DATA.is_file(), reason='the shared data folder is not beside this checkout'
)

ENTROPIC = 2e-5
"""Distance of the authors' answer from the optimum, over its norm."""
PULLBACK = 1e-6
"""Likewise."""
EUCLIDEAN = 3e-6
"""Difference of costs, relative: both lie on the cone and on ellipsoids to within 1e-6."""
CONSTRAINT = 1e-8
"""By which our residual misses its bound, relative: the search for the weight."""


@pytest.fixture(scope='module')
def data():
    """Return the authors' rows, prior, ellipsoids and answers."""
    with np.load(DATA) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope='module')
def problem(data):
    """Return the problem, rows in units of their noise, with the ellipsoids as bounds."""
    rows = len(data['b'])
    weights = 1.0 / np.sqrt(np.tile(data['sigma_diag'], rows // len(data['sigma_diag'])))
    information = Information.of(weights[:, None] * data['A'], weights * data['b'])
    unknowns = Unknowns(tuple(f'link_{k}' for k in range(len(data['prior']))))
    return Problem.of(unknowns, information, data['prior'], bounds=Bounds(ellipsoids=data['Q']))


def nearest_within(problem, greatest, solve):
    """Return the answer nearest to the prior with a mean squared residual."""

    def excess(exponent):
        return solve(problem, weight=float(np.exp(exponent))).mean_square - greatest

    at_prior = np.log(problem.mean_square(problem.prior_point()))
    best = brentq(excess, at_prior - 23.0, min(at_prior + 23.0, 27.0), xtol=1e-10)
    return solve(problem, weight=float(np.exp(best)))


@pytest.fixture(scope='module')
def greatest(data):
    """Return the mean squared residual that the authors allow."""
    return float(data['ls_bound_c']) / len(data['b'])


@pytest.fixture(scope='module')
def entropic(problem, greatest):
    """Return our entropic answer."""
    return nearest_within(problem, greatest, solve_entropic)


@pytest.fixture(scope='module')
def pullback(problem, greatest):
    """Return our pullback answer."""
    return nearest_within(problem, greatest, solve_pullback)


def distance(result, theirs):
    """Return the distance of two answers over the norm of the authors'."""
    return np.linalg.norm(result.parameters - theirs) / np.linalg.norm(theirs)


def test_the_entropic_answer_is_the_authors(entropic, data):
    assert distance(entropic, data['sol_entropic']) < ENTROPIC


def test_the_pullback_answer_is_the_authors(pullback, data):
    assert distance(pullback, data['sol_pullback']) < PULLBACK


@pytest.mark.parametrize('name', ['entropic', 'pullback'])
def test_the_residual_is_the_constraint(name, request, greatest):
    result = request.getfixturevalue(name)
    assert result.grade is Grade.OPTIMAL
    assert result.mean_square == pytest.approx(greatest, rel=CONSTRAINT)


@pytest.mark.parametrize('name', ['entropic', 'pullback'])
def test_neither_ellipsoids_nor_consistency_hold_the_answer(name, request, problem):
    result = request.getfixturevalue(name)
    assert LinearBounds.of(problem).slack(result.x).min() > 0.0
    assert result.consistent


def test_our_answers_are_no_farther_from_the_prior(entropic, pullback, data):
    prior = data['prior']
    for found, theirs, measure in (
        (entropic, data['sol_entropic'], entropic_divergence),
        (pullback, data['sol_pullback'], pullback_distance),
    ):
        ours = measure(found.parameters, prior).sum()
        assert ours <= measure(theirs, prior).sum() * (1.0 + 1e-6)


def test_the_euclidean_answer_is_the_authors(problem, data):
    # Theirs weighs the squared distance and the squared residual alike, without halves.
    pytest.importorskip('clarabel')
    from inertial_estimation.identification.solvers.semidefinite import (
        PriorTerm,
        solve_semidefinite,
    )

    weight = float(data['gamma']) / len(data['b'])
    result = solve_semidefinite(problem, weight=weight, prior=PriorTerm.EUCLIDEAN, margin=0.0)
    theirs = cost(problem, data['sol_euclidean'].ravel(), weight)
    assert cost(problem, result.x, weight) == pytest.approx(theirs, rel=EUCLIDEAN)
    assert LinearBounds.of(problem).slack(result.x).min() > -1e-6
    assert result.margins.min() > -1e-6


def test_the_quadratic_euclidean_answer_is_no_body(problem, data):
    # The authors' Euclidean answer lies on the cone and on ellipsoids, which need a method with
    # constraints; without them the optimum is outside.
    weight = float(data['gamma']) / len(data['b'])
    result = solve_euclidean(problem, weight=weight)
    slack = LinearBounds.of(problem).slack(result.x)
    assert result.grade is Grade.OPTIMAL
    assert not result.consistent or slack.min() < 0.0
    assert cost(problem, result.x, weight) <= cost(problem, data['sol_euclidean'].ravel(), weight)


def cost(problem, x, weight):
    """Return what the Euclidean method minimises."""
    return 0.5 * problem.mean_square(x) + 0.5 * weight * np.sum((x - problem.prior_point()) ** 2)
