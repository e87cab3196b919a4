# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares and quadratic priors: what rows say, how surely, and what they leave open.

Not covered: what all methods have in common, which is in test_solver_contract.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.least_squares import Fill, solve_least_squares
from inertial_estimation.identification.solvers.quadratic import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.unknowns import Unknowns

ROUND_OFF = 1e-9
"""Singular values of rows of numbers up to a few hundred."""
ONE_LINK = Unknowns(('link',))
BODY = np.array([[2.0, 0.02, -0.04, 0.1, 0.05, 0.001, 0.04, 0.0, 0.002, 0.03]])


@pytest.fixture
def case(rng):
    """Return rows of a small humanoid, with a prior that is 10 % off."""
    return humanoid_case(rng)


def full_rank(rng, rows=50, noise=0.0):
    """Return a problem of one link whose every parameter is determined."""
    Y = rng.normal(size=(rows, 10))
    y = Y @ BODY[0] + noise * rng.normal(size=rows)
    return Y, y, Problem.of(ONE_LINK, Information.of(Y, y), BODY)


def test_deviations_are_those_of_the_textbook(rng):
    Y, y, problem = full_rank(rng, noise=0.1)
    result = solve_least_squares(problem)
    residual = Y @ result.x - y
    covariance = residual @ residual / (50 - 10) * np.linalg.inv(Y.T @ Y)
    np.testing.assert_allclose(result.deviations, np.sqrt(np.diag(covariance)), rtol=1e-9)


def test_noise_that_is_known_is_used(rng):
    Y, _, problem = full_rank(rng, noise=0.1)
    result = solve_least_squares(problem, noise=0.3)
    expected = 0.3 * np.sqrt(np.diag(np.linalg.inv(Y.T @ Y)))
    np.testing.assert_allclose(result.deviations, expected, rtol=1e-9)
    assert (solve_least_squares(problem, noise=0.0).deviations == 0.0).all()


def test_two_deviations_hold_the_truth_19_times_of_20(rng):
    inside = []
    for _ in range(300):
        _, _, problem = full_rank(rng, noise=0.1)
        result = solve_least_squares(problem)
        inside.append(np.abs(result.x - BODY[0]) < 2.0 * result.deviations)
    # 3000 draws: the share is sure to 0.004; Student's 40 degrees of freedom give 0.948.
    assert np.mean(inside) == pytest.approx(0.948, abs=0.02)


def test_what_is_not_determined_is_infinitely_unsure(case, rng):
    result = solve_least_squares(case.problem(rng.normal(size=len(case.y))))
    null = np.linalg.svd(case.Y)[2][result.rank :]
    open_ones = np.linalg.norm(null, axis=0) > ROUND_OFF
    np.testing.assert_array_equal(np.isinf(result.deviations), open_ones)
    assert 0 < open_ones.sum() < len(open_ones)
    # Mass and offsets: the submodel's root hides in other links, an offset in nothing.
    assert np.isfinite(result.deviations[-2:]).all()


def test_what_is_open_comes_from_the_prior(case, rng):
    problem = case.problem(rng.normal(size=len(case.y)))
    result = solve_least_squares(problem)
    null = np.linalg.svd(case.Y)[2][result.rank :]
    np.testing.assert_allclose(null @ (result.x - problem.prior_point()), 0.0, atol=ROUND_OFF)


def test_minimum_norm_is_that_of_numpy(case, rng):
    noise = rng.normal(size=len(case.y))
    result = solve_least_squares(case.problem(noise), fill=Fill.MINIMUM_NORM)
    expected, *_ = np.linalg.lstsq(case.Y, case.y + noise, rcond=1e-10)
    np.testing.assert_allclose(result.x, expected, atol=ROUND_OFF)


def test_rank_does_not_depend_on_units(case):
    scales = 10.0 ** np.random.default_rng(3).uniform(-6, 6, case.Y.shape[1])
    assert RowSpace.of(case.Y * scales).rank == RowSpace.of(case.Y).rank == 40
    assert numerical_rank((case.Y * scales).T @ (case.Y * scales)) == 40


def test_rank_of_rows_of_condition_1e7(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    U, _ = np.linalg.qr(rng.normal(size=(30, 10)))
    Y = U * np.geomspace(1.0, 1e-7, 10) @ Q
    problem = Problem.of(ONE_LINK, Information.of(Y, Y @ BODY[0]), BODY)
    result = solve_least_squares(problem, fill=Fill.MINIMUM_NORM)
    assert result.rank == 10
    np.testing.assert_allclose(result.x, BODY[0], atol=1e-8)


@pytest.mark.parametrize('solve', [solve_euclidean, solve_pullback])
def test_quadratic_priors_are_at_the_least_of_their_objective(solve, case, rng):
    problem = case.problem(rng.normal(size=len(case.y)))
    result = solve(problem, weight=0.1)
    value = objective(solve, problem, result.x)
    for _ in range(20):
        moved = result.x + 1e-3 * rng.normal(size=len(result.x)) * np.abs(result.x)
        assert objective(solve, problem, moved) > value


def objective(solve, problem, x):
    """Return what a quadratic prior minimises, by its definition."""
    from inertial_estimation.identification.solvers.divergence import pullback_distance

    parameters = problem.unknowns.split(x)[0]
    if solve is solve_pullback:
        distance = pullback_distance(parameters, problem.prior).sum()
    else:
        distance = 0.5 * np.sum((parameters - problem.prior) ** 2)
    return 0.5 * problem.mean_square(x) + 0.1 * distance


@pytest.mark.parametrize('solve', [solve_euclidean, solve_pullback])
def test_other_unknowns_have_a_prior_if_they_have_scales(solve, case, rng):
    problem = case.problem(rng.normal(size=len(case.y)))
    tight = replace(problem, prior_extras=np.array([1.0, 2.0]), extra_scales=np.full(2, 1e-6))
    free = replace(problem, prior_extras=np.array([1.0, 2.0]))
    np.testing.assert_allclose(solve(tight, weight=1.0).x[-2:], [1.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(solve(free).x, solve(problem).x, atol=1e-7)
