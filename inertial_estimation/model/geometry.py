# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Where the mass of each link can be: the shapes that a URDF draws around it.

Collision geometry is taken, else visual geometry. A link that lumps several URDF links has the
shapes of all of them. What no file or number stands behind is left out and said.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError
from inertial_estimation.model.meshes import GeometryNotes, mesh_vertices
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse
from inertial_estimation.model.urdf_numbers import three_numbers

Array = NDArray[np.float64]

KINDS = 'collision', 'visual'
"""Of geometry, the first one that a link has is taken."""
SIDES = 16
"""Of the polygon that stands for a circle; it is inscribed, so that no mass gets outside."""
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


@dataclass(frozen=True, eq=False)
class Box:
    """A cuboid in the frame of a link."""

    L_H_S: Array
    """Pose of its centre and axes in the link, shape (4, 4) [m]."""
    half_lengths: Array
    """Shape (3,) [m]."""

    @classmethod
    def around(cls, points: Array) -> Box:
        """
        Return the box around points, along the axes of their frame.

        points (k, 3) [m].
        """
        low, high = points.min(axis=0), points.max(axis=0)
        pose = np.eye(4)
        pose[:3, 3] = (low + high) / 2
        return cls(pose, (high - low) / 2)

    @property
    def corners(self) -> Array:
        """Its corners in the link, shape (8, 3) [m]."""
        return self.from_unit(CORNERS)

    def from_unit(self, points: Array) -> Array:
        """
        Return points that are given as shares of the half lengths.

        points (k, 3); returns (k, 3) [m].
        """
        scaled = points * self.half_lengths
        return np.asarray(scaled @ self.L_H_S[:3, :3].T + self.L_H_S[:3, 3])

    def to_unit(self, points: Array) -> Array:
        """
        Return where points are, as shares of the half lengths; undoes `from_unit`.

        points (..., 3) [m]; returns (..., 3).
        """
        centred = (points - self.L_H_S[:3, 3]) @ self.L_H_S[:3, :3]
        return np.asarray(centred / self.half_lengths)


@dataclass(frozen=True, eq=False)
class Shape:
    """All the geometry of one link; mass is anywhere in its convex hull."""

    vertices: Array
    """Shape (k, 3), in the link [m]."""
    box: Box
    """Around them: in the axes of a single primitive, else in those of the link."""
    source: str
    """One of `KINDS`."""


class Shapes(NamedTuple):
    """What a URDF tells of where mass can be."""

    by_link: dict[str, Shape]
    """Links without usable geometry are not in it."""
    notes: tuple[str, ...]
    """What could not be used, and why."""


def link_shapes(robot: Robot, mesh_folders: Iterable[str | Path] = ()) -> Shapes:
    """Read the shapes of all links."""
    folders = [Path(folder) for folder in mesh_folders]
    notes = GeometryNotes()
    found: dict[str, Shape] = {}
    for kind in KINDS:
        pieces: dict[str, list[_Piece]] = {}
        for name, piece in _pieces(robot, kind, folders, found, notes):
            pieces.setdefault(name, []).append(piece)
        for name, mine in pieces.items():
            shape = _together(mine, kind)
            if shape.box.half_lengths.min() > 0:
                found[name] = shape
            else:
                notes.add(f"link '{name}'", f'its {kind} geometry is flat, no body fits into it')
    return Shapes(found, notes.all)


class _Piece(NamedTuple):
    """One tag of geometry."""

    vertices: Array
    """In the link [m]."""
    box: Box | None
    """Its own, in its own axes, unless it is a mesh."""


def _pieces(
    robot: Robot, kind: str, folders: Sequence[Path], done: Container[str], notes: GeometryNotes
) -> Iterator[tuple[str, _Piece]]:
    """Read the tags of one kind, with the links they are on; notes get what cannot be used."""
    for tag in parse(robot.urdf).findall('link'):
        name = tag.get('name', '')
        if name not in robot.frames:
            continue
        link, L_H_U = robot.frame(name)
        if robot.link_names[link] in done:
            continue
        for part in tag.findall(kind):
            owner = f"{kind} of link '{name}'"
            points, is_mesh = _vertices(part, owner, folders, notes)
            if points is None:
                continue
            L_H_P = L_H_U @ _origin(part, owner)
            placed = points @ L_H_P[:3, :3].T + L_H_P[:3, 3]
            own = None if is_mesh else Box(L_H_P, np.abs(points).max(axis=0))
            yield robot.link_names[link], _Piece(placed, own)


