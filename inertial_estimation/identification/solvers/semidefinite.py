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
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

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
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.conic import (
    Block,
    ConicSolution,
    Consistency,
    minimise,
)
from inertial_estimation.identification.solvers.constraints import (
    LinearBounds,
    body_block,
    bound_blocks,
    contradiction,
    drawn_inside,
    inside,
    missed,
)
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.deviations import by_prior, by_rows
from inertial_estimation.identification.solvers.divergence import whitening

if TYPE_CHECKING:
    from scipy.sparse import sparray

Array = NDArray[np.float64]

TOLERANCE = 1e-9
"""Of the program: tighter ones end in round-off, looser ones leave bodies less sure."""
SINGULAR = 1e-13
"""Least diagonal of a triangle over its largest, below which it has no inverse."""
FLOOR = 1e-9
"""A smaller share of the objective at the prior is none: rows may fit to round-off."""


class PriorTerm(str, Enum):
    """D, how the distance to the prior is measured; each value names it."""

    NONE = 'none'
    """Not at all. What rows do not determine is then arbitrary, and may be huge."""
    EUCLIDEAN = 'euclidean'
    """``1/2 sum ((x - prior) / scale)^2`` over the inertial parameters, in SI units."""
    PULLBACK = 'pullback'
    """``1/2 |L^-1 (J - J_0) L^-T|^2`` of each link, J_0 = L L' of the prior: without units."""


@dataclass(frozen=True, eq=False)
class BodyProgram:
    """Variables, and rows of all that is squared in the objective."""

    maps: Array
    """Inertial parameters of each link from its ten variables, shape (n_links, 10, 10)."""
    to_x: sparray
    """All unknowns from all variables, beyond the prior, shape (n, n)."""
    rows: Information
    """Of the variables; half the squared residual is the objective."""
    floor: float
    """Objective that is next to nothing."""

    @classmethod
    def of(
        cls, problem: Problem, weight: float, prior: PriorTerm, scales: Array | None
    ) -> BodyProgram:
        """Return the program without what bounds it."""
        from scipy.sparse import block_diag, csc_array

        # Nothing draws bodies to the size of their priors unless their distance is so measured.
        alike = prior is not PriorTerm.PULLBACK
        maps = whitening(_common(problem.prior) if alike else problem.prior)
        extras = _extra_scales(problem)
        to_x = csc_array(block_diag([*maps, np.diag(extras)], format='csc'))
        root = np.sqrt(problem.count)
        factor = np.asarray(to_x.T @ problem.factor.T).T / root
        target = (problem.target - problem.factor @ problem.prior_point()) / root
        pull = np.sqrt(weight) * _prior_rows(problem, prior, maps, scales)
        rows = Information.of(np.vstack([factor, pull]), np.append(target, np.zeros(len(pull))))
        energy = rows.energy + problem.energy / problem.count
        rows = Information(rows.R, rows.rho, energy, rows.count)
        start = 0.5 * (float(target @ target) + problem.energy / problem.count)
        return cls(maps, to_x, rows, FLOOR * start)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.rows.n

    def objective(self, z: Array) -> float:
        """Z (n,)."""
        return 0.5 * self.rows.squared_residual(z)

    def gradient(self, z: Array) -> Array:
        """Z (n,); returns (n,)."""
        return np.asarray(self.rows.R.T @ (self.rows.R @ z - self.rows.rho))

    def size(self, z: Array) -> float:
        """
        Return what the objective is scaled by where it is expanded about some variables.

        z (n,).
        """
        return max(self.rows.squared_residual(z), float(np.finfo(float).tiny))

    def solve(self, blocks: Sequence[Block], about: Array, time_limit: float) -> ConicSolution:
        """
        Return the least of the objective, expanded about some variables and scaled to about one.

        about (n,).
        """
        from scipy.sparse import csc_array

        size = self.size(about)
        gram = np.triu(self.rows.R.T @ self.rows.R) / size
        moved = [block._replace(h=block.h + block.G @ about) for block in blocks]
        linear = self.gradient(about) / size
        return minimise(csc_array(gram), linear, moved, tolerance=TOLERANCE, time_limit=time_limit)

    def unconstrained(self) -> Array | None:
        """Return the least squares of the variables, None if rows leave some of them open."""
        from scipy.linalg import solve_triangular

        diagonal = np.abs(np.diag(self.rows.R))
        if diagonal.min() <= SINGULAR * diagonal.max():
            return None
        return np.asarray(solve_triangular(self.rows.R, self.rows.rho))

    def above(self, z: Array, blocks: Sequence[Block], multipliers: Sequence[Array]) -> float:
        """Return how far above the least objective some variables are at most; z (n,)."""
        left, gap = self.gradient(z), 0.0
        for block, y in zip(blocks, multipliers, strict=True):
            left = left - block.G.T @ y
            gap += float(y @ (block.G @ z + block.h))
        far = float(np.linalg.norm(left) * np.linalg.norm(z))
        # No objective is negative: where rows fit to round-off that is the tighter bound.
        return min(abs(gap) + far, self.objective(z))

    def relative(self, z: Array, above: float) -> float:
        """Return how far above the least objective variables are, over the objective; z (n,)."""
        return above / max(self.objective(z), self.floor, float(np.finfo(float).tiny))


