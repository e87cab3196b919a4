# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares and quadratic priors: estimates, their deviations, and what is left open.

Not covered: what all methods have in common, which is in test_solver_contract.py.
"""

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.least_squares import (
    solve_least_squares,
)
from inertial_estimation.identification.unknowns import Unknowns

ROUND_OFF = 1e-9  # singular values of equations of numbers up to a few hundred
ONE_LINK = Unknowns(('link',))
BODY = np.array([[2.0, 0.02, -0.04, 0.1, 0.05, 0.001, 0.04, 0.0, 0.002, 0.03]])


@pytest.fixture
def case(rng):
    return humanoid_case(rng)


@pytest.fixture
def noisy(case, rng):
    return case.problem(rng.normal(size=len(case.y)))


def one_link(rng):
    """Return 50 equations of one link with noise of 0.1, and their problem."""
    Y = rng.normal(size=(50, 10))
    y = Y @ BODY[0] + 0.1 * rng.normal(size=50)
    return Y, y, Problem.of(ONE_LINK, Information.of(Y, y), BODY)


def test_deviations_are_those_of_the_textbook(rng):
    Y, y, problem = one_link(rng)
    result = solve_least_squares(problem)
    residual = Y @ result.x - y
    roots = np.sqrt(np.diag(np.linalg.inv(Y.T @ Y)))
    variance = residual @ residual / (50 - 10)
    np.testing.assert_allclose(result.deviations, np.sqrt(variance) * roots, rtol=1e-9)
    known = solve_least_squares(problem, noise=0.3)
    np.testing.assert_allclose(known.deviations, 0.3 * roots, rtol=1e-9)


def test_undetermined_unknowns_are_of_the_prior_and_unsure(case, noisy):
    result = solve_least_squares(noisy)
    null = np.linalg.svd(case.Y)[2][result.rank :]
    undetermined = np.linalg.norm(null, axis=0) > ROUND_OFF
    np.testing.assert_array_equal(np.isinf(result.deviations), undetermined)
    assert 0 < undetermined.sum() < len(undetermined)
    np.testing.assert_allclose(null @ (result.x - noisy.prior_point()), 0.0, atol=ROUND_OFF)


def test_rank_does_not_depend_on_units_and_condition(case, rng):
    scales = 10.0 ** np.random.default_rng(3).uniform(-6, 6, case.Y.shape[1])
    assert RowSpace.of(case.Y * scales).rank == RowSpace.of(case.Y).rank == 40
    assert numerical_rank((case.Y * scales).T @ (case.Y * scales)) == 40
    Q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    U, _ = np.linalg.qr(rng.normal(size=(30, 10)))
    Y = U * np.geomspace(1.0, 1e-7, 10) @ Q
    result = solve_least_squares(Problem.of(ONE_LINK, Information.of(Y, Y @ BODY[0]), BODY))
    assert result.rank == 10
    np.testing.assert_allclose(result.x, BODY[0], atol=1e-8)
