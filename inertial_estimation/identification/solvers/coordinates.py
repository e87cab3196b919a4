# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Coordinates about the prior, the curvature of a fit in them, and standard deviations of unknowns.

Links come first, ten coordinates each. Other unknowns are over their scales; those of infinite
scale have no prior, and only combinations of them that the equations determine are coordinates:
the rest stays at its prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import require_number
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import DETERMINED, RowSpace
from inertial_estimation.identification.solvers.divergence import (
    entropic_hessian,
    entropic_roots,
    whitening,
)

MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e12
"""
Of a prior, over a mean squared residual of one. On logs of real arms a smaller one changes no
residual in five digits, and Newton steps end in round-off; from 1e14 on unknowns without a prior,
as offsets, are lost in it. At 1e12 the parameters are the prior's to 9 digits.
"""


def require_weight(weight: float) -> None:
    """Raise unless round-off leaves the weight of a prior an effect."""
    require_number('weight', weight)
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ModelError(f"'weight' is {weight:g}, expected {MIN_WEIGHT:g} to {MAX_WEIGHT:g}")


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
    undetermined: NDArray[np.bool_]
    """Unknowns without a prior that the equations do not determine, shape (n_extras,)."""
    factor: Array
    """Shape (r, n_u)."""
    target: Array
    """Shape (r,)."""
    rest: float
    """Mean square that no unknowns can explain."""

    @classmethod
    def of(cls, problem: Problem, links: Array | None = None) -> Coordinates:
        """Return the coordinates of a problem; links (n_links, 10, 10), else whitened."""
        problem.require_consistent_prior()
        maps = whitening(problem.prior) if links is None else links
        inertial = problem.unknowns.n_inertial
        extras, drawn, undetermined = _extras(problem, problem.factor[:, inertial:])
        origin, root = problem.prior_point(), np.sqrt(problem.count)
        return cls(
            origin,
            maps,
            extras,
            np.concatenate([np.ones(inertial), drawn]),
            undetermined,
            times_maps(problem.factor, maps, extras) / root,
            (problem.target - problem.factor @ origin) / root,
            problem.energy / problem.count,
        )

    @property
    def n_inertial(self) -> int:
        """Number of coordinates of links."""
        return 10 * len(self.links)

    def unknowns(self, u: Array) -> Array:
        """Return the unknowns, (n,), of coordinates, (n_u,)."""
        return self.origin + self.directions(u)

    def directions(self, u: Array) -> Array:
        """Return changes of the unknowns, (n, ...), from those of coordinates, (n_u, ...)."""
        z = u[: self.n_inertial].reshape(len(self.links), 10, -1)
        inertial = (self.links @ z).reshape(self.n_inertial, *u.shape[1:])
        return np.concatenate([inertial, self.extras @ u[self.n_inertial :]])

    def gradients(self, rows: Array) -> Array:
        """Return rows on unknowns, (k, n), as rows on coordinates, (k, n_u)."""
        return times_maps(rows, self.links, self.extras)

    def coordinates(self, x: Array) -> Array:
        """Return the nearest coordinates, (n_u,), of unknowns, (n,)."""
        difference = x - self.origin
        moved = difference[: self.n_inertial].reshape(len(self.links), 10, 1)
        z = np.linalg.solve(self.links, moved).reshape(-1)
        rest, *_ = np.linalg.lstsq(self.extras, difference[self.n_inertial :], rcond=None)
        return np.concatenate([z, rest])


def extra_sizes(problem: Problem) -> tuple[Array, NDArray[np.bool_]]:
    """Return scales of the other unknowns, by prior or by what is noticed, and those by prior."""
    lengths = np.linalg.norm(problem.factor[:, problem.unknowns.n_inertial :], axis=0)
    root = np.sqrt(problem.count)
    noticed = root / np.where(lengths > 0.0, lengths, root)
    if problem.extra_scales is None:
        return noticed, np.zeros(len(noticed), dtype=np.bool_)
    known = np.isfinite(problem.extra_scales)
    return np.where(known, problem.extra_scales, noticed), known


def times_maps(rows: Array, links: Array, extras: Array) -> Array:
    """Return rows on unknowns times the maps of their coordinates."""
    inertial = 10 * len(links)
    by_link = np.swapaxes(rows[:, :inertial].reshape(len(rows), len(links), 10), 0, 1)
    moved = np.empty((len(rows), inertial + extras.shape[1]))
    moved[:, :inertial] = np.swapaxes(by_link @ links, 0, 1).reshape(len(rows), inertial)
    moved[:, inertial:] = rows[:, inertial:] @ extras
    return moved


