# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How far unknowns may well be from the truth, by the linear equations at an answer.

Constraints are not asked for: where a link is at the edge of what a body can be, or a bound holds,
the answer is surer than stated. All that noise does is then no more than stated, in the norm of
the rows and the prior, since the nearest point of a convex set never moves farther than what it is
nearest to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.curvature import Curvature, deviations

Array = NDArray[np.float64]


def by_rows(problem: Problem, x: Array, space: RowSpace, noise: float | None = None) -> Array:
    """
    Return the standard deviation of each unknown that only rows tell of [S 81-83].

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
    Return the same where rows of a prior take part, which need not tell of everything.

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
    Return the same where a prior tells of all links, see `curvature.deviations`.

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
