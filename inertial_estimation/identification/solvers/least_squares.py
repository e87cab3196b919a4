# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Linear methods: one least squares problem, without iterations, consistency and bounds.

    least_squares   equations only [S 64-83]
    euclidean       and weight/2 |x - prior|^2 of the parameters in SI units
    pullback        and weight/2 of the squared distance in the Riemannian metric at the prior

The Euclidean distance depends on units and link frames, the pullback does not [Lee, Wensing, Park
2020]. `semidefinite` minimises the same distances over consistent parameters.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Grade, Problem
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    EUCLIDEAN,
    NONE,
    PULLBACK,
    Distance,
)
from inertial_estimation.identification.solvers.method import Answer, Method

OPTIMAL = 1e-10
"""Greatest relative gradient of an optimal answer."""


def _least_squares(problem: Problem, weight: float) -> Answer:
    """Minimise the residual; of all answers return the nearest to the prior, in SI units."""
    space = RowSpace.of(problem.factor)
    x = space.solve(problem.target)
    null = space.invisible()
    x += null @ (null.T @ (problem.prior_point() - x))
    lengths = np.linalg.norm(problem.factor, axis=0)
    gradient = problem.factor.T @ (problem.factor @ x - problem.target)
    seen = lengths > 0.0
    size = float(np.linalg.norm(problem.target)) or 1.0
    optimality = float(np.linalg.norm(gradient[seen] / lengths[seen])) / size
    return Answer(x, optimality, _grade(optimality), rank=space.rank)


def _quadratic(distance: Distance, problem: Problem, weight: float) -> Answer:
    """Minimise residual and distance to the prior, Euclidean or pullback."""
    from scipy.linalg import solve_triangular

    eye = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    at = Coordinates.of(problem, eye if distance is EUCLIDEAN else None)
    pull = np.diag(np.sqrt(weight * at.drawn))
    equations = Information.of(at.factor, at.target).add(pull, np.zeros(len(pull)))
    u = solve_triangular(equations.R, equations.rho)
    gradient = at.factor.T @ (at.factor @ u - at.target) + pull @ pull @ u
    size = np.linalg.norm(at.factor) * np.linalg.norm(at.target)
    optimality = float(np.linalg.norm(gradient) / size) if size > 0.0 else 0.0
    return Answer(
        at.unknowns(u), optimality, _grade(optimality), coordinates=at, prior_rows=lambda: pull,
        rank=numerical_rank(at.gram),
    )  # fmt: skip


def _grade(optimality: float) -> Grade:
    return Grade.OPTIMAL if optimality <= OPTIMAL else Grade.INACCURATE


solve_least_squares = Method('least_squares', _least_squares, NONE, weighted=False, bounded=False)
solve_euclidean = Method('euclidean', partial(_quadratic, EUCLIDEAN), EUCLIDEAN, bounded=False)
solve_pullback = Method('pullback', partial(_quadratic, PULLBACK), PULLBACK, bounded=False)
