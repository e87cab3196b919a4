# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Links as point masses inside their shapes: consistency by linear inequalities [A].

    minimise  1/2 mean((Y P rho - f)^2) + weight/2 |W N (P rho - prior)|^2 + tiny |rho - rho0|^2

over rho > 0 [A 15, 29 corrected]. N projects on what the equations do not determine, so that the
prior completes the fit and does not disturb it. Every answer is consistent, with its centre of
mass inside the shape of its link.

The reverse does not hold. With three points along an axis of half length d and the centre of mass
at s d, the mean square of the distance to it is at least ``|s| (1 - |s|) d^2``: compact links off
the centre of their box cannot be represented. More points help, at the cost of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.arguments import (
    require_array,
    require_budget,
    require_noise,
    require_number,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import RANK_TOLERANCE, RowSpace
from inertial_estimation.identification.solvers.bounded_least_squares import (
    BoundedProblem,
    fit_bounded,
)
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.deviations import by_rows, by_rows_and_pull
from inertial_estimation.identification.solvers.point_grids import (
    PointGrid,
    link_grids,
    prior_roots,
)

Array = NDArray[np.float64]

METHOD = 'mass_points'
OPTIMAL = 1e-7
"""Greatest violation of the conditions of optimality of an optimal answer."""
MIN_SHARE = 1e-3
"""Of the prior's mass, evenly on all points, that stays: strict consistency [A 15]."""
EXTRA_RIDGE = 1e-8
"""Weight of the prior of other unknowns, for those that no equation determines."""
MAX_MISFIT = 0.01
"""Of a prior that points represent, as a share of what its box allows."""
MAX_LOSS = 0.05
"""Increase of the mean square by the constraints that needs no note."""
UNSEEN_LOSS = 1e-6
"""The same, over the mean square of the right-hand sides: round-off without noise."""


@one_thread()
def solve_mass_points(
    problem: Problem,
    grids: Sequence[PointGrid] | None = None,
    *,
    weight: float | None = 1e-2,
    regularization: float = 1e-4,
    mass_errors: Array | None = None,
    base_map: Array | None = None,
    max_iterations: int = 4000,
    time_limit: float = np.inf,
    noise: float | None = None,
    with_deviations: bool = True,
) -> Identification:
    """
    Return the best fit by positive masses at points [A 9-32 corrected].

    mass_errors (n_links,) [kg]; base_map (k, 10 n_links); time_limit [s].
    """
    start = perf_counter()
    _check(problem, weight, regularization, mass_errors, base_map)
    require_noise(noise)
    require_budget(max_iterations, time_limit)
    if grids is None:
        grids = link_grids(problem.unknowns.links, problem.prior, {})
    elif len(grids) != len(problem.prior):
        raise ShapeError('grids', (len(problem.prior),), (len(grids),), 'one for each link')
    roots = prior_roots(grids, problem.prior, mass_errors)
    reference, misfits = _reference(grids, problem.prior, roots)
    pull = _pull(problem, roots, base_map)
    posed = _posed(problem, grids, _with_prior(problem, pull, weight), reference, regularization)
    fitted = fit_bounded(posed, max_iterations, time_limit)
    x = posed.X @ fitted.v
    space = RowSpace.of(problem.factor)
    stated = np.full(len(x), np.nan)
    if with_deviations and weight is None:
        stated = by_rows(problem, x, space, noise)
    elif with_deviations and weight is not None:
        stated = by_rows_and_pull(problem, x, pull, weight, noise)
    grade = Grade.STOPPED if fitted.stopped else Grade.INACCURATE
    return Identification(
        method=METHOD,
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=space.rank,
        mean_square=problem.mean_square(x),
        optimality=fitted.optimality,
        grade=Grade.OPTIMAL if fitted.optimality <= OPTIMAL else grade,
        iterations=fitted.iterations,
        solve_time=perf_counter() - start,
        notes=(*_unlike(problem, misfits), *_loss(problem, space, x)),
    )


def _check(
    problem: Problem, weight: float | None, regularization: float,
    mass_errors: Array | None, base_map: Array | None,
) -> None:  # fmt: skip
    """Raise unless the arguments belong to the problem."""
    if weight is not None:
        require_weight(weight)
    require_number('regularization', regularization)
    if not 0.0 < regularization < np.inf:
        raise ModelError(f'the regularization must be positive and finite, not {regularization:g}')
    problem.require_consistent_prior()
    if mass_errors is not None:
        require_array('mass_errors', mass_errors, (len(problem.prior),))
        if not (mass_errors > 0.0).all():
            raise ModelError("'mass_errors' must be positive")
    if base_map is not None:
        require_array('base_map', base_map)
        rows = len(base_map) if base_map.ndim else 0
        require_array('base_map', base_map, (rows, problem.unknowns.n_inertial))


def _even(grids: Sequence[PointGrid], prior: Array) -> list[Array]:
    """Return the mass of each point if a link's were shared evenly, by link [kg]."""
    return [
        np.full(len(grid.points), mass / len(grid.points))
        for grid, mass in zip(grids, prior[:, 0], strict=True)
    ]


def _reference(
    grids: Sequence[PointGrid], prior: Array, roots: Sequence[Array]
) -> tuple[list[Array], Array]:
    """Return masses that come close to the prior, and how close: |W (P rho - prior)|, by link."""
    from scipy.optimize import nnls

    found, misfits = [], []
    for grid, even, parameters, root in zip(grids, _even(grids, prior), prior, roots, strict=True):
        M = root @ grid.P * even
        short = 1e-4 * float(np.linalg.norm(M, 2)) * np.eye(len(even))
        shares, _ = nnls(np.vstack([M, short]), np.append(root @ parameters, 0.0 * even))
        found.append(shares)
        misfits.append(float(np.linalg.norm(M @ shares - root @ parameters)))
    return found, np.array(misfits)


def _pull(problem: Problem, roots: Sequence[Array], base_map: Array | None) -> Array:
    """Return rows whose squared distance to the prior is one where it may be off so far."""
    n = problem.unknowns.n_inertial
    known = _without_extras(problem) if base_map is None else base_map
    parts = [_null_space(known, roots, len(problem.unknowns))]
    if problem.extra_scales is not None:
        parts.append(np.eye(len(problem.unknowns))[n:] / problem.extra_scales[:, None])
    return np.vstack(parts)


def _with_prior(problem: Problem, pull: Array, weight: float | None) -> tuple[Array, Array]:
    """Return the rows of the mean, and below them those of the prior, as one least squares."""
    root = np.sqrt(problem.count)
    drawn = np.sqrt(weight or 0.0) * pull
    rows = np.vstack([problem.factor / root, drawn])
    origin = problem.prior_point()
    right = np.append(problem.target / root, drawn @ origin)
    triangle = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode='r'))[: len(origin)]
    return triangle[:, :-1], triangle[:, -1]


