# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Second derivative of a fit with a prior, and standard deviations of its unknowns.

    H = factor' factor + weight * G        G: of the prior's distance, one block for each link

Constraints are ignored: where a link is at the edge of consistency or a bound holds, the answer is
more certain than stated, since projection on a convex set never increases a distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import entropic_hessian, entropic_roots

Array = NDArray[np.float64]

CANCELLED = 1e-6
"""Share of its terms below which a difference of variances is computed in another way."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """At one point."""

    root: Array
    """Upper triangle U with U'U = H, shape (n_u, n_u)."""
    blocks: Array
    """G of the links, shape (n_links, 10, 10)."""
    drawn: Array
    """G of the other coordinates, which is diagonal, shape (n_extra,)."""
    weight: float
    """Of the prior."""

    @classmethod
    def of(cls, coordinates: Coordinates, gram: Array, shapes: Array, weight: float) -> Curvature:
        """Return the curvature at a point; gram (n_u, n_u); shapes (n_links, 4, 4)."""
        from scipy.linalg.lapack import dpotrf

        blocks = entropic_hessian(shapes)
        H = gram.copy()
        drawn = coordinates.drawn[coordinates.n_inertial :]
        columns = np.arange(coordinates.n_inertial).reshape(-1, 10)
        H[columns[:, :, None], columns[:, None, :]] += weight * blocks
        others = np.arange(coordinates.n_inertial, len(H))
        H[others, others] += weight * drawn
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            root = _root_of_rows(coordinates, shapes, weight)
        return cls(root, blocks, drawn, weight)

    def solve(self, gradient: Array) -> Array:
        """Return the inverse of H times a vector; gradient (n_u,); returns (n_u,)."""
        return solve_root(self.root, gradient)

    def inverse(self) -> Array:
        """Return the inverse of H, shape (n_u, n_u)."""
        from scipy.linalg.lapack import dpotri

        inverse, _ = dpotri(self.root, lower=0)
        return np.asarray(np.triu(inverse) + np.triu(inverse, 1).T, dtype=np.float64)


def _root_of_rows(coordinates: Coordinates, shapes: Array, weight: float) -> Array:
    """Return the root of H from the rows, at twice the digits of their product."""
    from scipy.linalg import block_diag

    prior = block_diag(*entropic_roots(shapes))
    stacked = np.zeros((len(coordinates.drawn), len(coordinates.drawn)))
    stacked[: len(prior), : len(prior)] = prior
    others = np.arange(len(prior), len(stacked))
    stacked[others, others] = coordinates.drawn[len(prior) :]
    rows = np.vstack([coordinates.factor, np.sqrt(weight) * stacked])
    return np.asarray(np.linalg.qr(rows, mode='r'))


def deviations(
    coordinates: Coordinates,
    curvature: Curvature,
    residual: float,
    count: float,
    noise: float | None,
) -> Array:
    """Return how far each unknown may well be from the truth; returns (n,)."""
    inverse = curvature.inverse()
    drawn = curvature.weight * _times_prior(curvature, inverse)
    if noise is None:
        freedom = count - (len(inverse) - float(np.trace(drawn)))
        variance = residual * count / freedom if freedom >= 1.0 else np.nan
    else:
        variance = noise**2
    # factor'factor is H - weight G, on both sides of which is the inverse.
    whole, by_prior = (_variances(coordinates, inverse, right) for right in (None, drawn))
    seen = whole - by_prior
    if (seen < CANCELLED * whole).any():
        seen = _seen(coordinates, curvature)
    roots = np.sqrt(variance / count * seen + curvature.weight * np.maximum(by_prior, 0.0))
    roots[len(roots) - len(coordinates.undetermined) :][coordinates.undetermined] = np.inf
    return roots


def _seen(coordinates: Coordinates, curvature: Curvature) -> Array:
    """Return the variances by noise of one from the rows, slower and without cancellation."""
    from scipy.linalg import solve_triangular

    half = solve_triangular(curvature.root, coordinates.factor.T, trans='T')
    moved = coordinates.directions(solve_triangular(curvature.root, half))
    return np.asarray(np.sum(moved**2, axis=1))


