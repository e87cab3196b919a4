# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows with the entropic prior: the default of refits while the robot works.

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

The divergence is regulariser and barrier in one [Lee, Wensing, Park 2020]: every iterate is a
strictly consistent body, and the problem is smooth and strictly convex. `cone_newton` solves it
in a few steps; where the prior rules they are those of Newton's method.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import (
    require_array,
    require_budget,
    require_noise,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import ConeNewton, Minimum
from inertial_estimation.identification.solvers.conic import Consistency, minimise
from inertial_estimation.identification.solvers.constraints import (
    LinearBounds,
    body_block,
    bound_blocks,
    contradiction,
    drawn_inside,
    missed,
)
from inertial_estimation.identification.solvers.coordinates import Coordinates, require_weight
from inertial_estimation.identification.solvers.deviations import deviations
from inertial_estimation.identification.solvers.divergence import symmetric
from inertial_estimation.identification.solvers.semidefinite import BodyProgram, PriorTerm
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]

MARGINS = (1e-2, 1e-6, 0.0)
"""Shares of the prior that bodies are to exceed, one after the other until some do."""

ROUGH = 1e-5
"""Share of the largest variable by which a start may miss a bound."""


def within_bounds(problem: Problem) -> Array | None:
    """Return unknowns that keep all bounds, inside the cone and near the prior; returns (n,)."""
    from scipy.sparse import csc_array, identity

    if find_spec('clarabel') is None:
        return None
    program = BodyProgram.of(problem, 1.0, PriorTerm.PULLBACK, None)
    (bounds,) = bound_blocks(LinearBounds.of(problem), problem.prior_point(), program.to_x)
    near, no_slope = csc_array(identity(program.n)), np.zeros(program.n)
    for margin in MARGINS:
        bodies = body_block(
            problem.unknowns, problem.prior, program.maps, program.n, Consistency.FULL, margin
        )
        # Rows take no part: their numbers may be so large that none of these are left exact.
        found = minimise(near, no_slope, [bodies, bounds])
        z = drawn_inside(bodies, np.nan_to_num(found.x))
        if not missed(bounds, z, ROUGH):
            return np.asarray(problem.prior_point() + program.to_x @ z)
    bad = contradiction([bodies], bounds, found)
    if not bad:
        return None
    raise ModelError(
        f'no bodies keep all bounds; these are against each other: {", ".join(bad)}; widen them'
    )


WITHIN = 1e-2
"""Least slack to start with from bodies that keep the bounds."""
EDGE = 1e-2
"""
Least eigenvalue of a start in the metric of the prior, whose own are one: from nearer the edge of
the cone there are more steps than from the prior.
"""


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
    """Return the best fit that stays near the prior in the entropic divergence; start (n,)."""
    began = perf_counter()
    require_weight(weight)
    require_noise(noise)
    require_budget(max_iterations)
    coordinates = Coordinates.of(problem)
    first = np.zeros(len(coordinates.drawn))
    if start is not None:
        _require_consistent(problem, start)
        first = _off_the_edge(coordinates.coordinates(start), problem.unknowns.n_inertial)
    descents = _Descents(problem, coordinates, weight, max_iterations)
    answer = descents.run(first)
    x = coordinates.unknowns(answer.u)
    mean_square = problem.mean_square(x)
    stated = np.full(len(x), np.nan)
    if with_deviations:
        stated = deviations(coordinates, answer.curvature, mean_square, problem.count, noise)
    return Identification(
        method='entropic',
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=numerical_rank(descents.method.gram),
        mean_square=mean_square,
        optimality=answer.gap,
        grade=answer.grade,
        iterations=answer.iterations,
        solve_time=perf_counter() - began,
        notes=tuple(descents.missed(answer)),
    )


class _Descents:
    """Attempts at the minimum within the bounds."""

    def __init__(
        self, problem: Problem, coordinates: Coordinates, weight: float, max_iterations: int
    ) -> None:
        self.problem, self.coordinates = problem, coordinates
        self.weight, self.max_iterations = weight, max_iterations
        self.bounds = LinearBounds.of(problem)
        none = np.zeros((0, len(coordinates.drawn)))
        self.method = ConeNewton(coordinates, weight, none, np.zeros(0))

    def run(self, first: Array) -> Minimum:
        """Return the minimum, or the best that was found."""
        answer = self.method.minimise(first, self.max_iterations)
        if (self.bounds.slack(self.coordinates.unknowns(answer.u)) >= 0.0).all():
            return answer
        self.method = self._bounded()
        tried = [self.method.minimise(np.zeros_like(first), self.max_iterations)]
        if tried[0].grade is not Grade.OPTIMAL:
            tried += self._from_inside()
        best = min(tried, key=_worse)
        return replace(best, iterations=answer.iterations + sum(one.iterations for one in tried))

    def missed(self, answer: Minimum) -> list[str]:
        """Return a note of the bounds that the answer violates."""
        names = ', '.join(self.bounds.names[k] for k in answer.missed)
        return [f'iterations ended before these bounds were kept: {names}'] if names else []

    def _bounded(self) -> ConeNewton:
        """Return the method with the bounds, in coordinates and with rows of length one."""
        coordinates = self.coordinates
        A = coordinates.gradients(self.bounds.rows)
        lengths = np.linalg.norm(A, axis=1)
        lengths[lengths == 0.0] = 1.0
        limits = -self.bounds.slack(coordinates.origin) / lengths
        return ConeNewton(coordinates, self.weight, A / lengths[:, None], limits)

    def _from_inside(self) -> list[Minimum]:
        """Return what starts within the bounds lead to: the start itself and the way from it."""
        x = within_bounds(self.problem)
        if x is None:
            return []
        u = self.coordinates.coordinates(x)
        if not self.method.is_start(u):
            return []
        budgets = (0, self.max_iterations)
        return [self.method.minimise(u, most, room=WITHIN) for most in budgets]


def _off_the_edge(u: Array, size: int) -> Array:
    """Return a start drawn toward the prior, away from where steps stay short."""
    least = 1.0 + float(np.linalg.eigvalsh(symmetric(u[:size].reshape(-1, 10))).min())
    return u if least >= EDGE else (1.0 - EDGE) / (1.0 - least) * u


def _worse(answer: Minimum) -> tuple[bool, float]:
    """Return by what answers are compared: bounds first."""
    return len(answer.missed) > 0, answer.gap


def _require_consistent(problem: Problem, start: Array) -> None:
    """Raise unless the links of a start are strictly inside the cone."""
    require_array('start', start, (len(problem.unknowns),))
    if not np.isfinite(start).all():
        raise ModelError("'start' holds NaN or infinity")
    margins = consistency_margin(problem.unknowns.split(start)[0])
    links = problem.unknowns.links
    bad = [link for link, margin in zip(links, margins, strict=True) if not margin > 0.0]
    if bad:
        raise ModelError(
            f'start is not strictly fully physically consistent: {", ".join(bad)}; start from '
            'the answer of a method that keeps bodies consistent, or from the prior'
        )