def _without_extras(problem: Problem) -> Array:
    """Return the equations with the other unknowns projected out, shape (r, 10 n_links)."""
    n = problem.unknowns.n_inertial
    inertial = problem.factor[:, :n]
    if not problem.unknowns.extras:
        return inertial
    left = RowSpace.of(problem.factor[:, n:]).left
    return np.asarray(inertial - left @ (left.T @ inertial))


def _null_space(known: Array, roots: Sequence[Array], columns: int) -> Array:
    """Return W N: the weighted part of parameters that some rows do not see [A 25]."""
    inverse = np.zeros((known.shape[1], known.shape[1]))
    root = np.zeros((known.shape[1], columns))
    for k, W in enumerate(roots):
        own = slice(10 * k, 10 * k + 10)
        inverse[own, own] = np.linalg.inv(W)
        root[own, own] = W
    _, strengths, directions = np.linalg.svd(known @ inverse)
    rank = int(np.count_nonzero(strengths > RANK_TOLERANCE * strengths.max(initial=0.0)))
    return np.asarray(directions[rank:] @ root)


def _posed(
    problem: Problem,
    grids: Sequence[PointGrid],
    rows: tuple[Array, Array],
    reference: Sequence[Array],
    regularization: float,
) -> BoundedProblem:
    """Return the problem of the masses, as shares of even ones, and of the other unknowns."""
    from scipy.linalg import block_diag

    A, b = rows
    even = _even(grids, problem.prior)
    n = problem.unknowns.n_inertial
    lengths = np.linalg.norm(A[:, n:], axis=0)
    extra = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    X = block_diag(*(grid.P * mass for grid, mass in zip(grids, even)), np.diag(extra))
    d = [np.full(len(mass), regularization / len(mass)) for mass in even]
    return BoundedProblem(
        A=A,
        b=b,
        X=X[: len(problem.unknowns)],
        d=np.concatenate([*d, np.full(len(extra), EXTRA_RIDGE)]),
        v0=np.concatenate([*reference, problem.prior_point()[n:] / extra]),
        floor=np.append(np.full(sum(map(len, even)), MIN_SHARE), np.full(len(extra), -np.inf)),
        bounds=LinearBounds.of(problem),
    )


def _unlike(problem: Problem, misfits: Array) -> list[str]:
    """Return which priors point masses cannot represent."""
    links = problem.unknowns.links
    far = [f'{link} ({gap:.0%})' for link, gap in zip(links, misfits) if gap > MAX_MISFIT]
    return far and [f'point masses cannot represent the prior of {", ".join(far)}']


def _loss(problem: Problem, space: RowSpace, x: Array) -> list[str]:
    """Return by how much the constraints increase the residual, if it is much."""
    found, least = problem.mean_square(x), problem.mean_square(space.solve(problem.target))
    size = problem.mean_square(np.zeros(len(x)))
    if found - least <= max(MAX_LOSS * least, UNSEEN_LOSS * size):
        return []
    return [f'the mean squared residual is {found:.3g}, without constraints {least:.3g}']