def _extras(problem: Problem, columns: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the map of the other unknowns, whether its columns are drawn, and what is open."""
    n = columns.shape[1]
    scales = np.full(n, np.inf) if problem.extra_scales is None else problem.extra_scales
    known, free = np.flatnonzero(np.isfinite(scales)), np.flatnonzero(np.isinf(scales))
    undetermined = np.zeros(n, dtype=np.bool_)
    mapping = np.zeros((n, len(known)))
    mapping[known, np.arange(len(known))] = scales[known]
    if not len(free):
        return mapping, np.ones(len(known)), undetermined
    space = RowSpace.of(columns[:, free])
    combinations = np.zeros((n, space.rank))
    full = space.rank == len(free)
    combinations[free] = (np.eye(len(free)) if full else space.directions) / space.scales[:, None]
    undetermined[free] = np.linalg.norm(space.missing, axis=1) > DETERMINED
    drawn = np.concatenate([np.ones(len(known)), np.zeros(space.rank)])
    return np.hstack([mapping, combinations]), drawn, undetermined


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivative at a point: H = factor' factor + weight G, with G of the distance."""

    root: Array
    """Upper triangle U with U'U = H, shape (n_u, n_u)."""
    shapes: Array
    """S of each link, see `divergence`, shape (n_links, 4, 4)."""
    drawn: Array
    """G of the other coordinates, which is diagonal, shape (n_extra,)."""
    weight: float
    """Of the prior."""

    @classmethod
    def of(cls, coordinates: Coordinates, gram: Array, shapes: Array, weight: float) -> Curvature:
        """Return the curvature at a point; gram (n_u, n_u) is factor' factor."""
        from scipy.linalg.lapack import dpotrf

        H, drawn = gram.copy(), coordinates.drawn[coordinates.n_inertial :]
        columns = np.arange(coordinates.n_inertial).reshape(-1, 10)
        H[columns[:, :, None], columns[:, None, :]] += weight * entropic_hessian(shapes)
        others = np.arange(coordinates.n_inertial, len(H))
        H[others, others] += weight * drawn
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            # Of the equations themselves, which have twice the digits of their product.
            prior = cls(H, shapes, drawn, weight).prior_rows()
            root = np.linalg.qr(np.vstack([coordinates.factor, prior]), mode='r')
        return cls(np.asarray(root), shapes, drawn, weight)

    def prior_rows(self) -> Array:
        """Return the root of weight G, shape (n_u, n_u)."""
        from scipy.linalg import block_diag

        roots = block_diag(*entropic_roots(self.shapes), np.diag(self.drawn))
        return np.asarray(np.sqrt(self.weight) * roots)


def solve_root(root: Array, vector: Array) -> Array:
    """Return the inverse of U'U times a vector; root (n, n); vector (n,); returns (n,)."""
    from scipy.linalg.blas import dtrsv

    return np.asarray(dtrsv(root, dtrsv(root, vector, trans=1)))


def deviations(
    problem: Problem, x: Array, coordinates: Coordinates, curvature: Curvature, noise: float | None
) -> Array:
    """
    Return the standard deviations of all unknowns by the curvature at the answer, (n,).

    Constraints are ignored: where a link is at the edge of consistency or a bound is active, the
    answer is more certain, since projection on a convex set never increases a distance.
    """
    from scipy.linalg import solve_triangular

    V = solve_triangular(curvature.root, np.eye(len(curvature.root)))
    seen, held = coordinates.factor @ V, curvature.prior_rows() @ V
    found = _deviations(problem, x, coordinates.directions(V), seen, held, curvature.weight, noise)
    found[problem.unknowns.n_inertial :][coordinates.undetermined] = np.inf
    return found


def deviations_at(
    problem: Problem,
    x: Array,
    weight: float,
    noise: float | None,
    *,
    links: Array | None = None,
    shapes: Array | None = None,
) -> Array:
    """Return the same; links as for `Coordinates`, shapes as for `Curvature`, zero by default."""
    coordinates = Coordinates.of(problem, links)
    gram = coordinates.factor.T @ coordinates.factor
    at = np.zeros((len(problem.prior), 4, 4)) if shapes is None else shapes
    curvature = Curvature.of(coordinates, gram, at, weight)
    return deviations(problem, x, coordinates, curvature, noise)


def deviations_of_equations(
    problem: Problem,
    x: Array,
    noise: float | None,
    prior_rows: Array | None = None,
    weight: float = 0.0,
) -> Array:
    """Return the same by the equations alone [S 81-83], or with linear equations of a prior."""
    factor = problem.factor / np.sqrt(problem.count)
    prior = np.sqrt(weight) * (factor[:0] if prior_rows is None else prior_rows)
    space = RowSpace.of(np.asarray(np.linalg.qr(np.vstack([factor, prior]), mode='r')))
    V = space.directions / space.strengths / space.scales[:, None]
    found = _deviations(problem, x, V, factor @ V, prior @ V, weight, noise)
    return np.where(space.determined, found, np.inf)


def _deviations(
    problem: Problem, x: Array, V: Array, seen: Array, held: Array, weight: float,
    noise: float | None,
) -> Array:  # fmt: skip
    """
    Return standard deviations from V with V V' = H^-1, factor V and the prior's rows times V.

    NaN if the noise is to be estimated and the fit uses up all equations.
    """
    if noise is None:
        freedom = problem.count - float(np.sum(seen**2))
        # Less than half an equation is round-off of a fit that uses up all of them.
        variance = problem.mean_square(x) / freedom if freedom >= 0.5 else np.nan
    else:
        variance = noise**2 / problem.count
    by_noise, by_prior = (np.sum((V @ part.T) ** 2, axis=1) for part in (seen, held))
    return np.asarray(np.sqrt(variance * by_noise + weight * by_prior))