def _prior_rows(problem: Problem, prior: PriorTerm, maps: Array, scales: Array | None) -> Array:
    """Return rows of the variables whose squares are twice the distance."""
    from scipy.linalg import block_diag

    of_links = list(np.broadcast_to(np.eye(10), maps.shape))
    if prior is PriorTerm.EUCLIDEAN:
        sizes = np.ones(problem.prior.shape) if scales is None else scales
        of_links = list(maps / sizes[:, :, None])
    known = problem.extra_scales
    drawn = np.zeros(len(problem.unknowns.extras)) if known is None else 1.0 * np.isfinite(known)
    return np.asarray(block_diag(*of_links, np.diag(drawn)))


def _common(prior: Array) -> Array:
    """Return a ball about each link's origin that is like all priors on average, (n_links, 10)."""
    mean = prior.mean(axis=0)
    ball = np.zeros(10)
    ball[0], ball[[4, 6, 9]] = mean[0], mean[[4, 6, 9]].mean()
    return np.tile(ball, (len(prior), 1))


def _extra_scales(problem: Problem) -> Array:
    """Return how large the other unknowns may be: as known, or as rows would notice."""
    root = np.sqrt(problem.count)
    lengths = np.linalg.norm(problem.factor[:, problem.unknowns.n_inertial :], axis=0)
    noticed: Array = root / np.where(lengths > 0, lengths, root)
    if problem.extra_scales is None:
        return noticed
    return np.where(np.isfinite(problem.extra_scales), problem.extra_scales, noticed)


MARGIN = 1e-6
"""A pseudo-inertia is to exceed this share of the prior's."""
MAX_MASS = 3.0
"""Of a link, over that of the robot of the prior; above it there is a note."""
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
    """Return links at the edge of the cone, outside the full one, and much too heavy ones."""
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(problem.prior)))
    found = consistency.matrix(problem.unknowns.split(x)[0])
    shares = np.linalg.eigvalsh(whiten @ found @ np.swapaxes(whiten, -1, -2))[:, 0]
    links = np.array(problem.unknowns.links)
    parameters = problem.unknowns.split(x)[0]
    which = {
        'at the edge of consistency': shares < EDGE + margin,
        'not fully consistent': Consistency.FULL.margins(parameters) <= 0,
        f'mass above {MAX_MASS:g} times the robot': (
            parameters[:, 0] > MAX_MASS * problem.prior[:, 0].sum()
        ),
    }
    return tuple(f'{text}: {", ".join(links[one])}' for text, one in which.items() if one.any())


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
