# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares with a quadratic distance to the prior: one linear problem, no iterations.

    euclidean   1/2 |x - prior|^2 of the parameters as they are, in SI units
    pullback    1/2 of the squared distance in the Riemannian metric at the prior

The Euclidean distance depends on units and on link frames; the pullback does not [Lee, Wensing,
Park 2020]. Neither knows the cone of consistent parameters, nor bounds: `semidefinite` minimises
the same distances within both.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.arguments import require_noise
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.coordinates import Coordinates, require_weight
from inertial_estimation.identification.solvers.deviations import Curvature, deviations

Array = NDArray[np.float64]

OPTIMAL = 1e-10
"""Greatest gradient of an optimal answer, over equations times right-hand sides."""


@one_thread()
def solve_quadratic(
    problem: Problem, distance: str, *, weight: float = 1e-2, noise: float | None = None
) -> Identification:
    """Return the best fit near the prior by one of two distances: 'euclidean' or 'pullback'."""
    from scipy.linalg import solve_triangular

    start = perf_counter()
    require_weight(weight)
    require_noise(noise)
    eye = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    coordinates = Coordinates.of(problem, eye if distance == 'euclidean' else None)
    drawn = coordinates.drawn
    prior = np.diag(np.sqrt(weight * drawn))
    equations = Information.of(coordinates.factor, coordinates.target)
    equations = equations.add(prior, np.zeros(len(drawn)))
    u = solve_triangular(equations.R, equations.rho)
    residual = coordinates.factor @ u - coordinates.target
    gradient = coordinates.factor.T @ residual + weight * drawn * u
    size = np.linalg.norm(coordinates.factor) * np.linalg.norm(coordinates.target)
    optimality = float(np.linalg.norm(gradient) / size) if size > 0.0 else 0.0
    x = coordinates.unknowns(u)
    mean_square = problem.mean_square(x)
    curvature = Curvature(equations.R, eye, drawn[coordinates.n_inertial :], weight)
    return Identification(
        method=distance,
        unknowns=problem.unknowns,
        x=x,
        deviations=deviations(coordinates, curvature, mean_square, problem.count, noise),
        rank=numerical_rank(coordinates.factor.T @ coordinates.factor),
        mean_square=mean_square,
        optimality=optimality,
        grade=Grade.OPTIMAL if optimality <= OPTIMAL else Grade.INACCURATE,
        iterations=1,
        solve_time=perf_counter() - start,
    )


solve_euclidean = partial(solve_quadratic, distance='euclidean')
solve_pullback = partial(solve_quadratic, distance='pullback')
