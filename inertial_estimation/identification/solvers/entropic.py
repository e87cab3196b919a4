# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations with the entropic prior: the default of refits while the robot works.

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

The divergence is regulariser and barrier in one [Lee, Wensing, Park 2020]: the problem is smooth
and strictly convex, and `cone_newton` solves it in a few steps, strictly consistent at each.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import require_array, require_number
from inertial_estimation.identification.problem import Grade, Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import ConeNewton, Minimum
from inertial_estimation.identification.solvers.conic import minimise
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import Distance
from inertial_estimation.identification.solvers.linear_bounds import (
    LinearBounds,
    missed,
    require_compatible,
)
from inertial_estimation.identification.solvers.method import Answer, Method
from inertial_estimation.identification.solvers.semidefinite import (
    Consistency,
    constraints,
    drawn_inside,
)
from inertial_estimation.model.inertia import consistency_margin

MARGINS = (1e-2, 1e-6, 0.0)
"""Shares of the prior that links keep within the bounds, one after the other until some can."""
ROUGH = 1e-5
"""Violation of a bound by a start, over the largest variable."""
MIN_SLACK_WITHIN = 1e-2
"""Least slack of a bound at a start within the bounds."""
MIN_START = 1e-2
"""Least eigenvalue of a start, over the prior: from nearer the edge there are more steps."""


def _entropic(
    problem: Problem, weight: float, *, start: Array | None = None, max_iterations: int = 60
) -> Answer:
    """Minimise the objective within all bounds; start (n,)."""
    require_number('max_iterations', max_iterations, least=0)
    at = Coordinates.of(problem)
    first = np.zeros(len(at.drawn))
    if start is not None:
        _require_consistent(problem, start)
        first = at.coordinates(start)
        least = 1.0 + float(np.linalg.eigvalsh(at.shapes(first)).min())
        if least < MIN_START:
            first *= (1.0 - MIN_START) / (1.0 - least)
    bounds = LinearBounds.of(problem)
    method = ConeNewton(at, weight, np.zeros((0, len(at.drawn))), np.zeros(0))
    found = method.minimise(first, max_iterations)
    if (bounds.slack(at.unknowns(found.u)) < 0.0).any():
        within = _within(problem, at, bounds, weight, max_iterations)
        found = replace(within, iterations=found.iterations + within.iterations)
    violated = ', '.join(bounds.names[k] for k in found.missed)
    notes = (f'iterations ended before these bounds were kept: {violated}',) if violated else ()
    return Answer(
        at.unknowns(found.u), found.gap, found.grade, found.iterations, notes,
        numerical_rank(method.gram), at, lambda: at.prior_rows(weight, at.shapes(found.u)),
    )  # fmt: skip


solve_entropic = Method('entropic', _entropic, Distance.ENTROPIC, 1e-9)


def _within(
    problem: Problem, at: Coordinates, bounds: LinearBounds, weight: float, budget: int
) -> Minimum:
    """Return the minimum within the bounds, or the best that was found."""
    A = at.rows(bounds.rows)
    lengths = np.linalg.norm(A, axis=1)
    lengths[lengths == 0.0] = 1.0
    method = ConeNewton(at, weight, A / lengths[:, None], -bounds.slack(at.origin) / lengths)
    tried = [method.minimise(np.zeros(len(at.drawn)), budget)]
    if tried[0].grade is not Grade.OPTIMAL:
        u = _within_bounds(problem, at)
        if u is not None and method.is_start(u):
            tried += [method.minimise(u, most, MIN_SLACK_WITHIN) for most in (0, budget)]
    best = min(tried, key=lambda one: (len(one.missed) > 0, one.gap))
    return replace(best, iterations=sum(one.iterations for one in tried))


def _within_bounds(problem: Problem, at: Coordinates) -> Array | None:
    """Return coordinates that keep all bounds, inside the cone and near the prior, (n_u,)."""
    from scipy.sparse import csc_array, identity

    if find_spec('clarabel') is None:
        return None
    n = len(at.drawn)
    for margin in MARGINS:
        bodies, bounds = constraints(problem, at, Consistency.FULL, margin)
        # Without the equations: their numbers may be so large that none of these are left exact.
        found = minimise(csc_array(identity(n)), np.zeros(n), [bodies, bounds])
        u = drawn_inside(bodies, np.nan_to_num(found.x))
        if not missed(bounds, u, ROUGH):
            return u
    require_compatible([bodies], bounds)
    return None


def _require_consistent(problem: Problem, start: Array) -> None:
    """Raise unless the links of a start are strictly inside the cone."""
    require_array('start', start, (len(problem.unknowns),))
    if not np.isfinite(start).all():
        raise ModelError("'start' holds NaN or infinity")
    margins = consistency_margin(problem.unknowns.split(start)[0])
    bad = [link for link, m in zip(problem.unknowns.links, margins, strict=True) if not m > 0.0]
    if bad:
        raise ModelError(f"'start' is not strictly fully physically consistent: {', '.join(bad)}")
