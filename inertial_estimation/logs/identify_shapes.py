# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Where the links of `mass_points` may have their mass, from the file of ``identify``.

    shapes:
      mesh_folders: [../meshes]     # where package:// and relative names of meshes begin
      boxes: {hand: [[-0.1, -0.1, 0], [0.1, 0.1, 0.2]]}   # corners in the link [m]
      points: 3                     # along each edge of a box
      hulls: false                  # true: fill convex hulls instead of their boxes

Each link has the collision geometry of the URDF, else the visual one, else its box of the file,
else the cuboid of even density that has the inertia of its prior [A section V; M 25].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.solvers.mass_points import METHOD
from inertial_estimation.identification.solvers.point_grids import PER_AXIS, PointGrid, link_grids
from inertial_estimation.logs.setting_values import as_box, as_flag, as_list, as_mapping
from inertial_estimation.model.geometry import Box, Shapes, link_shapes
from inertial_estimation.model.robot import Robot

SHAPES = ('mesh_folders', 'boxes', 'points', 'hulls')


@dataclass(frozen=True)
class ShapeSettings:
    """What stands under ``shapes``."""

    mesh_folders: tuple[Path, ...] = ()
    """Where ``package://`` and relative names of meshes begin."""
    boxes: Mapping[str, Box] = field(default_factory=dict)
    """By link, for those without geometry."""
    points: int = PER_AXIS
    """Along each edge of a box."""
    hulls: bool = False
    """Whether convex hulls are filled instead of their boxes."""

    @classmethod
    def read(cls, entries: Mapping[str, Any], folder: Path) -> ShapeSettings:
        """Read the group of the file."""
        points, hulls = entries.get('points', PER_AXIS), entries.get('hulls', False)
        if type(points) is not int or points < PER_AXIS:
            raise ConfigError(
                f"'shapes.points' is {points!r}, expected a whole number of at least {PER_AXIS}"
            )
        boxes = as_mapping(entries.get('boxes') or {}, 'shapes.boxes')
        return cls(
            _folders(entries.get('mesh_folders') or (), folder),
            {str(n): Box.around(as_box(box, f'shapes.boxes.{n}')) for n, box in boxes.items()},
            points,
            as_flag(hulls, 'shapes.hulls'),
        )


@dataclass(frozen=True, eq=False)
class LinkPoints:
    """Points of all links of a robot."""

    by_link: Mapping[str, PointGrid]
    notes: tuple[str, ...]
    """What could not be used, and why."""


def link_points(
    robot: Robot, method: str, settings: ShapeSettings | None, mesh_folders: Sequence[Path] = ()
) -> LinkPoints:
    """Return where each link of a robot may have its mass."""
    if method != METHOD:
        note = f"{method} does not use 'shapes': choose {METHOD}"
        return LinkPoints({}, () if settings is None else (note,))
    settings = settings or ShapeSettings()
    links = robot.link_names
    for name in settings.boxes:
        if name not in links:
            raise NameNotFound('link', name, links, "'shapes.boxes' names it")
    prior, _ = widened(links, robot.parameters)
    shapes = link_shapes(robot, (*settings.mesh_folders, *mesh_folders))
    grids = link_grids(
        links, prior, shapes.by_link, configured=settings.boxes, per_axis=settings.points,
        hulls=settings.hulls,
    )  # fmt: skip
    found = dict(zip(links, grids, strict=True))
    return LinkPoints(found, (*shapes.notes, *_unused(settings, shapes)))


def solver_options(
    points: LinkPoints, blocks: Iterable[Block]
) -> dict[str, dict[str, tuple[PointGrid, ...]]]:
    """Return the options that hand its points to the solver of each submodel."""
    if not points.by_link:
        return {}
    return {
        block.submodel.name: {
            'grids': tuple(points.by_link[link] for link in block.unknowns.links)
        }
        for block in blocks
    }


def _unused(settings: ShapeSettings, shapes: Shapes) -> list[str]:
    """Return which boxes of the file count for nothing."""
    return [
        f"the box of '{name}' under 'shapes' is not used: the URDF has "
        f'{shapes.by_link[name].source} geometry of that link'
        for name in settings.boxes
        if name in shapes.by_link
    ]


def _folders(entry: object, folder: Path) -> tuple[Path, ...]:
    """Return the folders of meshes, which must be there."""
    found = tuple(folder / str(name) for name in as_list(entry, 'shapes.mesh_folders'))
    for one in found:
        if not one.is_dir():
            raise ConfigError(f"'shapes.mesh_folders' names {one}, which is no folder")
    return found
