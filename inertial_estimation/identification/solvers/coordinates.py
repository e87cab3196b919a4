# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Coordinates about the prior: ten of each link, then those of the other unknowns.

Other unknowns are over their scales; of those without a prior only combinations that the equations
determine are coordinates, and the rest stays at its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import DETERMINED, RowSpace
from inertial_estimation.identification.solvers.divergence import (
    entropic_roots,
    symmetric,
    whitening,
)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An affine map u -> x, and the equations in u, over the root of their number."""

    origin: Array
    """Unknowns at u = 0: the prior, shape (n,)."""
    links: Array
    """Inertial parameters from the coordinates of each link, shape (n_links, 10, 10)."""
    extras: Array
    """Other unknowns from the other coordinates, shape (n_extras, k)."""
    drawn: Array
    """One for coordinates with a prior, zero for the others, shape (n_u,)."""
    undetermined: Mask
    """Other unknowns without a prior that the equations do not determine, shape (n_extras,)."""
    factor: Array
    """Shape (r, n_u)."""
    target: Array
    """Shape (r,)."""
    rest: float
    """Mean square that no unknowns can explain."""

    @classmethod
    def of(cls, problem: Problem, links: Array | None = None) -> Coordinates:
        """Return the coordinates of a problem; links (n_links, 10, 10), else whitened."""
        links = whitening(problem.prior) if links is None else links
        n, origin, root = (
            problem.unknowns.n_inertial,
            problem.prior_point(),
            np.sqrt(problem.count),
        )
        columns, n_extras = problem.factor[:, n:], len(problem.unknowns.extras)
        scales = np.full(n_extras, np.inf)
        if problem.extra_scales is not None:
            scales = problem.extra_scales
        known, free = np.flatnonzero(np.isfinite(scales)), np.flatnonzero(np.isinf(scales))
        space = RowSpace.of(columns[:, free])
        full = space.rank == len(free)
        extras = np.zeros((n_extras, len(known) + space.rank))
        extras[known, np.arange(len(known))] = scales[known]
        axes = np.eye(len(free)) if full else space.directions
        extras[free, len(known) :] = root * axes / space.scales[:, None]
        undetermined = np.zeros(n_extras, dtype=np.bool_)
        undetermined[free] = np.linalg.norm(space.missing, axis=1) > DETERMINED
        return cls(
            origin,
            links,
            extras,
            np.repeat([1.0, 0.0], [n + len(known), space.rank]),
            undetermined,
            _times_maps(problem.factor, links, extras) / root,
            (problem.target - problem.factor @ origin) / root,
            problem.energy / problem.count,
        )

    @property
    def n_inertial(self) -> int:
        """Number of coordinates of links."""
        return 10 * len(self.links)

    @cached_property
    def gram(self) -> Array:
        """Product F'F of the equations, (n_u, n_u)."""
        return np.asarray(self.factor.T @ self.factor)

    def shapes(self, u: Array) -> Array:
        """Return the matrix S of each link, see `divergence`, (n_links, 4, 4)."""
        return symmetric(u[: self.n_inertial].reshape(-1, 10))

    def unknowns(self, u: Array) -> Array:
        """Return the unknowns, (n,), of coordinates, (n_u,)."""
        return self.origin + self.directions(u)

    def directions(self, u: Array) -> Array:
        """Return changes of the unknowns, (n, ...), from those of coordinates, (n_u, ...)."""
        z = u[: self.n_inertial].reshape(len(self.links), 10, u[0].size)
        inertial = (self.links @ z).reshape(self.n_inertial, *u.shape[1:])
        return np.concatenate([inertial, self.extras @ u[self.n_inertial :]])

    def rows(self, rows: Array) -> Array:
        """Return rows on unknowns, (k, n), as rows on coordinates, (k, n_u)."""
        return _times_maps(rows, self.links, self.extras)

    def prior_rows(self, weight: float, shapes: Array | None = None) -> Array:
        """Return a root of the curvature of the weighted prior at some S or none, (n_u, n_u)."""
        from scipy.linalg import block_diag

        at = np.zeros((len(self.links), 4, 4)) if shapes is None else shapes
        return np.asarray(
            np.sqrt(weight) * block_diag(*entropic_roots(at), np.diag(self.drawn[10 * len(at) :]))
        )

    def curvature_root(self, hessians: Array, shapes: Array, weight: float) -> Array:
        """Return U of the curvature U'U of a fit; hessians: at shapes."""
        from scipy.linalg.lapack import dpotrf

        H, n = self.gram.copy(), self.n_inertial
        columns, others = np.arange(n).reshape(-1, 10), np.arange(n, len(H))
        H[columns[:, :, None], columns[:, None, :]] += weight * hessians
        H[others, others] += weight * self.drawn[n:]
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            # Of the equations themselves, which have twice the digits of their product.
            rows = np.vstack([self.factor, self.prior_rows(weight, shapes)])
            root = np.linalg.qr(rows, mode='r')
        return np.asarray(root)

    def with_rows(self, rows: Array) -> Coordinates:
        """Return these with rows whose squares are added to the equations, (k, n_u)."""
        return replace(
            self,
            factor=np.vstack([self.factor, rows]),
            target=np.append(self.target, np.zeros(len(rows))),
        )


def _times_maps(rows: Array, links: Array, extras: Array) -> Array:
    """Return rows on unknowns times the maps of their coordinates."""
    inertial = 10 * len(links)
    by_link = np.swapaxes(rows[:, :inertial].reshape(len(rows), len(links), 10), 0, 1)
    moved = np.empty((len(rows), inertial + extras.shape[1]))
    moved[:, :inertial] = np.swapaxes(by_link @ links, 0, 1).reshape(len(rows), inertial)
    moved[:, inertial:] = rows[:, inertial:] @ extras
    return moved


def solve_root(root: Array, vector: Array) -> Array:
    """Return the inverse of U'U times a vector; root (n, n); vector (n,); returns (n,)."""
    from scipy.linalg.blas import dtrsv

    return np.asarray(dtrsv(root, dtrsv(root, vector, trans=1)))
