# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Links as point masses inside their shapes: consistency by linear inequalities [A].

    minimise  1/2 mean((Y P rho - f)^2) + weight/2 |W N (P rho - prior)|^2 + tiny |rho - rho0|^2

over rho > 0 [A 15, 29 corrected]. N projects on what the equations do not determine, so that the
prior completes the fit and does not disturb it; it is orthogonal in the metric W, where that of
[A 25] depends on units. Every answer is consistent, with its centre of mass inside its shape.

The reverse does not hold. With three points along an axis of half length d and the centre of mass
at s d, the mean square of the distance to it is at least ``|s| (1 - |s|) d^2``: compact links off
the centre of their box cannot be represented. More points help, at the cost of time. Deviations
contain the distance to the answer without points, in what the equations determine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import InertialEstimationError, ModelError, ShapeError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import LinearBounds, Problem
from inertial_estimation.identification.row_space import RANK_TOLERANCE, RowSpace
from inertial_estimation.identification.solvers.answer import Answer, Method
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import NONE
from inertial_estimation.identification.solvers.lmi import ConeNewton, minimise_inside, scaled
from inertial_estimation.model.geometry import PER_AXIS, Box, Shape
from inertial_estimation.model.inertia import (
    inertia_seen_from,
    parameters_of,
    principal_axes,
    spatial_inertia,
)
from inertial_estimation.model.spatial import inverse_pose

METHOD = 'mass_points'
OPTIMAL = 1e-7
"""Gap to the least objective, relative, of an optimal answer."""
REGULARIZATION = 1e-4
"""Weight of the even distribution of each link's mass."""
MIN_MASS_SHARE = 1e-3
"""Share of the prior's mass, evenly on all points, that stays: strict consistency [A 15]."""
EXTRA_RIDGE = 1e-8
"""Weight of the prior of other unknowns, for those that no equation determines."""
MAX_MISFIT = 0.01
"""Misfit of a prior by points that needs no note, as a share of what its box allows."""
MASS_ERROR, MIN_MASS_ERROR = 0.5, 2.0
"""Error of the prior's masses: a share, and at least this [kg] [A section V corrected]."""


@dataclass(frozen=True, eq=False)
class PointGrid:
    """The points of one link."""

    points: Array
    """Shape (k, 3), in the link [m]."""
    box: Box
    """Around them."""
    source: str
    """Of the box: a kind of geometry, 'config' or 'cuboid'."""


def composition(points: Array) -> Array:
    """Return the parameters, (10, k), of one kilogram at each of some points, (k, 3) [A 9-11]."""
    x, y, z = points.T
    moments = y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y
    return np.array([np.ones(len(points)), x, y, z, *moments])


def box_grid(box: Box, per_axis: int = PER_AXIS, source: str = 'config') -> PointGrid:
    """Return equally spaced points of a box, its corners among them; three make up any link."""
    if not (np.isfinite(box.half_lengths).all() and box.half_lengths.min() > 0):
        raise ModelError(f'a box of half lengths {box.half_lengths} m holds no mass')
    ticks = np.linspace(-1.0, 1.0, per_axis)
    cube = np.stack(np.meshgrid(ticks, ticks, ticks, indexing='ij'), axis=-1).reshape(-1, 3)
    return PointGrid(box.from_unit(cube), box, source)


def link_grids(
    links: Sequence[str],
    prior: Array,
    shapes: Mapping[str, Shape],
    *,
    configured: Mapping[str, Box] | None = None,
    per_axis: int = PER_AXIS,
) -> tuple[PointGrid, ...]:
    """
    Return the points of all links; prior (n_links, 10).

    A link's shape is taken, else its configured box, else the cuboid of even density that has the
    inertia of its prior [M 25].
    """
    boxes, found = configured or {}, []
    for link, parameters in zip(links, prior, strict=True):
        try:
            if link in shapes:
                found.append(box_grid(shapes[link].box, per_axis, shapes[link].source))
            elif link in boxes:
                found.append(box_grid(boxes[link], per_axis))
            else:
                (mass,), (center,), (axes,), (moments,) = principal_axes(parameters[None])
                pose = np.eye(4)
                pose[:3, :3], pose[:3, 3] = axes, center
                box = Box(pose, np.sqrt(3 * moments / mass))
                found.append(box_grid(box, per_axis, 'cuboid'))
        except InertialEstimationError as error:
            raise ModelError(f"link '{link}': {error}") from error
    return tuple(found)


def prior_roots(grids: Sequence[PointGrid], prior: Array) -> list[Array]:
    """
    Return the roots, (10, 10), of the weights of a prior, W' W = W_phi [A 22, 27, 28 corrected].

    Errors of parameters about the box are those to the farther bound of its contents [A 19-21].
    """
    found = []
    for grid, parameters in zip(grids, prior, strict=True):
        box, mass = grid.box, parameters[0]
        # The map of parameters to those about the box, in its axes [A 18].
        into = parameters_of(
            inertia_seen_from(spatial_inertia(np.eye(10)), inverse_pose(box.L_H_S))
        ).T
        error = max(MASS_ERROR * mass, MIN_MASS_ERROR)
        x, y, z = box.half_lengths
        moments = y * y + z * z, x * y, x * x + z * z, x * z, y * z, x * x + y * y
        high = (mass + error) * np.array([1, x, y, z, *moments])
        low = -high
        low[0] = max(0.0, mass - error)
        low[[4, 6, 9]] = 0.0
        reference = into @ parameters
        found.append(into / np.maximum(high - reference, reference - low)[:, None])
    return found


