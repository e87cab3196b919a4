# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares over consistent parameters within bounds: a semidefinite program [S 72-75; W].

    minimise  1/2 (|factor x - target|^2 + energy) / count + weight * D(x, prior)

The objective stays quadratic in the rows of the factor; as a matrix inequality of its own, as in
S, it takes five to twenty times as long. The variables of a link are those of `divergence`: its
pseudo-inertia in the metric of the prior, so that the program does not depend on units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import (
    choice,
    require_noise,
    require_number,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.conic import Block, Kind, matrix, minimise
from inertial_estimation.identification.solvers.consistency_lmi import (
    Consistency,
    body_block,
    drawn_inside,
)
from inertial_estimation.identification.solvers.coordinates import (
    deviations_at,
    deviations_of_equations,
    extra_sizes,
    require_weight,
)
from inertial_estimation.identification.solvers.divergence import Distance, whitening
from inertial_estimation.identification.solvers.linear_bounds import (
    LinearBounds,
    bound_blocks,
    missed,
    require_compatible,
)

if TYPE_CHECKING:
    from scipy.sparse import sparray

ATTEMPTS = ((False, 1e-9, 1e-9), (False, 1e-12, 1e-12), (True, 1e-9, 1e-12))
"""
Whether to start at the best answer instead of the prior, tolerance of the program and of its
linear equations; one after the other until an answer is optimal. The program is solved to a share
of the objective at its start, which may be far above the least. Linear equations are nearly
singular where neither measurements nor active constraints determine parameters: what is left of
them then ends the program too soon.
"""
SINGULAR = 1e-13
"""Least diagonal of a triangle over its largest, below which it has no inverse."""
FLOOR = 1e-9
"""Objective, over that at the prior, which is round-off of equations that fit exactly."""
MARGIN = 1e-6
"""Share of the prior's pseudo-inertia that every link keeps."""
EDGE = 1e-4
"""Eigenvalue above the margin, over the prior, of a link at the edge of the cone."""
GAP = 1e-5
"""Optimality residual below which an answer is optimal."""


@dataclass(frozen=True, eq=False)
class BodyProgram:
    """Variables z, zero at the prior, and rows whose half squared residual is the objective."""

    maps: Array
    """Inertial parameters of each link from its ten variables, shape (n_links, 10, 10)."""
    to_x: sparray
    """All unknowns from all variables, beyond the prior, shape (n, n)."""
    rows: Information
    floor: float
    """Objective that is round-off."""

    @classmethod
    def of(cls, problem: Problem, weight: float, prior: Distance) -> BodyProgram:
        """Return the program without its constraints."""
        from scipy.linalg import block_diag
        from scipy.sparse import block_diag as sparse_block_diag
        from scipy.sparse import csc_array

        bodies = problem.prior
        if prior is not Distance.PULLBACK:
            # Only the pullback draws links to the size of their priors: a ball about each origin.
            mean = problem.prior.mean(axis=0)
            ball = np.zeros(10)
            ball[0], ball[[4, 6, 9]] = mean[0], mean[[4, 6, 9]].mean()
            bodies = np.tile(ball, (len(problem.prior), 1))
        maps, (extras, known) = whitening(bodies), extra_sizes(problem)
        to_x = csc_array(sparse_block_diag([*maps, np.diag(extras)], format='csc'))
        root = np.sqrt(problem.count)
        factor = np.asarray(to_x.T @ problem.factor.T).T / root
        target = (problem.target - problem.factor @ problem.prior_point()) / root
        of_links = maps if prior is Distance.EUCLIDEAN else np.broadcast_to(np.eye(10), maps.shape)
        pull = np.sqrt(weight) * block_diag(*of_links, np.diag(1.0 * known))
        rows = Information.of(np.vstack([factor, pull]), np.append(target, np.zeros(len(pull))))
        energy = problem.energy / problem.count
        start = 0.5 * (float(target @ target) + energy)
        return cls(maps, to_x, replace(rows, energy=rows.energy + energy), FLOOR * start)

    def blocks(self, problem: Problem, consistency: Consistency, margin: float) -> list[Block]:
        """Return the constraints of all links, and of bounds if there are any."""
        bodies = body_block(
            problem.unknowns, problem.prior, self.maps, self.n, consistency, margin
        )
        bounds = LinearBounds.of(problem)
        return [bodies, *bound_blocks(bounds, problem.prior_point(), self.to_x)]

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.rows.n

    def objective(self, z: Array) -> float:
        """Return the objective; z (n,)."""
        return 0.5 * self.rows.squared_residual(z)

    def gradient(self, z: Array) -> Array:
        """Return its gradient, (n,)."""
        return np.asarray(self.rows.R.T @ (self.rows.R @ z - self.rows.rho))

    def above(self, z: Array, blocks: Sequence[Block], multipliers: Sequence[Array]) -> float:
        """Return about how far the objective at z, (n,), is above the least."""
        left, gap = self.gradient(z), 0.0
        for block, y in zip(blocks, multipliers, strict=True):
            left = left - block.G.T @ y
            gap += float(y @ (block.G @ z + block.h))
        far = float(np.linalg.norm(left) * np.linalg.norm(z))
        # No objective is negative: where equations fit to round-off that is the tighter bound.
        return min(abs(gap) + far, self.objective(z))

    def relative(self, z: Array, above: float) -> float:
        """Return the same over the objective."""
        return above / max(self.objective(z), self.floor, float(np.finfo(float).tiny))


@one_thread()
def solve_semidefinite(
    problem: Problem,
    *,
    weight: float = 1e-2,
    prior: Distance = Distance.PULLBACK,
    consistency: Consistency = Consistency.FULL,
    margin: float = MARGIN,
    noise: float | None = None,
    with_deviations: bool = True,
) -> Identification:
    """
    Minimise the objective within all bounds.

    Without a prior, parameters that the equations do not determine are arbitrary.
    """
    began = perf_counter()
    prior = choice(Distance, 'prior', prior)
    consistency = choice(Consistency, 'consistency', consistency)
    require_noise(noise)
    problem.require_consistent_prior()
    if prior is Distance.ENTROPIC:
        raise ModelError("'prior' is entropic, expected none, euclidean or pullback")
    if prior is not Distance.NONE:
        require_weight(weight)
    require_number('margin', margin)
    if not 0.0 <= margin < 1.0:
        raise ModelError(f"'margin' is {margin:g}, expected a share of the prior below 1")
    program = BodyProgram.of(problem, 0.0 if prior is Distance.NONE else weight, prior)
    blocks = program.blocks(problem, consistency, margin)
    found = _least(program, blocks)
    x = problem.prior_point() + program.to_x @ found.z
    parameters, links = problem.unknowns.split(x)[0], np.array(problem.unknowns.links)
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(problem.prior)))
    seen = whiten @ consistency.matrix(parameters) @ np.swapaxes(whiten, -1, -2)
    at_edge = links[np.linalg.eigvalsh(seen)[:, 0] < EDGE + margin]
    notes = [f'at the edge of consistency: {", ".join(at_edge)}'] if len(at_edge) else []
    if names := [name for block in blocks[1:] for name in missed(block, found.z)]:
        notes.append(f'bounds that are not kept: {", ".join(names)}')
    stated = np.full(len(x), np.nan)
    if with_deviations and prior is Distance.NONE:
        stated = deviations_of_equations(problem, x, noise)
    elif with_deviations:
        euclidean = np.broadcast_to(np.eye(10), program.maps.shape)
        maps = euclidean if prior is Distance.EUCLIDEAN else None
        stated = deviations_at(problem, x, weight, noise, links=maps)
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
        notes=tuple(notes),
    )


