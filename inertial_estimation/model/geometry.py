# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Geometry of links in a URDF, which bounds where the mass of each link can be.

Of a link collision geometry is taken, else visual geometry; one that lumps several URDF links has
that of all of them. Geometry that cannot be used is left out and noted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import origin_pose, parse, three_numbers

SIDES = 16
"""Of the polygon that stands for a circle; it is inscribed, so that no mass gets outside."""
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
LIBRARIES = 'coal', 'hppfcl'
"""The collision library that Pinocchio brings, by its new and by its old name."""
MAX_NAMED_MESHES = 8
PER_AXIS = 3
"""Points along each edge of a box that stand for a mass in it: 27 in all [A section V]."""
PRIMITIVES = {
    'box': ('size',),
    'cylinder': ('radius', 'length'),
    'sphere': ('radius',),
    'capsule': ('radius', 'length'),
}
"""Attributes of each; the length of a capsule is that of its cylinder."""


@dataclass(frozen=True, eq=False)
class Box:
    """A cuboid in the frame of a link."""

    L_H_S: Array
    """Pose of its centre and axes in the link, shape (4, 4) [m]."""
    half_lengths: Array
    """Shape (3,) [m]."""

    @classmethod
    def around(cls, points: Array) -> Box:
        """Return the box around points (k, 3) [m], along the axes of their frame."""
        low, high = points.min(axis=0), points.max(axis=0)
        pose = np.eye(4)
        pose[:3, 3] = (low + high) / 2
        return cls(pose, (high - low) / 2)

    @property
    def corners(self) -> Array:
        """Its corners in the link, shape (8, 3) [m]."""
        return self.from_unit(CORNERS)

    def from_unit(self, points: Array) -> Array:
        """Return points (k, 3) [m] that are given as shares of the half lengths."""
        scaled = points * self.half_lengths
        return np.asarray(scaled @ self.L_H_S[:3, :3].T + self.L_H_S[:3, 3])


class Geometry(NamedTuple):
    """One tag of geometry."""

    L_H_P: Array
    """Pose in the link, (4, 4) [m]."""
    kind: str
    """One of `PRIMITIVES`, or ``mesh``."""
    sizes: Array
    """Values of the attributes of a primitive [m]."""
    vertices: Array
    """Points whose hull it is, in its own frame, (k, 3) [m]."""


@dataclass(frozen=True, eq=False)
class Shape:
    """All the geometry of one link; mass is anywhere in its convex hull."""

    vertices: Array
    """Shape (k, 3), in the link [m]."""
    box: Box
    """Around them: in the axes of a single primitive, else in those of the link."""
    source: str
    """``collision`` or ``visual``."""
    parts: tuple[Geometry, ...] = ()
    """Of each URDF link its collision geometry, else its visual one."""


class Shapes(NamedTuple):
    """Shapes of links, as far as the URDF has them."""

    by_link: dict[str, Shape]
    """Links without usable geometry are not in it."""
    notes: tuple[str, ...]
    """Geometry that could not be used, and the reason."""


class UnusableGeometry(ModelError):
    """Geometry that is left out."""


def link_shapes(robot: Robot, mesh_folders: Iterable[str | Path] = ()) -> Shapes:
    """Read the shapes of all links."""
    folders = [Path(folder) for folder in mesh_folders]
    found: dict[str, Shape] = {}
    notes, missing = dict[str, None](), dict[str, str]()
    for source in ('collision', 'visual'):
        parts: dict[str, list[Geometry]] = {}
        for tag in parse(robot.urdf).findall('link'):
            name = tag.get('name', '')
            if name not in robot.frames:
                continue
            link, L_H_U = robot.frame(name)
            if robot.link_names[link] in found and tag.find('collision') is not None:
                continue
            owner = f"{source} of link '{name}'"
            for part in tag.findall(source):
                try:
                    geometry = _read(part, owner, L_H_U, folders)
                except FileNotFoundError as error:
                    missing.setdefault(str(error), owner)
                except UnusableGeometry as error:
                    notes[f'{owner}: {error}'] = None
                else:
                    parts.setdefault(robot.link_names[link], []).append(geometry)
        for name, mine in parts.items():
            if name in found:
                found[name] = replace(found[name], parts=(*found[name].parts, *mine))
                continue
            placed = [p.vertices @ p.L_H_P[:3, :3].T + p.L_H_P[:3, 3] for p in mine]
            vertices = np.concatenate(placed)
            box = Box.around(vertices)
            if len(mine) == 1 and mine[0].kind != 'mesh':
                box = Box(mine[0].L_H_P, np.abs(mine[0].vertices).max(axis=0))
            if box.half_lengths.min() > 0:
                found[name] = Shape(vertices, box, source, tuple(mine))
            else:
                notes[f"link '{name}': its {source} geometry is flat"] = None
    if missing:
        names = ', '.join(f"'{name}'" for name in list(missing)[:MAX_NAMED_MESHES])
        more = f' and {rest} more' if (rest := len(missing) - MAX_NAMED_MESHES) > 0 else ''
        owner = next(iter(missing.values()))
        text = f'{owner}: there is no mesh {names}{more}; name the folder that it starts from'
        notes[text] = None
    return Shapes(found, tuple(notes))


