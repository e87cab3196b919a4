# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares over consistent parameters within bounds: a semidefinite program [S 72-75; W].

    minimise  1/2 (|factor x - target|^2 + energy) / count + weight * D(x, prior)

The parameters of a link belong to a body of some mass distribution if and only if its 4x4
pseudo-inertia is positive semidefinite [S 16-28; W]. The objective stays quadratic in the rows of
the factor; as a matrix inequality of its own, as in S, it takes five to twenty times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import choice, require_number
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Grade, Problem
from inertial_estimation.identification.solvers.conic import (
    Block,
    Kind,
    matrix,
    minimise,
    vector,
)
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import Distance, whitening
from inertial_estimation.identification.solvers.linear_bounds import (
    LinearBounds,
    bound_blocks,
    missed,
    require_compatible,
)
from inertial_estimation.identification.solvers.method import Answer, Method
from inertial_estimation.model.inertia import pseudo_inertia, spatial_inertia

ZERO_ENTRY = 1e-13
"""Smaller entries of whitened matrices, over the largest, are round-off."""
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


class Consistency(str, Enum):
    """Consistency that is asked of the parameters of a link."""

    PHYSICAL = 'physical'
    """Positive mass and positive inertia about the centre of mass: the 6x6 cone [S 17]."""
    FULL = 'full'
    """The triangle inequality as well: the 4x4 cone [W; T Definition 6.2]."""

    def matrix(self, parameters: Array) -> Array:
        """Return the matrices, (..., k, k), that must be positive semidefinite."""
        return (
            pseudo_inertia(parameters) if self is Consistency.FULL else spatial_inertia(parameters)
        )

    def margins(self, parameters: Array) -> Array:
        """Return their smallest eigenvalues, (...)."""
        return np.asarray(np.linalg.eigvalsh(self.matrix(parameters))[..., 0], dtype=np.float64)

    def rows(self, congruence: Array) -> Array:
        """Return the map of parameters to their matrix C M C' as a vector; C (..., k, k)."""
        C = congruence[..., None, :, :]
        return np.swapaxes(vector(C @ self.matrix(np.eye(10)) @ np.swapaxes(C, -1, -2)), -1, -2)


def constraints(
    problem: Problem, at: Coordinates, consistency: Consistency, margin: float
) -> list[Block]:
    """Return the matrix inequalities of all links, and the rows of bounds if there are any."""
    from scipy.sparse import csc_array

    # About one at the prior, whatever its size and place.
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(problem.prior)))
    dense = consistency.rows(whiten) @ at.links
    largest = np.abs(dense).max(axis=(1, 2), keepdims=True)
    dense[np.abs(dense) < ZERO_ENTRY * largest] = 0.0
    unit = (1.0 - margin) * vector(np.eye(whiten.shape[-1]))
    dense /= largest
    k, m, _ = dense.shape
    link, row, column = places = np.nonzero(dense)
    shape = k * m, len(at.drawn)
    G = csc_array((dense[places], (m * link + row, 10 * link + column)), shape)
    h = (unit / largest[:, 0]).reshape(-1)
    bodies = Block(problem.unknowns.links, Kind.SEMIDEFINITE, G, h)
    return [bodies, *bound_blocks(LinearBounds.of(problem), at)]


def drawn_inside(bodies: Block, u: Array) -> Array:
    """Move links that are outside of their cones toward the prior; u (n,); returns (n,)."""
    n_links = len(bodies.labels)
    changes = matrix((bodies.G @ u).reshape(n_links, -1))
    least = np.linalg.eigvalsh(changes)[:, 0]
    room = matrix(bodies.h.reshape(n_links, -1))[:, 0, 0]
    shares = np.where(least < -room, room / np.maximum(-least, room), 1.0)
    drawn = u.copy()
    drawn[: 10 * n_links] *= np.repeat(shares, 10)
    return drawn


def _semidefinite(
    problem: Problem,
    weight: float,
    *,
    prior: Distance = Distance.PULLBACK,
    consistency: Consistency = Consistency.FULL,
    margin: float = MARGIN,
) -> Answer:
    """
    Minimise the objective within all bounds.

    Without a prior, parameters that the equations do not determine are arbitrary.
    """
    prior = choice(Distance, 'prior', prior)
    consistency = choice(Consistency, 'consistency', consistency)
    if prior is Distance.ENTROPIC:
        raise ModelError("'prior' is entropic, expected none, euclidean or pullback")
    require_number('margin', margin)
    if not 0.0 <= margin < 1.0:
        raise ModelError(f"'margin' is {margin:g}, expected a share of the prior below 1")
    at, pull, objective = _posed(problem, weight, prior)
    blocks = constraints(problem, at, consistency, margin)
    found = _least(objective, blocks)
    x, links = at.unknowns(found.u), np.array(problem.unknowns.links)
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(problem.prior)))
    seen = whiten @ consistency.matrix(problem.unknowns.split(x)[0]) @ np.swapaxes(whiten, -1, -2)
    at_edge = links[np.linalg.eigvalsh(seen)[:, 0] < EDGE + margin]
    notes = [f'at the edge of consistency: {", ".join(at_edge)}'] if len(at_edge) else []
    if names := [name for block in blocks[1:] for name in missed(block, found.u)]:
        notes.append(f'bounds that are not kept: {", ".join(names)}')
    answer = Answer(x, found.gap, found.grade, found.iterations, tuple(notes))
    if prior is Distance.NONE:
        return answer
    return answer._replace(coordinates=at, prior_rows=lambda: pull)