def _times_prior(curvature: Curvature, matrix: Array) -> Array:
    """Return G times a matrix."""
    size = 10 * len(curvature.blocks)
    by_link = matrix[:size].reshape(len(curvature.blocks), 10, -1)
    return np.vstack(
        [
            (curvature.blocks @ by_link).reshape(size, -1),
            curvature.drawn[:, None] * matrix[size:],
        ]
    )


def _variances(coordinates: Coordinates, left: Array, right: Array | None) -> Array:
    """Return the variances of unknowns whose coordinates have covariance ``left @ right``."""
    size = coordinates.n_inertial
    columns = np.arange(size).reshape(-1, 10)
    if right is None:
        own = left[columns[:, :, None], columns[:, None, :]]
        rest = left[size:, size:]
    else:
        rows = left[:size].reshape(-1, 10, len(left))
        own = rows @ np.moveaxis(right[:, :size].reshape(len(left), -1, 10), 1, 0)
        rest = left[size:] @ right[:, size:]
    inertial = np.sum((coordinates.links @ own) * coordinates.links, axis=-1)
    extras = np.sum((coordinates.extras @ rest) * coordinates.extras, axis=-1)
    return np.concatenate([inertial.reshape(-1), extras])


def by_rows(problem: Problem, x: Array, space: RowSpace, noise: float | None = None) -> Array:
    """
    Return the standard deviations by the equations alone [S 81-83].

    x (n,); returns (n,).
    """
    variances = space.variances()
    sigma = np.sqrt(_variance(problem, x, float(space.rank), noise))
    with np.errstate(invalid='ignore'):
        return np.where(np.isfinite(variances), np.sqrt(variances) * sigma, np.inf)


def by_rows_and_pull(
    problem: Problem, x: Array, pull: Array, weight: float, noise: float | None = None
) -> Array:
    """
    Return the same with equations of a prior, which need not determine every unknown.

    x (n,); pull (p, n); returns (n,).
    """
    factor, drawn = problem.factor / np.sqrt(problem.count), np.sqrt(weight) * pull
    both = np.vstack([factor, drawn])
    space = RowSpace.of(np.asarray(np.linalg.qr(both, mode='r')))
    # V V' is the inverse of factor' factor + weight pull' pull where that has one.
    V = space.directions / space.strengths / space.scales[:, None]
    seen, held = factor @ V, drawn @ V
    variance = _variance(problem, x, float(np.sum(seen**2)), noise)
    by_noise = np.sum((V @ seen.T) ** 2, axis=1) * variance / problem.count
    by_prior = np.sum((V @ held.T) ** 2, axis=1) * weight
    return np.where(space.determined, np.sqrt(by_noise + by_prior), np.inf)


def by_prior(
    problem: Problem,
    x: Array,
    weight: float,
    *,
    links: Array | None = None,
    shapes: Array | None = None,
    noise: float | None = None,
) -> Array:
    """
    Return the same with a prior of all links, see `deviations`.

    x (n,); links (n_links, 10, 10); shapes (n_links, 4, 4); returns (n,).
    """
    coordinates = Coordinates.of(problem, links)
    gram = coordinates.factor.T @ coordinates.factor
    at = np.zeros((len(problem.prior), 4, 4)) if shapes is None else shapes
    curvature = Curvature.of(coordinates, gram, at, weight)
    return deviations(coordinates, curvature, problem.mean_square(x), problem.count, noise)


def _variance(problem: Problem, x: Array, used: float, noise: float | None) -> float:
    """Return the variance of a row; NaN if it is to be estimated and the fit uses up all rows."""
    if noise is not None:
        return noise**2
    freedom = problem.count - used
    # Less than half a row is round-off of a fit that uses up all of them.
    return problem.mean_square(x) * problem.count / freedom if freedom >= 0.5 else np.nan


def solve_root(root: Array, vector: Array) -> Array:
    """Return the inverse of U'U times a vector; root (n, n); vector (n,); returns (n,)."""
    from scipy.linalg.blas import dtrsv

    return np.asarray(dtrsv(root, dtrsv(root, vector, trans=1)))