def collision_library() -> ModuleType:
    """Import the library that reads meshes and computes distances."""
    for name in LIBRARIES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnusableGeometry(f'geometry needs {" or ".join(LIBRARIES)}, and neither is installed')


def _read(part: Element, owner: str, L_H_U: Array, folders: Sequence[Path]) -> Geometry:
    """Return the geometry of a tag of a URDF link."""
    L_H_P = L_H_U @ origin_pose(part, owner)
    tag = next((one for one in part.findall('geometry/*') if one.tag in PRIMITIVES), None)
    if tag is not None:
        sizes = _sizes(tag, owner)
        return Geometry(L_H_P, tag.tag, sizes, _vertices(tag.tag, sizes))
    mesh = part.find('geometry/mesh')
    if mesh is None:
        raise UnusableGeometry('no box, cylinder, sphere, capsule or mesh')
    scale = np.array(three_numbers(mesh, 'scale', owner, '1 1 1'))
    path = _find_mesh(mesh.get('filename', ''), folders)
    try:
        read = collision_library().MeshLoader().load(str(path), np.ones(3))
    except (RuntimeError, ValueError) as error:
        raise UnusableGeometry(f"cannot read the mesh '{path}': {error}") from error
    vertices = np.array(read.vertices(), dtype=np.float64).reshape(-1, 3)
    if not len(vertices) or not np.isfinite(vertices).all():
        raise UnusableGeometry(f"the mesh '{path}' holds no points")
    return Geometry(L_H_P, 'mesh', scale, vertices * scale)


def _sizes(tag: Element, owner: str) -> Array:
    """Return the attributes of a primitive."""
    keys = PRIMITIVES[tag.tag]
    try:
        sizes = np.array([float(part) for key in keys for part in tag.get(key, '').split()])
    except ValueError:
        sizes = np.array([np.nan])
    if len(sizes) != (3 if tag.tag == 'box' else len(keys)) or not (
        np.isfinite(sizes).all() and (sizes > 0).all()
    ):
        given = ' '.join(f"{key}='{tag.get(key, '')}'" for key in keys)
        raise ModelError(f'{owner}: <{tag.tag} {given}> is not of positive sizes')
    return sizes


def _vertices(shape: str, sizes: Array) -> Array:
    """Return points whose hull is a primitive, cylinders and capsules along z."""
    if shape == 'box':
        return np.asarray(CORNERS * sizes / 2)
    if shape == 'cylinder':
        return _rings(np.full(2, sizes[0]), np.array([-0.5, 0.5]) * sizes[1])
    angles = np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2 + 1)
    ball: Array = sizes[0] * _rings(np.cos(angles), np.sin(angles))
    if shape == 'sphere':
        return ball
    end = np.array([0.0, 0.0, sizes[1] / 2])
    return np.concatenate([ball + end, ball - end])


def _rings(radii: Array, heights: Array) -> Array:
    angles = 2 * np.pi * np.arange(SIDES) / SIDES
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    flat = (radii[:, None, None] * circle).reshape(-1, 2)
    return np.column_stack([flat, np.repeat(heights, SIDES)])


def _find_mesh(name: str, folders: Sequence[Path]) -> Path:
    """Return the file of a mesh, in given folders or else in those of ROS packages."""
    scheme, separator, rest = name.rpartition('://')
    paths = [Path(rest)]
    if scheme != 'file' and (separator or not Path(name).is_absolute()):
        prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
        packages = os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep)
        ros = [Path(prefix) / 'share' for prefix in prefixes if prefix]
        every = (*folders, *ros, *(Path(package) for package in packages if package))
        paths = [folder / rest for folder in every]
    for path in paths:
        if path.is_file():
            return path
    raise FileNotFoundError(name)
