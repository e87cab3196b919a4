# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The quadratic program of bodies: its variables, its objective, and how far from the least it is.

    minimise  1/2 |R z - rho|^2,  z such that bodies and bounds are in their cones

The variables z are zero at the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.conic import Block, ConicSolution, minimise
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
        """
        Return how far above the least objective some variables are at most.

        z (n,).
        """
        left, gap = self.gradient(z), 0.0
        for block, y in zip(blocks, multipliers, strict=True):
            left = left - block.G.T @ y
            gap += float(y @ (block.G @ z + block.h))
        far = float(np.linalg.norm(left) * np.linalg.norm(z))
        # No objective is negative: where rows fit to round-off that tells more than duality.
        return min(abs(gap) + far, self.objective(z))

    def relative(self, z: Array, above: float) -> float:
        """
        Return how far above the least objective variables are, over the objective.

        z (n,).
        """
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