def _together(pieces: Sequence[_Piece], kind: str) -> Shape:
    """Return the shape of all pieces of a link."""
    vertices = np.concatenate([piece.vertices for piece in pieces])
    single = pieces[0].box if len(pieces) == 1 else None
    return Shape(vertices, single or Box.around(vertices), kind)


def _origin(tag: Element, owner: str) -> Array:
    """Return the pose that an <origin> gives."""
    pose = np.eye(4)
    origin = tag.find('origin')
    if origin is not None:
        angles = three_numbers(origin, 'rpy', owner)
        pose[:3, :3] = Rotation.from_euler('xyz', angles).as_matrix()
        pose[:3, 3] = three_numbers(origin, 'xyz', owner)
    return pose


def _vertices(
    part: Element, owner: str, folders: Sequence[Path], notes: GeometryNotes
) -> tuple[Array | None, bool]:
    """Return points whose hull is the geometry, in its own frame, and whether it is a mesh."""
    for shape, read in _PRIMITIVES.items():
        tag = part.find(f'geometry/{shape}')
        if tag is not None:
            return read(tag, owner), False
    mesh = part.find('geometry/mesh')
    if mesh is None:
        notes.add(owner, 'no box, cylinder, sphere, capsule or mesh')
        return None, False
    scale = np.array(three_numbers(mesh, 'scale', owner, '1 1 1'))
    try:
        return mesh_vertices(mesh.get('filename', ''), folders) * scale, True
    except ModelError as error:
        notes.add(owner, error)
        return None, True


def _size(tag: Element, key: str, owner: str) -> float:
    """Return a positive number."""
    try:
        value = float(tag.get(key, ''))
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise ModelError(f"{owner}: <{tag.tag} {key}='{tag.get(key, '')}'> is no positive size")
    return value


def _box(tag: Element, owner: str) -> Array:
    """Return the corners of a box."""
    size = np.array(three_numbers(tag, 'size', owner))
    if not (size > 0).all():
        raise ModelError(f"{owner}: <box size='{tag.get('size', '')}'> is not positive")
    return np.asarray(CORNERS * size / 2)


def _rings(radii: Array, heights: Array) -> Array:
    """Return polygons around the z axis."""
    angles = 2 * np.pi * np.arange(SIDES) / SIDES
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    rings = [
        np.column_stack([radius * circle, np.full(SIDES, height)])
        for radius, height in zip(radii, heights, strict=True)
    ]
    return np.concatenate(rings)


def _cylinder(tag: Element, owner: str) -> Array:
    """Return points of a cylinder along z."""
    radius, length = _size(tag, 'radius', owner), _size(tag, 'length', owner)
    return _rings(np.array([radius, radius]), np.array([-length, length]) / 2)


def _sphere(tag: Element, owner: str) -> Array:
    """Return points of a sphere."""
    return _ball(_size(tag, 'radius', owner))


def _capsule(tag: Element, owner: str) -> Array:
    """Return points of a capsule along z; the length is that of its cylinder."""
    ball = _ball(_size(tag, 'radius', owner))
    end = np.array([0.0, 0.0, _size(tag, 'length', owner) / 2])
    return np.concatenate([ball + end, ball - end])


def _ball(radius: float) -> Array:
    """Return points on a sphere, poles and equator among them."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2 + 1)
    return radius * _rings(np.cos(angles), np.sin(angles))


_PRIMITIVES: dict[str, Callable[[Element, str], Array]] = {
    'box': _box,
    'cylinder': _cylinder,
    'sphere': _sphere,
    'capsule': _capsule,
}
