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
