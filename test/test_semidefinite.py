# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Consistent fits by their optimality, inside the cone and at its edge.

Not covered: what all solvers have in common, see `test_solver_contract`; published
solutions (test_human_lee.py); how long it takes.
"""

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Grade, Problem
from inertial_estimation.identification.solvers.least_squares import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.solvers.semidefinite import (
    solve_semidefinite,
)
from inertial_estimation.identification.unknowns import Unknowns

SOLVER = 1e-6  # share of its numbers by which the solver misses a bound
SAME_RESIDUAL = 1e-2
"""The noise is estimated from residuals, which the cone changes where it holds a link."""


@pytest.fixture
def problem(rng):
    case = humanoid_case(rng)
    return case.problem(20.0 * rng.normal(size=len(case.y)))


@pytest.mark.parametrize('term', ['none', 'euclidean', 'pullback'])
def test_answer_is_optimal_and_in_the_cone(problem, term):
    found = solve_semidefinite(problem, prior=term)
    assert found.grade is Grade.OPTIMAL and found.optimality < 1e-8
    assert found.consistent


def test_inside_the_cone_deviations_are_those_without_it(problem):
    found, expected = (f(problem, weight=100.0) for f in (solve_semidefinite, solve_pullback))
    assert expected.consistent
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=SOLVER)
    euclidean = solve_semidefinite(problem, weight=100.0, prior='euclidean')
    expected = solve_euclidean(problem, weight=100.0)
    np.testing.assert_allclose(euclidean.deviations, expected.deviations, rtol=SAME_RESIDUAL)


def heavy_and_light(seed):
    """Return 12 equations of two links of 10 and 0.02 kg, which fit nearly exactly."""
    rng = np.random.default_rng(seed)
    masses = np.array([10.0, 0.02])
    prior = np.zeros((2, 10))
    prior[:, 0] = masses
    prior[:, [4, 6, 9]] = (0.1 * masses * (0.3 * (masses / 10.0) ** (1 / 3)) ** 2)[:, None]
    Y = rng.normal(size=(12, 20))
    y = Y @ (1.3 * prior).reshape(-1)
    noise = 0.02 * np.std(y)
    information = Information.of(Y / noise, y / noise + rng.normal(size=12))
    return Problem.of(Unknowns(('heavy', 'light')), information, prior)


def test_without_prior_every_answer_is_optimal_and_consistent():
    """With fewer equations than unknowns, so that linear equations are nearly singular."""
    for seed in range(60):
        found = solve_semidefinite(heavy_and_light(seed), prior='none')
        assert found.grade is Grade.OPTIMAL and found.consistent, seed
