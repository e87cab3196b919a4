# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The manifold of consistent parameters, and optimization on it [M].

What every method must do is in test_solver_contract. Not covered: which of several local optima
without prior is found.
"""

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.identification.problem import Grade
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import entropic_divergence
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.manifold import (
    ManifoldObjective,
    solve_manifold,
)
from inertial_estimation.identification.solvers.semidefinite import solve_semidefinite

ROUND_OFF = 1e-12  # of sums of products of parameters
SAME_POINT = 1e-7  # two methods, one strictly convex objective: the root of their gaps
AGREE = 1e-6  # least squares and the manifold at no constraint, over the largest prediction
EDGE = 1e-5  # links just inside the cone, against its edge
NOISE = 20.0
STEP, DIFFERENCED = 1e-4, 1e-6  # round-off over the step, and its square


@pytest.fixture
def noisy(rng):
    case = humanoid_case(rng)
    return case.problem(NOISE * rng.normal(size=len(case.y)))


def test_prior_leads_to_the_answer_of_the_convex_method(noisy):
    found, expected = solve_manifold(noisy), solve_entropic(noisy)
    assert found.grade is Grade.OPTIMAL
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME_POINT, atol=SAME_POINT)
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=10 * SAME_POINT)


def test_few_equations_and_a_weak_prior_have_the_same_minimum(rng):
    case = humanoid_case(rng, instants=5)
    problem = case.problem(NOISE * rng.normal(size=len(case.y)))
    found, expected = (f(problem, weight=1e-8) for f in (solve_manifold, solve_entropic))
    least, value = (
        one.mean_square / 2 + 1e-8 * entropic_divergence(one.parameters, problem.prior).sum()
        for one in (expected, found)
    )
    assert found.grade is Grade.OPTIMAL and value <= least * (1.0 + SAME_POINT)


def test_slopes_and_curvature_of_the_objective_are_differences(noisy, rng):
    objective = ManifoldObjective(Coordinates.of(noisy), 10.0, 0.1)
    y, step = objective.start + 0.1 * rng.normal(size=(2, len(objective.start)))
    ahead, behind = (objective.place(y + share * step) for share in (STEP, -STEP))
    here = objective.place(y)
    slope = (ahead.value - behind.value) / (2 * STEP)
    assert slope == pytest.approx(here.gradient @ step, rel=DIFFERENCED)
    change = (ahead.gradient - behind.gradient) / (2 * STEP)
    size = np.abs(change).max()
    np.testing.assert_allclose(here.hessian @ step, change, atol=DIFFERENCED * size)


@pytest.mark.parametrize('weight', [1e-2, None])
def test_every_iterate_is_consistent_and_no_worse(noisy, weight):
    values = []
    for budget in range(30):
        result = solve_manifold(noisy, weight=weight, max_iterations=budget)
        assert result.consistent and result.iterations <= budget
        assert (result.grade is Grade.OPTIMAL) == (result.optimality <= 1e-9)
        far = entropic_divergence(result.parameters, noisy.prior).sum()
        values.append(noisy.mean_square(result.x) / 2 + (weight or 0.0) * far)
    assert (np.diff(values) <= ROUND_OFF * values[0]).all() and values[3] < values[0]


def test_without_prior_the_boundary_is_that_of_the_cone(noisy):
    found = solve_manifold(noisy, weight=None)
    expected = solve_semidefinite(noisy, prior='none')
    assert found.grade is Grade.OPTIMAL
    assert found.mean_square == pytest.approx(expected.mean_square, rel=EDGE)


def test_inside_the_cone_it_is_least_squares(rng):
    case = humanoid_case(rng)
    problem = case.problem(0.1 * rng.normal(size=len(case.y)))
    found, expected = solve_manifold(problem, weight=None), solve_least_squares(problem)
    difference = problem.factor @ (found.x - expected.x)
    assert np.abs(difference).max() < AGREE * np.abs(problem.target).max()