class _Found(NamedTuple):
    """Answer of the program."""

    z: Array
    gap: float
    """Bound of its distance to the least objective, over the objective."""
    grade: Grade
    iterations: int


def _least(program: BodyProgram, blocks: Sequence[Block]) -> _Found:
    """Return the least of the objective within the cones."""
    from scipy.linalg import solve_triangular

    R, rho = program.rows.R, program.rows.rho
    diagonal = np.abs(np.diag(R))
    if diagonal.min() > SINGULAR * diagonal.max():
        z = np.asarray(solve_triangular(R, rho))
        if all(_inside(block, z) for block in blocks):
            left = float(np.sum((R @ z - rho) ** 2)) / 2
            return _Found(z, program.relative(z, left), Grade.OPTIMAL, 1)
    best, iterations = _Found(np.zeros(program.n), np.inf, Grade.INACCURATE, 0), 0
    for about_best, tolerance, refined in ATTEMPTS:
        about = best.z if about_best else np.zeros(program.n)
        found = _expanded(program, blocks, about, tolerance, refined)
        iterations += found.iterations
        best = min(found, best, key=lambda one: (one.grade is not Grade.OPTIMAL, one.gap))
        if best.grade is Grade.OPTIMAL:
            break
    bodies, *bounds = blocks
    if any(missed(block, best.z) for block in bounds):
        require_compatible([bodies], bounds[0])
    return best._replace(iterations=iterations)


def _inside(block: Block, z: Array) -> bool:
    """Return whether variables are strictly inside the cones of a block."""
    rows = block.G @ z + block.h
    if block.kind is Kind.SEMIDEFINITE:
        rows = np.linalg.eigvalsh(matrix(rows.reshape(len(block.labels), -1)))
    return bool((rows > 0.0).all())


def _expanded(
    program: BodyProgram, blocks: Sequence[Block], about: Array, tolerance: float, refined: float
) -> _Found:
    """Return the least of the objective, expanded about some variables and scaled to about one."""
    from scipy.sparse import csc_array

    bodies, *bounds = blocks
    size = max(2.0 * program.objective(about), float(np.finfo(float).tiny))
    gram = csc_array(np.triu(program.rows.R.T @ program.rows.R) / size)
    moved = [block._replace(h=block.h + block.G @ about) for block in blocks]
    solution = minimise(
        gram, program.gradient(about) / size, moved, tolerance=tolerance, refined=refined
    )
    # Where the solver fails its numbers may be NaN; the prior is consistent.
    z = about + solution.x if np.isfinite(solution.x).all() else np.zeros(program.n)
    above = program.above(z, blocks, [size * y for y in solution.multipliers])
    kept = drawn_inside(bodies, z)
    gap = program.relative(kept, max(0.0, above + program.objective(kept) - program.objective(z)))
    # The solver may make no more progress and yet be there.
    optimal = gap <= GAP and not any(missed(block, kept) for block in bounds)
    return _Found(kept, gap, Grade.OPTIMAL if optimal else Grade.INACCURATE, solution.iterations)
