# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares over consistent bodies within bounds: a semidefinite program [S 72-75; W].

    minimise  1/2 (|factor x - target|^2 + energy) / count + weight * D(x, prior)

The objective stays quadratic in the rows of the factor; as a matrix inequality of its own, as in
S, it takes five to twenty times as long. The variables of a link are those of `divergence`: its
pseudo-inertia seen from that of the prior, so that the program does not depend on units.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import (
    choice,
    require_array,
    require_budget,
    require_noise,
    require_number,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.body_program import BodyProgram
from inertial_estimation.identification.solvers.body_program import PriorTerm as PriorTerm
from inertial_estimation.identification.solvers.cones import Consistency
from inertial_estimation.identification.solvers.conic import Block
from inertial_estimation.identification.solvers.constraints import (
    body_block,
    bound_blocks,
    contradiction,
    drawn_inside,
    inside,
    missed,
)
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.solvers.linear_deviations import by_prior, by_rows

Array = NDArray[np.float64]

MARGIN = 1e-6
"""A pseudo-inertia is to exceed this share of the prior's."""
HUGE = 3.0
"""A link as heavy as so many robots of the prior is not what anybody means."""
EDGE = 1e-4
"""A link this near to the margin, as a share of the prior, is held by it."""
GAP = 1e-5
"""Optimality residual below which an answer is optimal."""


@one_thread()
def solve_semidefinite(
    problem: Problem,
    *,
    weight: float = 1e-2,
    prior: PriorTerm = PriorTerm.PULLBACK,
    scales: Array | None = None,
    consistency: Consistency = Consistency.FULL,
    margin: float = MARGIN,
    time_limit: float = np.inf,
    noise: float | None = None,
    with_deviations: bool = True,
) -> Identification:
    """
    Return the best fit by bodies that could exist, within all bounds.

    scales (n_links, 10); time_limit [s].
    """
    began = perf_counter()
    prior = choice(PriorTerm, 'prior', prior)
    consistency = choice(Consistency, 'consistency', consistency)
    require_noise(noise)
    require_budget(time_limit=time_limit)
    problem.require_consistent_prior()
    if prior is not PriorTerm.NONE:
        require_weight(weight)
    _require_sense(problem, margin, scales)
    program = BodyProgram.of(problem, 0.0 if prior is PriorTerm.NONE else weight, prior, scales)
    bodies = body_block(
        problem.unknowns, problem.prior, program.maps, program.n, consistency, margin
    )
    bounds = bound_blocks(LinearBounds.of(problem), problem.prior_point(), program.to_x)
    found = _least(program, bodies, bounds, time_limit)
    x = problem.prior_point() + program.to_x @ found.z
    stated = np.full(len(x), np.nan)
    if with_deviations:
        stated = _deviations(problem, x, weight, prior, scales, noise)
    return Identification(
        method='semidefinite',
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=numerical_rank(problem.factor.T @ problem.factor),
        mean_square=problem.mean_square(x),
        optimality=found.gap,
        grade=found.grade,
        iterations=found.iterations,
        solve_time=perf_counter() - began,
        notes=(*_notes(problem, x, consistency, margin), *_not_kept(found, bounds)),
    )


class _Found(NamedTuple):
    """Where the program ended."""

    z: Array
    gap: float
    """How far above the least objective it is at most, over the objective."""
    grade: Grade
    iterations: int


def _least(
    program: BodyProgram, bodies: Block, bounds: Sequence[Block], time_limit: float
) -> _Found:
    """Return the least of the objective within the cones."""
    began = perf_counter()
    free, blocks = program.unconstrained(), [bodies, *bounds]
    if free is not None and all(inside(block, free) for block in blocks):
        left = float(np.sum((program.rows.R @ free - program.rows.rho) ** 2)) / 2
        return _Found(free, program.relative(free, left), Grade.OPTIMAL, 1)
    found = _expanded(program, blocks, np.zeros(program.n), time_limit)
    left = time_limit - (perf_counter() - began)
    if found.grade is Grade.INACCURATE and left > 0.0:
        # The solver is as exact as a share of the objective it starts from, which may be huge.
        again = _expanded(program, blocks, found.z, left)
        iterations = found.iterations + again.iterations
        best = min(again, found, key=lambda one: (one.grade is not Grade.OPTIMAL, one.gap))
        found = best._replace(iterations=iterations)
    return found


def _expanded(
    program: BodyProgram, blocks: Sequence[Block], about: Array, time_limit: float
) -> _Found:
    """Return the least of the objective, expanded about some variables."""
    bodies, *bounds = blocks
    solution = program.solve(blocks, about, time_limit)
    if not solution.feasible and bounds:
        bad = contradiction([bodies], bounds[-1], solution)
        if bad:
            names = ', '.join(bad)
            raise ModelError(f'no bodies meet these bounds together: {names}; widen them')
    # Where the solver fails its numbers may be none; the prior is consistent.
    z = about + solution.x if np.isfinite(solution.x).all() else np.zeros(program.n)
    size = program.size(about)
    above = program.above(z, blocks, [size * y for y in solution.multipliers])
    kept = drawn_inside(bodies, z)
    above = max(0.0, above + program.objective(kept) - program.objective(z))
    gap = program.relative(kept, above)
    grade = Grade.STOPPED if solution.grade is Grade.STOPPED else Grade.INACCURATE
    # The solver may make no more progress and yet be there.
    if gap <= GAP and not any(missed(block, kept) for block in bounds):
        grade = Grade.OPTIMAL
    return _Found(kept, gap, grade, solution.iterations)


def _deviations(
    problem: Problem,
    x: Array,
    weight: float,
    prior: PriorTerm,
    scales: Array | None,
    noise: float | None,
) -> Array:
    """Return standard deviations as if there were no constraints, shape (n,)."""
    if prior is PriorTerm.NONE:
        return by_rows(problem, x, RowSpace.of(problem.factor), noise)
    links = None
    if prior is PriorTerm.EUCLIDEAN:
        sizes = np.ones(problem.prior.shape) if scales is None else scales
        links = sizes[:, :, None] * np.eye(10)
    return by_prior(problem, x, weight, links=links, noise=noise)


def _notes(problem: Problem, x: Array, consistency: Consistency, margin: float) -> tuple[str, ...]:
    """Return which links are bodies only just, which are none, and which are huge."""
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(problem.prior)))
    found = consistency.matrix(problem.unknowns.split(x)[0])
    shares = np.linalg.eigvalsh(whiten @ found @ np.swapaxes(whiten, -1, -2))[:, 0]
    links = np.array(problem.unknowns.links)
    edge = links[shares < EDGE + margin]
    notes = [f'at the edge of what a body can be: {", ".join(edge)}'] if len(edge) else []
    impossible = links[Consistency.FULL.margins(problem.unknowns.split(x)[0]) <= 0]
    if len(impossible):
        notes.append(f'no body could exist that is like: {", ".join(impossible)}')
    masses = problem.unknowns.split(x)[0][:, 0]
    huge = links[masses > HUGE * problem.prior[:, 0].sum()]
    if len(huge):
        names = ', '.join(huge)
        notes.append(f'each as heavy as {HUGE:g} robots: {names}; bounds or a prior help')
    return tuple(notes)


def _not_kept(found: _Found, bounds: Sequence[Block]) -> list[str]:
    """Return which bounds the answer does not keep."""
    names = [name for block in bounds for name in missed(block, found.z)]
    return [f'bounds that are not kept: {", ".join(names)}'] if names else []


def _require_sense(problem: Problem, margin: float, scales: Array | None) -> None:
    """Raise if an option cannot be meant."""
    require_number('margin', margin)
    if not 0.0 <= margin < 1.0:
        raise ModelError(f'the margin must be a share of the prior below 1, not {margin:g}')
    if scales is None:
        return
    require_array('scales', scales, problem.prior.shape)
    if not (scales > 0).all():
        raise ModelError('scales of the Euclidean prior must be positive')
