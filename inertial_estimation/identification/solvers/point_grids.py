# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Points of each link that may carry mass, and what bodies they make [A 9-14].

Whatever non-negative masses sit at the points of a link, it is a body that could exist, with its
centre of mass in their convex hull. The reverse does not hold: see `mass_points`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies
from inertial_estimation.model.geometry import Box, Shape
from inertial_estimation.model.rigid_body import (
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.spatial import inverse_pose

Array = NDArray[np.float64]

PER_AXIS = 3
"""Points along each edge of a box: 27 in all [A section V]."""
INSIDE = 1e-9
"""What may stick out of a hull by round-off, as a share of its size."""
CONFIG, CUBOID = 'config', 'cuboid'
"""Sources of a box beside those of `model.geometry`."""


@dataclass(frozen=True, eq=False)
class PointGrid:
    """The points of one link."""

    points: Array
    """Shape (k, 3), in the link [m]."""
    box: Box
    """Around them."""
    source: str
    """Where the box comes from."""

    def __post_init__(self) -> None:
        """Raise unless the points can make up all ten parameters [A after 14]."""
        n = len(self.points)
        rank = int(np.linalg.matrix_rank(composition(self.box.to_unit(self.points)))) if n else 0
        if rank < 10:
            raise ModelError(
                f'{n} points span {rank} of the 10 inertial parameters: three along each axis are '
                'needed, in no plane'
            )

    @cached_property
    def P(self) -> Array:
        """Parameters of the link from the masses of its points, shape (10, k) [A 9]."""
        return composition(self.points)


def composition(points: Array) -> Array:
    """
    Return what one kilogram at each of some points adds to a link's parameters [A 10-11].

    points (k, 3) [m]; returns (10, k).
    """
    x, y, z = points.T
    moments = y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y
    return np.array([np.ones(len(points)), x, y, z, *moments])


def box_grid(box: Box, per_axis: int = PER_AXIS, source: str = CONFIG) -> PointGrid:
    """Return equally spaced points of a box, its corners among them."""
    if not (np.isfinite(box.half_lengths).all() and box.half_lengths.min() > 0):
        raise ModelError(f'a box of half lengths {box.half_lengths} m holds no body')
    return PointGrid(box.from_unit(_unit_grid(per_axis)), box, source)


def hull_grid(shape: Shape, per_axis: int = PER_AXIS) -> PointGrid:
    """
    Return points of a convex hull: those of the grid of its box that are inside, and its ends.
    """
    from scipy.spatial import ConvexHull, QhullError

    vertices = shape.box.to_unit(shape.vertices)
    try:
        hull = ConvexHull(vertices)
    except QhullError as error:
        raise ModelError('the convex hull of a link is flat: it holds no body') from error
    grid = _unit_grid(per_axis)
    inside = (grid @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1) <= INSIDE
    outermost = vertices[hull.vertices]
    ends = np.unique(np.argmax(grid @ outermost.T, axis=1))
    points = np.concatenate([grid[inside], outermost[ends]])
    return PointGrid(shape.box.from_unit(points), shape.box, shape.source)


def link_grids(
    links: Sequence[str],
    prior: Array,
    shapes: Mapping[str, Shape],
    *,
    configured: Mapping[str, Box] | None = None,
    per_axis: int = PER_AXIS,
    hulls: bool = False,
) -> tuple[PointGrid, ...]:
    """
    Return the points of all links.

    A link's shape is taken, else its configured box, else the cuboid of even density that has the
    inertia of its prior [M 25].

    prior (n_links, 10).
    """
    boxes = configured or {}
    found = []
    for link, parameters in zip(links, prior, strict=True):
        try:
            if link in shapes and hulls:
                found.append(hull_grid(shapes[link], per_axis))
            elif link in shapes:
                found.append(box_grid(shapes[link].box, per_axis, shapes[link].source))
            elif link in boxes:
                found.append(box_grid(boxes[link], per_axis, CONFIG))
            else:
                found.append(box_grid(_cuboid(parameters), per_axis, CUBOID))
        except InertialEstimationError as error:
            raise ModelError(f"link '{link}': {error}") from error
    return tuple(found)


def _cuboid(parameters: Array) -> Box:
    """Return the cuboid of even density that has given parameters [M 25]."""
    body = PrincipalBodies.of(parameters[None])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = body.axes[0], body.center[0]
    return Box(pose, np.sqrt(3 * body.moments[0] / body.mass[0]))


def _unit_grid(per_axis: int) -> Array:
    """Return equally spaced points of a cube from -1 to 1."""
    if per_axis < 3:
        raise ModelError(f'{per_axis} points along each axis of a box are too few: 3 are needed')
    ticks = np.linspace(-1.0, 1.0, per_axis)
    return np.stack(np.meshgrid(ticks, ticks, ticks, indexing='ij'), axis=-1).reshape(-1, 3)


MASS_SHARE, LEAST_MASS_ERROR = 0.5, 2.0
"""Error of a mass: a share of it, and at least this many kilograms [A section V]."""


def mass_errors(masses: Array) -> Array:
    """
    Return by how much masses may be wrong, dm [A section V corrected].

    masses (n_links,) [kg]; returns (n_links,) [kg].
    """
    return np.maximum(MASS_SHARE * masses, LEAST_MASS_ERROR)


def middle_bodies(grids: Sequence[PointGrid], masses: Array, errors: Array | None = None) -> Array:
    """
    Return the prior of links from box and mass alone: the middle of the bounds.

    masses (n_links,) [kg]; errors (n_links,) [kg]; returns (n_links, 10).
    """
    widths = mass_errors(masses) if errors is None else errors
    found = []
    for grid, mass, error in zip(grids, masses, widths, strict=True):
        low, high = _bounds(grid.box, float(mass), float(error))
        found.append(np.linalg.solve(to_box(grid.box), (low + high) / 2))
    return np.array(found)


def prior_roots(
    grids: Sequence[PointGrid], prior: Array, errors: Array | None = None
) -> list[Array]:
    """
    Return the roots of the weights of a prior, W' W = W_phi [A 22, 27, 28 corrected].

    prior (n_links, 10); errors (n_links,) [kg]; returns (10, 10).
    """
    widths = mass_errors(prior[:, 0]) if errors is None else errors
    found = []
    for grid, parameters, error in zip(grids, prior, widths, strict=True):
        into = to_box(grid.box)
        low, high = _bounds(grid.box, float(parameters[0]), float(error))
        reference = into @ parameters
        deviation = np.maximum(high - reference, reference - low)
        found.append(into / deviation[:, None])
    return found


def to_box(box: Box) -> Array:
    """
    Return the map of a link's parameters to those about its box, in its axes [A 18].

    Returns (10, 10).
    """
    each = inertia_seen_from(spatial_inertia(np.eye(10)), inverse_pose(box.L_H_S))
    return parameters_of(each).T


def _bounds(box: Box, mass: float, error: float) -> tuple[Array, Array]:
    """Return the least and greatest parameters of a body about its box [A 19-21]."""
    x, y, z = box.half_lengths
    most = mass + error
    high = most * np.array(
        [1, x, y, z, y * y + z * z, x * y, x * x + z * z, x * z, y * z, x * x + y * y]
    )
    low = -high
    low[0] = max(0.0, mass - error)
    low[[4, 6, 9]] = 0.0
    return low, high
