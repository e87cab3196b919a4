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
from time import perf_counter

import numpy as np

from inertial_estimation.identification.arguments import require_noise
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.coordinates import (
    Coordinates,
    Curvature,
    deviations,
    deviations_of_equations,
    require_weight,
)
from inertial_estimation.identification.solvers.divergence import Distance

OPTIMAL = 1e-10
"""Greatest relative gradient of an optimal answer."""


@one_thread()
def solve_least_squares(problem: Problem, *, noise: float | None = None) -> Identification:
    """Minimise the residual; of all answers return the nearest to the prior, in SI units."""
    start = perf_counter()
    require_noise(noise)
    problem.require_consistent_prior()
    space = RowSpace.of(problem.factor)
    x = space.solve(problem.target)
    null = space.invisible()
    x += null @ (null.T @ (problem.prior_point() - x))
    lengths = np.linalg.norm(problem.factor, axis=0)
    gradient = problem.factor.T @ (problem.factor @ x - problem.target)
    seen = lengths > 0.0
    size = float(np.linalg.norm(problem.target)) or 1.0
    optimality = float(np.linalg.norm(gradient[seen] / lengths[seen])) / size
    return Identification(
        method='least_squares',
        unknowns=problem.unknowns,
        x=x,
        deviations=deviations_of_equations(problem, x, noise),
        rank=space.rank,
        mean_square=problem.mean_square(x),
        optimality=optimality,
        grade=Grade.OPTIMAL if optimality <= OPTIMAL else Grade.INACCURATE,
        iterations=1,
        solve_time=perf_counter() - start,
    )


@one_thread()
def solve_quadratic(
    problem: Problem, distance: Distance, *, weight: float = 1e-2, noise: float | None = None
) -> Identification:
    """Minimise residual and distance to the prior, Euclidean or pullback."""
    from scipy.linalg import solve_triangular

    start = perf_counter()
    require_weight(weight)
    require_noise(noise)
    eye = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    coordinates = Coordinates.of(problem, eye if distance is Distance.EUCLIDEAN else None)
    drawn = coordinates.drawn
    equations = Information.of(coordinates.factor, coordinates.target)
    equations = equations.add(np.diag(np.sqrt(weight * drawn)), np.zeros(len(drawn)))
    u = solve_triangular(equations.R, equations.rho)
    residual = coordinates.factor @ u - coordinates.target
    gradient = coordinates.factor.T @ residual + weight * drawn * u
    size = np.linalg.norm(coordinates.factor) * np.linalg.norm(coordinates.target)
    optimality = float(np.linalg.norm(gradient) / size) if size > 0.0 else 0.0
    x = coordinates.unknowns(u)
    curvature = Curvature(
        equations.R, np.zeros((len(eye), 4, 4)), drawn[coordinates.n_inertial :], weight
    )
    return Identification(
        method=distance.value,
        unknowns=problem.unknowns,
        x=x,
        deviations=deviations(problem, x, coordinates, curvature, noise),
        rank=numerical_rank(coordinates.factor.T @ coordinates.factor),
        mean_square=problem.mean_square(x),
        optimality=optimality,
        grade=Grade.OPTIMAL if optimality <= OPTIMAL else Grade.INACCURATE,
        iterations=1,
        solve_time=perf_counter() - start,
    )


solve_euclidean = partial(solve_quadratic, distance=Distance.EUCLIDEAN)
solve_pullback = partial(solve_quadratic, distance=Distance.PULLBACK)
