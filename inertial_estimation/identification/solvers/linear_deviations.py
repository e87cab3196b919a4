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

from inertial_estimation.identification.information.row_space import RowSpace
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.curvature import Curvature, deviations

Array = NDArray[np.float64]


def by_rows(problem: Problem, x: Array, space: RowSpace, noise: float | None = None) -> Array:
    """
    Return the standard deviation of each unknown that only rows tell of [S 81-83].

    Parameters
    ----------
    problem : Problem
        Rows.
    x : ndarray, shape (n,)
        Unknowns that fit them.
    space : RowSpace
        Of the rows.
    noise : float, optional
        Standard deviation of a row. Default: from the residual.

    Returns
    -------
    ndarray, shape (n,)
        Infinite where rows do not determine an unknown, NaN elsewhere if noise is to be estimated
        and no rows are left for that.

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

    As in `curvature.deviations`: what rows do not tell is as uncertain as the prior.

    Parameters
    ----------
    problem : Problem
        Rows.
    x : ndarray, shape (n,)
        Unknowns.
    pull : ndarray, shape (p, n)
        Rows whose squared distance to the prior is one where that may well be off so far.
    weight : float
        Of their half square, against half the mean square of the rows.
    noise : float, optional
        Standard deviation of a row. Default: from the residual.

    Returns
    -------
    ndarray, shape (n,)
        Infinite for what neither tells, NaN as in `by_rows`.

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

    Parameters
    ----------
    problem : Problem
        Rows and prior.
    x : ndarray, shape (n,)
        Unknowns.
    weight : float
        Of the prior, against the mean squared residual.
    links : ndarray, shape (n_links, 10, 10), optional
        Maps of the links' coordinates, in which the distance to the prior is the length. Default:
        whitened, as in `divergence`.
    shapes : ndarray, shape (n_links, 4, 4), optional
        Where the second derivative of the divergence is taken, S of `divergence`. Default: at the
        prior, where it is one.
    noise : float, optional
        Standard deviation of a row. Default: from the residual.

    Returns
    -------
    ndarray, shape (n,)

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
