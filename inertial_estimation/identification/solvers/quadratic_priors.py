# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows with a prior whose distance is quadratic: one linear least squares, no iterations.

    euclidean   1/2 |x - prior|^2 of the parameters as they are, in SI units
    pullback    1/2 of the squared distance in the Riemannian metric at the prior

The Euclidean distance depends on units and on where link frames are; the pullback does not [Lee,
Wensing, Park 2020]. Both know nothing of what a body can be: the answer may be inconsistent, and
the result says so. The same distances under the constraint that it is consistent are problems of
semidefinite programming. Bounds are not used.
"""

from __future__ import annotations

from dataclasses import replace
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
from inertial_estimation.identification.solvers.curvature import Curvature, deviations
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import Unknowns

Array = NDArray[np.float64]

OPTIMAL = 1e-10
"""Gradient, over rows times right-hand sides, of an answer that is optimal but for round-off."""


@one_thread()
def solve_pullback(
    problem: Problem, *, weight: float = 1e-2, noise: float | None = None
) -> Identification:
    """Return the best fit that stays near the prior in the Riemannian metric there."""
    return _solve('pullback', problem, weight, noise, None)


@one_thread()
def solve_euclidean(
    problem: Problem, *, weight: float = 1e-2, noise: float | None = None
) -> Identification:
    """Return the best fit that stays near the prior in SI units."""
    plain = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    return _solve('euclidean', problem, weight, noise, plain)


def prior_rows(unknowns: Unknowns, prior: Array, weight: float) -> Information:
    """
    Return rows whose half square is the pullback distance times a weight.

    prior (n_links, 10).
    """
    require_weight(weight)
    rows = np.zeros((unknowns.n_inertial, len(unknowns)))
    for k, inverse in enumerate(np.linalg.inv(whitening(prior))):
        own = slice(10 * k, 10 * k + 10)
        rows[own, own] = np.sqrt(weight) * inverse
    return replace(Information.of(rows, rows @ unknowns.join(prior)), count=0.0)


def _solve(
    method: str, problem: Problem, weight: float, noise: float | None, links: Array | None
) -> Identification:
    """Return the answer for given coordinates of the links."""
    from scipy.linalg import solve_triangular

    start = perf_counter()
    require_weight(weight)
    require_noise(noise)
    coordinates = Coordinates.of(problem, links)
    n = len(coordinates.drawn)
    prior = np.diag(np.sqrt(weight * coordinates.drawn))
    rows = Information.of(coordinates.factor, coordinates.target).add(prior, np.zeros(n))
    blocks = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    curvature = Curvature(rows.R, blocks, coordinates.drawn[coordinates.n_inertial :], weight)
    u = solve_triangular(rows.R, rows.rho)
    x = coordinates.unknowns(u)
    mean_square = problem.mean_square(x)
    optimality = _relative_gradient(coordinates, u, weight)
    return Identification(
        method=method,
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


def _relative_gradient(coordinates: Coordinates, u: Array, weight: float) -> float:
    """Return the gradient over what it would be if nothing in it cancelled."""
    residual = coordinates.factor @ u - coordinates.target
    gradient = coordinates.factor.T @ residual + weight * coordinates.drawn * u
    size = np.linalg.norm(coordinates.factor) * np.linalg.norm(coordinates.target)
    return float(np.linalg.norm(gradient) / size) if size > 0.0 else 0.0