def _mass_points(
    problem: Problem, weight: float, grids: Sequence[PointGrid] | None = None
) -> Answer:
    """Minimise the objective over positive masses at points [A 9-32 corrected]."""
    from scipy.linalg import block_diag

    links, prior = problem.unknowns.links, problem.prior
    if grids is None:
        grids = link_grids(links, prior, {})
    elif len(grids) != len(prior):
        raise ShapeError('grids', (len(prior),), (len(grids),), 'one for each link')
    roots = prior_roots(grids, prior)
    even = [np.full(len(g.points), m / len(g.points)) for g, m in zip(grids, prior[:, 0])]
    reference, misfits = _reference(grids, prior, roots, even)
    pull = np.sqrt(weight) * _prior_rows(problem, roots)
    n, k = problem.unknowns.n_inertial, sum(map(len, even))
    # The triangle of equations and prior; columns of other unknowns have a length of one.
    origin, root = problem.prior_point(), np.sqrt(problem.count)
    rows = Information.of(
        np.vstack([problem.factor / root, pull]), np.append(problem.target / root, pull @ origin)
    )
    lengths = np.linalg.norm(rows.R[:, n:], axis=0)
    extra = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    maps = [composition(grid.points) * mass for grid, mass in zip(grids, even)]
    X = block_diag(*maps, np.diag(extra))
    ridge = [np.full(len(mass), REGULARIZATION / len(mass)) for mass in even]
    shares = np.concatenate(reference)
    about = X @ np.append(shares, origin[n:] / extra)
    at = Coordinates(
        about,
        np.zeros((0, 10, 10)),
        X,
        np.ones(X.shape[1]),
        np.zeros(0, dtype=np.bool_),
        rows.R @ X,
        rows.rho - rows.R @ about,
        rows.energy,
    ).with_rows(np.diag(np.sqrt([*np.concatenate(ridge), *np.full(len(extra), EXTRA_RIDGE)])))
    bounds = LinearBounds.of(problem.bounds, problem.unknowns)
    A, b = scaled(bounds, at)
    held = np.vstack([A, np.eye(k, X.shape[1])]), np.append(b, MIN_MASS_SHARE - shares)
    first = np.zeros(X.shape[1])
    first[:k] = np.maximum(2.0 * MIN_MASS_SHARE - shares, 0.0)
    if (A @ first <= b).any():
        fitted = minimise_inside(bounds.names, at, held, 0.0, small=1.0, optimal=OPTIMAL)
    else:
        fitted = ConeNewton(at, 0.0, held, small=1.0, optimal=OPTIMAL).minimise(first)
    far = [f'{link} ({gap:.0%})' for link, gap in zip(links, misfits) if gap > MAX_MISFIT]
    x, space = at.unknowns(fitted.u), RowSpace.of(problem.factor)
    return Answer(
        x, fitted.gap, fitted.grade, fitted.iterations,
        (f'point masses cannot represent the prior of {", ".join(far)}',) if far else (),
        space.rank, prior_rows=lambda: pull,
        missed=space.solve(problem.target - problem.factor @ x),
    )  # fmt: skip


solve_mass_points = Method(METHOD, _mass_points, NONE, weighted=False)


def _reference(
    grids: Sequence[PointGrid], prior: Array, roots: Sequence[Array], even: Sequence[Array]
) -> tuple[list[Array], list[float]]:
    """Return shares of even masses nearest to the prior, and |W (P rho - prior)|, by link."""
    from scipy.optimize import nnls

    found, misfits = [], []
    for grid, parameters, root, mass in zip(grids, prior, roots, even, strict=True):
        M = root @ composition(grid.points) * mass
        short = 1e-4 * float(np.linalg.norm(M, 2)) * np.eye(len(mass))
        shares, _ = nnls(np.vstack([M, short]), np.append(root @ parameters, 0.0 * mass))
        found.append(shares)
        misfits.append(float(np.linalg.norm(M @ shares - root @ parameters)))
    return found, misfits


def _prior_rows(problem: Problem, roots: Sequence[Array]) -> Array:
    """Return W N: the weighted part of unknowns that the equations do not determine."""
    from scipy.linalg import block_diag

    n = problem.unknowns.n_inertial
    known = problem.factor[:, :n]
    if problem.unknowns.extras:
        left = RowSpace.of(problem.factor[:, n:]).left
        known = known - left @ (left.T @ known)
    inverse = block_diag(*(np.linalg.inv(W) for W in roots))
    _, strengths, directions = np.linalg.svd(known @ inverse)
    rank = int(np.count_nonzero(strengths > RANK_TOLERANCE * strengths.max(initial=0.0)))
    rows = np.zeros((n - rank, len(problem.unknowns)))
    rows[:, :n] = directions[rank:] @ block_diag(*roots)
    if problem.extra_scales is None:
        return rows
    extras = np.eye(len(problem.unknowns))[n:] / problem.extra_scales[:, None]
    return np.vstack([rows, extras])
