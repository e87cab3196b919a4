# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Ordinary least squares [S 64-83]. The answer may be physically inconsistent.
"""

from __future__ import annotations

from enum import Enum
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.arguments import choice, require_noise
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import RANK_TOLERANCE, RowSpace
from inertial_estimation.identification.solvers.deviations import by_rows

Array = NDArray[np.float64]

METHOD = 'least_squares'
OPTIMAL = 1e-10
"""Gradient, over rows times right-hand sides, of an answer that is optimal but for round-off."""


class Fill(str, Enum):
    """Which of all answers that fit alike is taken."""

    PRIOR = 'prior'
    """The one nearest to the prior, in SI units."""
    MINIMUM_NORM = 'minimum_norm'
    """The shortest one, in SI units."""


@one_thread()
def solve_least_squares(
    problem: Problem,
    *,
    fill: Fill = Fill.PRIOR,
    noise: float | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
) -> Identification:
    """Return the parameters that fit the rows best."""
    start = perf_counter()
    require_noise(noise)
    fill = choice(Fill, 'fill', fill)
    if fill is Fill.PRIOR:
        problem.require_consistent_prior()
    middle = problem.prior_point() if fill is Fill.PRIOR else np.zeros(len(problem.unknowns))
    space = RowSpace.of(problem.factor, rank_tolerance)
    x = space.solve(problem.target)
    open_part = space.invisible()
    x += open_part @ (open_part.T @ (middle - x))
    optimality = relative_gradient(problem, x)
    return Identification(
        method=METHOD,
        unknowns=problem.unknowns,
        x=x,
        deviations=by_rows(problem, x, space, noise),
        rank=space.rank,
        mean_square=problem.mean_square(x),
        optimality=optimality,
        grade=Grade.OPTIMAL if optimality <= OPTIMAL else Grade.INACCURATE,
        iterations=1,
        solve_time=perf_counter() - start,
    )


def relative_gradient(problem: Problem, x: Array) -> float:
    """Return how far the residual is from being orthogonal to the rows; x (n,)."""
    lengths = np.linalg.norm(problem.factor, axis=0)
    gradient = problem.factor.T @ (problem.factor @ x - problem.target)
    moved = lengths > 0.0
    size = float(np.linalg.norm(problem.target)) or 1.0
    return float(np.linalg.norm(gradient[moved] / lengths[moved])) / size
