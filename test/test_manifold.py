# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The manifold of consistent parameters, and optimization on it [M].

What every method must do is in test_solver_contract. Not covered: which of several local optima
without prior is found.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case
from shoulder import (
    PACES,
    arm,
    arm_problem,
)

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
SLOPE, CURVE = 1e-6, 1e-4
"""Central differences with steps of 1e-5, second ones of 1e-4, of a smooth function."""
SAME_POINT = 1e-7  # two methods, one strictly convex objective: the root of their gaps
AGREE = 1e-8  # least squares and the manifold at no constraint: round-off of a condition of 1e4
TRUE = 3e-3  # what noise and filters of fast paths leave of M's experiment [kg, kg m, kg m^2]
EDGE = 1e-5  # links just inside the cone, against its edge
NOISE = 20.0


@pytest.fixture
def noisy(rng):
    case = humanoid_case(rng)
    return case.problem(NOISE * rng.normal(size=len(case.y)))


@pytest.mark.parametrize(('weight', 'floor'), [(0.1, 0.0), (1.0, 1e-6)])
def test_slopes_are_derivatives(noisy, rng, weight, floor):
    at = Coordinates.of(replace(noisy, extra_scales=np.array([2.0, np.inf])))
    objective = ManifoldObjective(at, weight, floor)
    y = objective.start + 0.1 * rng.normal(size=len(noisy.unknowns))
    place = objective.place(y)
    assert place.value == objective.value(y)
    for step in rng.normal(size=(5, len(y))):
        near, far = ([objective.value(y + s * h * step) for s in (-1, 1)] for h in (1e-5, 1e-4))
        assert place.gradient @ step == pytest.approx((near[1] - near[0]) / 2e-5, rel=SLOPE)
        second = (far[0] + far[1] - 2 * place.value) / 1e-8
        assert step @ place.hessian @ step == pytest.approx(second, rel=CURVE)


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


def test_without_prior_the_boundary_is_as_good_as_that_of_the_cone(noisy):
    found = solve_manifold(noisy, weight=None)
    expected = solve_semidefinite(noisy, prior='none')
    assert found.grade is Grade.OPTIMAL
    assert found.mean_square == pytest.approx(expected.mean_square, rel=EDGE)


@pytest.mark.parametrize('pace', PACES)
def test_slow_paths_need_the_manifold_and_fast_ones_do_not(pace):
    problem, truth = arm_problem(pace), arm()
    plain, found = solve_least_squares(problem), solve_manifold(problem, weight=None)
    assert found.consistent and found.mean_square < 1.01 * plain.mean_square
    assert plain.consistent == (pace in PACES[2:])
    if plain.consistent:
        assert (np.abs(found.x - plain.x) <= AGREE * np.abs(truth).max()).all()
        np.testing.assert_allclose(found.parameters[0], truth, atol=TRUE)
    else:
        assert found.grade is Grade.OPTIMAL
