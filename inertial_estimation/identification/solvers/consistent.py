# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Convex least squares over consistent parameters within bounds, solved by `cone_newton`.

    minimise  1/2 mean((factor x - target)^2)  +  weight * distance to the prior

    entropic      log-det divergence: regulariser and barrier in one, smooth and strictly convex
                  [Lee, Wensing, Park 2020]; the default
    semidefinite  pullback or Euclidean metric, or no prior [S 72-75; W]

The parameters of a link belong to a body of some mass distribution if and only if its 4x4
pseudo-inertia is positive semidefinite [S 16-28; W].
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import minimise_within
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    ENTROPIC,
    EUCLIDEAN,
    NONE,
    PULLBACK,
)
from inertial_estimation.identification.solvers.method import Answer, Method

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


def _entropic(problem: Problem, weight: float) -> Answer:
    """Minimise the objective within all bounds, strictly consistent at each iteration."""
    at = Coordinates.of(problem)
    extras = at.n_inertial + np.flatnonzero(at.drawn[at.n_inertial :])
    rows = at.with_rows(np.sqrt(weight) * np.eye(len(at.drawn))[extras])
    found = minimise_within(problem, rows, weight, small=weight)
    return Answer(
        at.unknowns(found.u), found.gap, found.grade, found.iterations, (),
        numerical_rank(at.gram), at,
        lambda: at.prior_rows(weight, at.shapes(found.u)),
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


solve_entropic = Method('entropic', _entropic, ENTROPIC)
solve_semidefinite = Method('semidefinite', _semidefinite, PULLBACK, priors=PRIORS)
