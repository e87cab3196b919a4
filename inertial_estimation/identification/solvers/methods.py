# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods of identification by name.

    least_squares   equations only [S 64-83]
    euclidean       and weight/2 |x - prior|^2 of the parameters in SI units
    pullback        and weight/2 of the squared distance in the Riemannian metric at the prior
    semidefinite    the same distances, or none, over consistent parameters [S 72-75; W]
    entropic        and weight times the log-det divergence to the prior; the default

Least squares with and without a distance are one problem, without consistency and bounds. The
others are convex, within consistency and bounds (`lmi`): the parameters of a link belong to a body
of some mass distribution if and only if its 4x4 pseudo-inertia is positive semidefinite
[S 16-28; W]. The Euclidean distance depends on units and link frames, the others do not. The
divergence is regulariser and barrier in one, smooth and strictly convex [Lee, Wensing, Park 2020].

`manifold` and `mass_points` have their own files. A new method is an entry here: a `Method` with
the distance that it minimises beside the equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.answer import Answer, Method
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    ENTROPIC,
    EUCLIDEAN,
    NONE,
    PULLBACK,
    Distance,
)
from inertial_estimation.identification.solvers.lmi import minimise_within
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import solve_mass_points

MAX_GRADIENT = 1e-10
"""Relative gradient of an optimal answer of a least squares problem."""
PRIORS = {distance.name: distance for distance in (PULLBACK, EUCLIDEAN, NONE)}
NO_PRIOR = 1e-18
"""Weight over the objective at the prior that only keeps undetermined parameters bounded."""
FLOOR = 1e-9
"""Objective, over that at the prior, which is round-off of equations that fit exactly."""
MARGIN = 1e-6
"""Share of the prior's pseudo-inertia that every link keeps."""
EDGE = 1e-4
"""Eigenvalue over the prior of a link at the edge of the cone."""
GAP = 1e-5
"""Gap to the least objective, relative, of an optimal answer."""


def _least_squares(problem: Problem, weight: float) -> Answer:
    """Minimise the residual; of all answers return the nearest to the prior, in SI units."""
    space = RowSpace.of(problem.factor)
    x = space.solve(problem.target)
    null = space.invisible()
    x += null @ (null.T @ (problem.prior_point() - x))
    # A column of round-off has a direction of its own, which no unknown can follow.
    gradient = problem.factor.T @ (problem.factor @ x - problem.target) / space.scales
    optimality = float(np.linalg.norm(gradient)) / (float(np.linalg.norm(problem.target)) or 1.0)
    return Answer(x, optimality, _grade(optimality), rank=space.rank)


def _quadratic(distance: Distance, problem: Problem, weight: float) -> Answer:
    """Minimise residual and distance to the prior, Euclidean or pullback."""
    eye = np.broadcast_to(np.eye(10), (len(problem.unknowns.links), 10, 10))
    at = Coordinates.of(problem, eye if distance is EUCLIDEAN else None)
    pull = np.diag(np.sqrt(weight * at.drawn))
    equations = Information.of(at.factor, at.target).add(pull, np.zeros(len(pull)))
    u = solve_triangular(equations.R, equations.rho)
    gradient = at.factor.T @ (at.factor @ u - at.target) + pull @ pull @ u
    size = np.linalg.norm(at.factor) * np.linalg.norm(at.target)
    optimality = float(np.linalg.norm(gradient) / size) if size > 0.0 else 0.0
    return Answer(
        at.unknowns(u), optimality, _grade(optimality), coordinates=at, prior_rows=lambda: pull
    )  # fmt: skip


def _grade(optimality: float) -> Grade:
    return Grade.OPTIMAL if optimality <= MAX_GRADIENT else Grade.INACCURATE


def _entropic(problem: Problem, weight: float) -> Answer:
    """Minimise the objective within all bounds, strictly consistent at each iteration."""
    at = Coordinates.of(problem)
    extras = at.n_inertial + np.flatnonzero(at.drawn[at.n_inertial :])
    rows = at.with_rows(np.sqrt(weight) * np.eye(len(at.drawn))[extras])
    found = minimise_within(problem, rows, weight, small=weight)
    return Answer(
        at.unknowns(found.u), found.gap, found.grade, found.iterations, coordinates=at,
        prior_rows=lambda: at.prior_rows(weight, at.shapes(found.u)),
    )  # fmt: skip


def _semidefinite(problem: Problem, weight: float, *, prior: str = PULLBACK.name) -> Answer:
    """
    Minimise the objective within all bounds.

    Without a prior, parameters that the equations do not determine are arbitrary.
    """
    if (distance := PRIORS.get(str(prior))) is None:
        raise NameNotFound('prior', prior, PRIORS)
    at, n = Coordinates.of(problem), problem.unknowns.n_inertial
    start = 0.5 * (float(at.target @ at.target) + at.rest)
    pull = np.sqrt(NO_PRIOR * start if distance is NONE else weight) * np.diag(at.drawn)
    if distance is EUCLIDEAN:
        pull = pull @ block_diag(*at.links, np.eye(len(pull) - n))
    found = minimise_within(
        problem, at.with_rows(pull), 0.0,
        small=FLOOR * start, margin=MARGIN, optimal=GAP,
    )  # fmt: skip
    shares = 1.0 + np.linalg.eigvalsh(at.shapes(found.u))[:, 0]
    at_edge = ', '.join(np.array(problem.unknowns.links)[shares < EDGE])
    notes = (f'at the edge of consistency: {at_edge}',) if at_edge else ()
    answer = Answer(at.unknowns(found.u), found.gap, found.grade, found.iterations, notes)
    if distance is NONE:
        return answer
    return answer._replace(coordinates=at, prior_rows=lambda: pull)


solve_least_squares = Method('least_squares', _least_squares, NONE, weighted=False, bounded=False)
solve_euclidean = Method('euclidean', partial(_quadratic, EUCLIDEAN), EUCLIDEAN, bounded=False)
solve_pullback = Method('pullback', partial(_quadratic, PULLBACK), PULLBACK, bounded=False)
solve_entropic = Method('entropic', _entropic, ENTROPIC)
solve_semidefinite = Method('semidefinite', _semidefinite, PULLBACK, priors=PRIORS)

SOLVERS: Mapping[str, Method] = {
    method.name: method
    for method in (
        solve_entropic, solve_semidefinite, solve_mass_points, solve_manifold, solve_pullback,
        solve_euclidean, solve_least_squares,
    )
}  # fmt: skip


def solve(problem: Problem, method: str = 'entropic', **options: Any) -> Identification:
    """
    Solve an identification problem.

    Parameters
    ----------
    problem : Problem
        Equations, prior and bounds.
    method : str
        A key of `SOLVERS`.
    **options
        Of the method, e.g. ``weight`` of the prior.

    Returns
    -------
    Identification

    Raises
    ------
    NameNotFound
        If there is no such method.

    """
    if method not in SOLVERS:
        raise NameNotFound('method', method, SOLVERS)
    return SOLVERS[method](problem, **options)