solve_semidefinite = Method('semidefinite', _semidefinite, Distance.PULLBACK, 1e-8)


class _Objective(NamedTuple):
    """Rows whose half squared residual is the objective."""

    rows: Information
    floor: float
    """Objective that is round-off."""

    def value(self, u: Array) -> float:
        """Return the objective; u (n,)."""
        return 0.5 * self.rows.squared_residual(u)

    def gradient(self, u: Array) -> Array:
        """Return its gradient, (n,)."""
        return np.asarray(self.rows.R.T @ (self.rows.R @ u - self.rows.rho))

    def above(self, u: Array, blocks: Sequence[Block], multipliers: Sequence[Array]) -> float:
        """Return about how far the objective at u, (n,), is above the least."""
        left, gap = self.gradient(u), 0.0
        for block, y in zip(blocks, multipliers, strict=True):
            left = left - block.G.T @ y
            gap += float(y @ (block.G @ u + block.h))
        far = float(np.linalg.norm(left) * np.linalg.norm(u))
        # No objective is negative: where equations fit to round-off that is the tighter bound.
        return min(abs(gap) + far, self.value(u))

    def relative(self, u: Array, above: float) -> float:
        """Return the same over the objective."""
        return above / max(self.value(u), self.floor, float(np.finfo(float).tiny))


def _posed(
    problem: Problem, weight: float, prior: Distance
) -> tuple[Coordinates, Array, _Objective]:
    """Return coordinates, the rows of the weighted prior in them, and the objective."""
    from scipy.linalg import block_diag

    bodies = problem.prior
    if prior is not Distance.PULLBACK:
        # Only the pullback draws links to the size of their priors: a ball about each origin.
        mean = problem.prior.mean(axis=0)
        ball = np.zeros(10)
        ball[0], ball[[4, 6, 9]] = mean[0], mean[[4, 6, 9]].mean()
        bodies = np.tile(ball, (len(problem.prior), 1))
    at = Coordinates.of(problem, whitening(bodies))
    pull = np.diag(at.drawn)
    if prior is Distance.EUCLIDEAN:
        pull = block_diag(*at.links, np.diag(at.drawn[at.n_inertial :]))
    pull = (0.0 if prior is Distance.NONE else np.sqrt(weight)) * pull
    rows = Information.of(at.factor, at.target).add(pull, np.zeros(len(pull)))
    start = 0.5 * (float(at.target @ at.target) + at.rest)
    return at, pull, _Objective(replace(rows, energy=rows.energy + at.rest), FLOOR * start)


class _Found(NamedTuple):
    """Answer of the program."""

    u: Array
    gap: float
    """Bound of its distance to the least objective, over the objective."""
    grade: Grade
    iterations: int


def _least(objective: _Objective, blocks: Sequence[Block]) -> _Found:
    """Return the least of the objective within the cones."""
    from scipy.linalg import solve_triangular

    R, rho = objective.rows.R, objective.rows.rho
    diagonal, origin = np.abs(np.diag(R)), np.zeros(len(rho))
    if diagonal.min() > SINGULAR * diagonal.max():
        u = np.asarray(solve_triangular(R, rho))
        if all(_inside(block, u) for block in blocks):
            left = float(np.sum((R @ u - rho) ** 2)) / 2
            return _Found(u, objective.relative(u, left), Grade.OPTIMAL, 1)
    best, iterations = _Found(origin, np.inf, Grade.INACCURATE, 0), 0
    for about_best, tolerance, refined in ATTEMPTS:
        about = best.u if about_best else origin
        found = _expanded(objective, blocks, about, tolerance, refined)
        iterations += found.iterations
        best = min(found, best, key=lambda one: (one.grade is not Grade.OPTIMAL, one.gap))
        if best.grade is Grade.OPTIMAL:
            break
    bodies, *bounds = blocks
    if any(missed(block, best.u) for block in bounds):
        require_compatible([bodies], bounds[0])
    return best._replace(iterations=iterations)


def _inside(block: Block, u: Array) -> bool:
    """Return true if variables are strictly inside the cones of a block."""
    rows = block.G @ u + block.h
    if block.kind is Kind.SEMIDEFINITE:
        rows = np.linalg.eigvalsh(matrix(rows.reshape(len(block.labels), -1)))
    return bool((rows > 0.0).all())


def _expanded(
    objective: _Objective, blocks: Sequence[Block], about: Array, tolerance: float, refined: float
) -> _Found:
    """Return the least of the objective, expanded about some variables and scaled to about one."""
    from scipy.sparse import csc_array

    bodies, *bounds = blocks
    size = max(2.0 * objective.value(about), float(np.finfo(float).tiny))
    gram = csc_array(np.triu(objective.rows.R.T @ objective.rows.R) / size)
    moved = [block._replace(h=block.h + block.G @ about) for block in blocks]
    solution = minimise(
        gram, objective.gradient(about) / size, moved, tolerance=tolerance, refined=refined
    )
    # Where the solver fails its numbers may be NaN; the prior is consistent.
    u = about + solution.x if np.isfinite(solution.x).all() else np.zeros(len(about))
    above = objective.above(u, blocks, [size * y for y in solution.multipliers])
    kept = drawn_inside(bodies, u)
    gap = objective.relative(kept, max(0.0, above + objective.value(kept) - objective.value(u)))
    # The solver may make no more progress and yet be there.
    optimal = gap <= GAP and not any(missed(block, kept) for block in bounds)
    return _Found(kept, gap, Grade.OPTIMAL if optimal else Grade.INACCURATE, solution.iterations)
