# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a URDF draws around its links, as shapes whose distances can be computed.

Primitives are taken as they are, of meshes the convex hull.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.geometry import KINDS
from inertial_estimation.model.meshes import READERS, GeometryNotes, mesh_vertices
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse, pose_from_xyz_rpy
from inertial_estimation.model.urdf_numbers import three_numbers

Array = NDArray[np.float64]


class Piece(NamedTuple):
    """One tag of geometry."""

    link: int
    L_H_P: Array
    """Shape (4, 4) [m]."""
    shape: Any
    """A shape of the collision library."""
    radius: float
    """Of a sphere about its origin that holds it [m]."""


def collision_pieces(
    robot: Robot, folders: Sequence[Path], notes: GeometryNotes
) -> tuple[Piece, ...]:
    """Read the geometry of a robot; of each URDF link the first kind that it has."""
    return tuple(_pieces(robot, folders, notes))


def _pieces(robot: Robot, folders: Sequence[Path], notes: GeometryNotes) -> Iterator[Piece]:
    """Yield the pieces of geometry."""
    for tag in parse(robot.urdf).findall('link'):
        name = tag.get('name', '')
        if name not in robot.frames:
            continue
        link, L_H_U = robot.frame(name)
        kind = next((kind for kind in KINDS if tag.find(kind) is not None), '')
        for part in tag.findall(kind) if kind else ():
            owner = f"{kind} of link '{name}'"
            try:
                shape, radius, centre = _shape(part, owner, folders)
            except _Unusable as error:
                notes.add(owner, error)
                continue
            L_H_P = L_H_U @ _origin(part, owner)
            L_H_P[:3, 3] += L_H_P[:3, :3] @ centre
            yield Piece(link, L_H_P, shape, radius)


class _Unusable(Exception):
    """Geometry that is left out."""


def _shape(part: Element, owner: str, folders: Sequence[Path]) -> tuple[Any, float, Array]:
    """Return a shape, the radius of a sphere that holds it, and where the centre of both is."""
    for kind, read in _PRIMITIVES.items():
        tag = part.find(f'geometry/{kind}')
        if tag is not None:
            return (*read(tag, owner), np.zeros(3))
    mesh = part.find('geometry/mesh')
    if mesh is None:
        raise _Unusable('no box, cylinder, sphere, capsule or mesh')
    return _hull(mesh, owner, folders)


def _box(tag: Element, owner: str) -> tuple[Any, float]:
    size = np.array(three_numbers(tag, 'size', owner))
    _check_sizes(size, owner, tag)
    return collision_library().Box(*size), float(np.linalg.norm(size / 2))


def _cylinder(tag: Element, owner: str) -> tuple[Any, float]:
    """Return a cylinder along z."""
    radius, length = _size(tag, 'radius', owner), _size(tag, 'length', owner)
    return collision_library().Cylinder(radius, length), float(np.hypot(radius, length / 2))


def _sphere(tag: Element, owner: str) -> tuple[Any, float]:
    radius = _size(tag, 'radius', owner)
    return collision_library().Sphere(radius), radius


def _capsule(tag: Element, owner: str) -> tuple[Any, float]:
    """Return a capsule along z; the length is that of its cylinder."""
    radius, length = _size(tag, 'radius', owner), _size(tag, 'length', owner)
    return collision_library().Capsule(radius, length), radius + length / 2


_PRIMITIVES: dict[str, Callable[[Element, str], tuple[Any, float]]] = {
    'box': _box,
    'cylinder': _cylinder,
    'sphere': _sphere,
    'capsule': _capsule,
}


def _hull(mesh: Element, owner: str, folders: Sequence[Path]) -> tuple[Any, float, Array]:
    """Return the convex hull of a mesh."""
    library = collision_library()
    scale = np.array(three_numbers(mesh, 'scale', owner, '1 1 1'))
    try:
        vertices = mesh_vertices(mesh.get('filename', ''), folders) * scale
    except ModelError as error:
        raise _Unusable(str(error)) from error
    centre = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    vertices = vertices - centre
    points = library.StdVec_Vec3s()
    for vertex in vertices:
        points.append(vertex)
    try:
        hull = library.Convex.convexHull(points, True, 'Qt')
    except (RuntimeError, ValueError):
        raise _Unusable('its mesh is flat') from None
    return hull, float(np.linalg.norm(vertices, axis=1).max()), centre


def _size(tag: Element, key: str, owner: str) -> float:
    """Return a positive number."""
    try:
        value = float(tag.get(key, ''))
    except ValueError:
        value = np.nan
    _check_sizes(np.array([value]), owner, tag)
    return value


def _check_sizes(sizes: Array, owner: str, tag: Element) -> None:
    """Raise unless sizes are positive."""
    if not (np.isfinite(sizes).all() and (sizes > 0.0).all()):
        raise ModelError(f'{owner}: the sizes of its <{tag.tag}> are not all positive numbers')


def _origin(part: Element, owner: str) -> Array:
    """Return the pose that an <origin> gives."""
    origin = part.find('origin')
    if origin is None:
        return np.eye(4)
    xyz, rpy = (three_numbers(origin, key, owner) for key in ('xyz', 'rpy'))
    return pose_from_xyz_rpy(xyz, rpy)


def has_collision_library() -> bool:
    """Tell whether the collision library is installed."""
    return any(find_spec(name) is not None for name in READERS)


def collision_library() -> ModuleType:
    """Import the collision library."""
    for name in READERS:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ModelError(
        f'distances are computed with {" or ".join(READERS)}, and neither is installed'
    )
