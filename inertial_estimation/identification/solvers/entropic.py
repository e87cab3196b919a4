# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations with the entropic prior: the default of refits while the robot works.

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

The divergence is regulariser and barrier in one [Lee, Wensing, Park 2020]: every iterate is
strictly consistent, and the problem is smooth and strictly convex. `cone_newton` solves it in a
few steps.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import (
    require_array,
    require_noise,
    require_number,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import ConeNewton, Minimum
from inertial_estimation.identification.solvers.conic import minimise
from inertial_estimation.identification.solvers.consistency_lmi import Consistency, drawn_inside
from inertial_estimation.identification.solvers.coordinates import (
    Coordinates,
    deviations,
    require_weight,
)
from inertial_estimation.identification.solvers.divergence import Distance, symmetric
from inertial_estimation.identification.solvers.linear_bounds import (
    LinearBounds,
    missed,
    require_compatible,
)
from inertial_estimation.identification.solvers.semidefinite import BodyProgram
from inertial_estimation.model.inertia import consistency_margin

MARGINS = (1e-2, 1e-6, 0.0)
"""Shares of the prior that links keep within the bounds, one after the other until some can."""
ROUGH = 1e-5
"""Violation of a bound by a start, over the largest variable."""
MIN_SLACK_WITHIN = 1e-2
"""Least slack of a bound at a start within the bounds."""
MIN_START = 1e-2
"""Least eigenvalue of a start, over the prior: from nearer the edge there are more steps."""


@one_thread()
def solve_entropic(
    problem: Problem,
    *,
    weight: float = 1e-2,
    start: Array | None = None,
    noise: float | None = None,
    with_deviations: bool = True,
    max_iterations: int = 60,
) -> Identification:
    """Minimise the objective within all bounds; start (n,)."""
    began = perf_counter()
    require_weight(weight)
    require_noise(noise)
    require_number('max_iterations', max_iterations, least=0)
    coordinates = Coordinates.of(problem)
    first = np.zeros(len(coordinates.drawn))
    if start is not None:
        _require_consistent(problem, start)
        first = coordinates.coordinates(start)
        shapes = symmetric(first[: problem.unknowns.n_inertial].reshape(-1, 10))
        least = 1.0 + float(np.linalg.eigvalsh(shapes).min())
        if least < MIN_START:
            first *= (1.0 - MIN_START) / (1.0 - least)
    bounds = LinearBounds.of(problem)
    none = np.zeros((0, len(coordinates.drawn)))
    method = ConeNewton(coordinates, weight, none, np.zeros(0))
    answer = method.minimise(first, max_iterations)
    if (bounds.slack(coordinates.unknowns(answer.u)) < 0.0).any():
        within = _within(problem, coordinates, bounds, weight, max_iterations)
        answer = replace(within, iterations=answer.iterations + within.iterations)
    x = coordinates.unknowns(answer.u)
    stated = np.full(len(x), np.nan)
    if with_deviations:
        stated = deviations(problem, x, coordinates, answer.curvature, noise)
    violated = ', '.join(bounds.names[k] for k in answer.missed)
    return Identification(
        method='entropic',
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=numerical_rank(method.gram),
        mean_square=problem.mean_square(x),
        optimality=answer.gap,
        grade=answer.grade,
        iterations=answer.iterations,
        solve_time=perf_counter() - began,
        notes=(f'iterations ended before these bounds were kept: {violated}',) if violated else (),
    )


def _within(
    problem: Problem, coordinates: Coordinates, bounds: LinearBounds, weight: float, budget: int
) -> Minimum:
    """Return the minimum within the bounds, or the best that was found."""
    A = coordinates.gradients(bounds.rows)
    lengths = np.linalg.norm(A, axis=1)
    lengths[lengths == 0.0] = 1.0
    limits = -bounds.slack(coordinates.origin) / lengths
    method = ConeNewton(coordinates, weight, A / lengths[:, None], limits)
    tried = [method.minimise(np.zeros(len(coordinates.drawn)), budget)]
    if tried[0].grade is not Grade.OPTIMAL and (x := within_bounds(problem)) is not None:
        u = coordinates.coordinates(x)
        if method.is_start(u):
            tried += [method.minimise(u, most, MIN_SLACK_WITHIN) for most in (0, budget)]
    best = min(tried, key=lambda one: (len(one.missed) > 0, one.gap))
    return replace(best, iterations=sum(one.iterations for one in tried))


def within_bounds(problem: Problem) -> Array | None:
    """Return unknowns that keep all bounds, inside the cone and near the prior; returns (n,)."""
    from scipy.sparse import csc_array, identity

    if find_spec('clarabel') is None:
        return None
    program = BodyProgram.of(problem, 1.0, Distance.PULLBACK)
    near, no_slope = csc_array(identity(program.n)), np.zeros(program.n)
    for margin in MARGINS:
        bodies, bounds = program.blocks(problem, Consistency.FULL, margin)
        # Without the equations: their numbers may be so large that none of these are left exact.
        found = minimise(near, no_slope, [bodies, bounds])
        z = drawn_inside(bodies, np.nan_to_num(found.x))
        if not missed(bounds, z, ROUGH):
            return np.asarray(problem.prior_point() + program.to_x @ z)
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
