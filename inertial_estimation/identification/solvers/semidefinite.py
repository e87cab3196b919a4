# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares over consistent parameters within bounds: a semidefinite program [S 72-75; W].

    minimise  1/2 (|factor x - target|^2 + energy) / count + weight * D(x, prior)

The parameters of a link belong to a body of some mass distribution if and only if its 4x4
pseudo-inertia is positive semidefinite [S 16-28; W].
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.cone_newton import minimise_within
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import EUCLIDEAN, NONE, PULLBACK
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


solve_semidefinite = Method('semidefinite', _semidefinite, PULLBACK, 1e-8, priors=PRIORS)
