# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Distances between the links of a robot, by the geometry of its URDF.

Primitives are taken as they are, of meshes the convex hull: distances are never too large. Links
that a joint ties together are left out where they are near each other with joints at zero, and so
are parts that touch in nearly all postures: there hulls are too coarse. The surroundings of a
robot are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.model.geometry import (
    KINDS,
    Geometry,
    GeometryNotes,
    collision_library,
    read_geometry,
)
from inertial_estimation.model.link_motions import Poses, poses_in_parents, to_axes
from inertial_estimation.model.regressor import poses_in_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross
from inertial_estimation.model.urdf import parse

ALWAYS = 0.95
"""Share of random postures in which parts touch that the geometry draws into each other."""
POSTURES = 60
"""Random postures for it."""


class Piece(NamedTuple):
    """One tag of geometry."""

    link: int
    L_H_P: Array
    """Shape (4, 4) [m]."""
    shape: Any
    """A shape of the collision library."""
    radius: float
    """Of a sphere about its origin that holds it [m]."""


class Distances(NamedTuple):
    """Pairs of pieces that are near each other; one entry for each pair and instant."""

    instants: NDArray[np.intp]
    pairs: NDArray[np.intp]
    distances: Array
    """Negative by the depth of penetration, shape (k,) [m]."""
    points: Array
    """Nearest points of the first and of the second piece, shape (2, k, 3), in the root [m]."""
    normals: Array
    """From the first to the second piece, shape (k, 3)."""

    def of(self, chosen: NDArray[np.bool_]) -> Distances:
        """Return some of them; chosen (k,)."""
        return Distances(
            self.instants[chosen],
            self.pairs[chosen],
            self.distances[chosen],
            self.points[:, chosen],
            self.normals[chosen],
        )


@dataclass(frozen=True, eq=False)
class SelfClearance:
    """The pieces of a robot that must keep away from each other; see `of_robot`."""

    robot: Robot
    pieces: tuple[Piece, ...]
    pairs: tuple[tuple[int, int], ...]
    """Of pieces."""
    notes: tuple[str, ...]
    """Geometry that was left out, and the reason."""
    unchecked: tuple[str, ...] = ()
    """Names of links that a joint ties together and that are no pair here."""

    @classmethod
    def of_robot(
        cls,
        robot: Robot,
        lower: Array,
        upper: Array,
        *,
        margin: float = 0.0,
        mesh_folders: Iterable[str | Path] = (),
        ignored: Iterable[tuple[str, str]] = (),
    ) -> SelfClearance:
        """
        Read the geometry of a robot that no FT sensor cuts.

        lower, upper (n_joints,) [rad or m]; margin [m].
        """
        notes = GeometryNotes()
        pieces = tuple(_pieces(robot, [Path(folder) for folder in mesh_folders], notes))
        together = {frozenset((k,)) for k in range(len(robot.links))}
        together |= {frozenset(robot.frame(name)[0] for name in pair) for pair in ignored}
        pairs = tuple(
            (a, b)
            for b, second in enumerate(pieces)
            for a, first in enumerate(pieces[:b])
            if frozenset((first.link, second.link)) not in together
        )
        whole = cls(robot, pieces, pairs, notes.all)
        zero = np.clip(np.zeros(len(lower)), lower, upper)
        return whole._without_near(zero, margin)._without_always(lower, upper)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links that have geometry."""
        return tuple(dict.fromkeys(self.robot.link_names[p.link] for p in self.pieces))

    def near(self, positions: Array, within: float) -> Distances:
        """Return the pairs that are near each other; positions (n, n_joints); within [m]."""
        poses = self._poses(positions)
        library = collision_library()
        request, result = library.DistanceRequest(), library.DistanceResult()
        placed: dict[tuple[int, int], Any] = {}
        found = []
        for t, pair in self._candidates(poses, within):
            a, b = self.pairs[pair]
            for piece in (a, b):
                if (t, piece) not in placed:
                    link = poses[self.pieces[piece].link]
                    own = self.pieces[piece].L_H_P
                    rotation = link.rotations[t] @ own[:3, :3]
                    origin = link.rotations[t] @ own[:3, 3] + link.origins[t]
                    placed[t, piece] = library.Transform3s(rotation, origin)
            result.clear()
            shapes = self.pieces[a].shape, self.pieces[b].shape
            library.distance(shapes[0], placed[t, a], shapes[1], placed[t, b], request, result)
            # The vectors of the result change with the next pair.
            vectors = result.getNearestPoint1(), result.getNearestPoint2(), result.normal
            found.append((t, pair, result.min_distance, *map(np.array, vectors)))
        instants, pairs, distances, one, other, normals = zip(*found) if found else ((),) * 6
        return Distances(
            np.array(instants, dtype=np.intp),
            np.array(pairs, dtype=np.intp),
            np.array(distances, dtype=float),
            np.array([one, other], dtype=float).reshape(2, -1, 3),
            np.array(normals, dtype=float).reshape(-1, 3),
        )

    def slopes(self, positions: Array, near: Distances) -> Array:
        """Return the derivatives of distances by the joints, (k, n_joints)."""
        poses = self._poses(positions)
        found = np.zeros((len(near.distances), positions.shape[1]))
        ends = np.array(self.pairs)[near.pairs].T if len(near.pairs) else np.zeros((2, 0), int)
        owners = np.array([piece.link for piece in self.pieces])
        moved = np.eye(len(self.robot.links), dtype=bool)  # by the joint of each link
        for k, link in enumerate(self.robot.links):
            if link.parent >= 0:
                moved[:, k] |= moved[:, link.parent]
        for k, link in enumerate(self.robot.links):
            if link.joint < 0:
                continue
            R, o = poses[k].rotations[near.instants], poses[k].origins[near.instants]
            linear, angular = R @ link.motion[:3], R @ link.motion[3:]
            for sign, end, points in zip((-1.0, 1.0), ends, near.points, strict=True):
                speeds = linear + cross(angular, points - o)
                along = np.sum(near.normals * speeds, axis=1)
                found[:, link.joint] += sign * moved[k][owners[end]] * along
        return found

    def names(self, pair: int) -> str:
        """Return the links of a pair."""
        one, other = (self.robot.link_names[k] for k in sorted(self._links(pair)))
        return f"'{one}' and '{other}'"

    def _links(self, pair: int) -> frozenset[int]:
        return frozenset(self.pieces[k].link for k in self.pairs[pair])

    def _without_near(self, positions: Array, margin: float) -> SelfClearance:
        """Return the same without neighbours that are near each other in a posture."""
        tied = {frozenset((k, link.parent)) for k, link in enumerate(self.robot.links)}
        near = self.near(positions[None], margin)
        closest = near.pairs[near.distances <= margin].tolist()
        close = tied & {self._links(pair) for pair in closest}
        far = [k for k in range(len(self.pairs)) if self._links(k) not in close]
        unchecked = dict.fromkeys(self.names(k) for k in range(len(self.pairs)) if k not in far)
        kept = tuple(self.pairs[k] for k in far)
        return replace(self, pairs=kept, unchecked=tuple(unchecked))

    def _without_always(self, lower: Array, upper: Array) -> SelfClearance:
        """Return the same without pairs that touch nearly everywhere."""
        rng = np.random.default_rng(0)
        near = self.near(rng.uniform(lower, upper, (POSTURES, len(lower))), 0.0)
        touching = np.bincount(near.pairs[near.distances <= 0.0], minlength=len(self.pairs))
        always = touching >= ALWAYS * POSTURES
        notes = [
            f'parts of {self.names(k)} touch in nearly all postures: not checked'
            for k in np.flatnonzero(always).tolist()
        ]
        kept = tuple(pair for k, pair in enumerate(self.pairs) if not always[k])
        return replace(self, pairs=kept, notes=tuple(dict.fromkeys([*self.notes, *notes])))

    def _poses(self, positions: Array) -> dict[int, Poses]:
        """Return the pose of each link in the root."""
        poses = poses_in_parents(self.robot, positions)
        return poses_in_root(self.robot, self.robot.submodels[0], poses)

    def _candidates(self, poses: dict[int, Poses], within: float) -> Iterator[tuple[int, int]]:
        """Yield instant and pair where the spheres around the pieces are near each other."""
        if not self.pairs:
            return
        centres = []
        for piece in self.pieces:
            link = poses[piece.link]
            origin = np.broadcast_to(piece.L_H_P[:3, 3], link.origins.shape)
            centres.append(link.origins + to_axes(link.rotations, origin))
        first, second = np.array(self.pairs).T
        middles, radii = np.array(centres), np.array([piece.radius for piece in self.pieces])
        apart = np.linalg.norm(middles[first] - middles[second], axis=2)
        near = apart - (radii[first] + radii[second])[:, None] <= within
        for t, pair in np.argwhere(near.T):
            yield int(t), int(pair)


def _pieces(robot: Robot, folders: list[Path], notes: GeometryNotes) -> Iterator[Piece]:
    """Yield the geometry of a robot; of each URDF link the first kind that it has."""
    for tag in parse(robot.urdf).findall('link'):
        name = tag.get('name', '')
        kind = next((kind for kind in KINDS if tag.find(kind) is not None), '')
        if name not in robot.frames or not kind:
            continue
        for found in read_geometry(robot, tag, kind, folders, notes):
            piece = _piece(found)
            if piece is None:
                notes.add(f"{kind} of link '{name}'", 'its mesh is flat')
            else:
                yield piece


def _piece(found: Geometry) -> Piece | None:
    """Return geometry as a shape of the collision library, of a mesh the convex hull."""
    library, sizes, L_H_P = collision_library(), found.sizes, found.L_H_P.copy()
    if found.kind == 'box':
        return Piece(found.link, L_H_P, library.Box(*sizes), float(np.linalg.norm(sizes / 2)))
    if found.kind == 'cylinder':
        radius = float(np.hypot(sizes[0], sizes[1] / 2))
        return Piece(found.link, L_H_P, library.Cylinder(*sizes), radius)
    if found.kind == 'sphere':
        return Piece(found.link, L_H_P, library.Sphere(*sizes), float(sizes[0]))
    if found.kind == 'capsule':
        return Piece(found.link, L_H_P, library.Capsule(*sizes), float(sizes[0] + sizes[1] / 2))
    centre = (found.vertices.min(axis=0) + found.vertices.max(axis=0)) / 2
    vertices = found.vertices - centre
    points = library.StdVec_Vec3s()
    for vertex in vertices:
        points.append(vertex)
    try:
        hull = library.Convex.convexHull(points, True, 'Qt')
    except (RuntimeError, ValueError):
        return None
    L_H_P[:3, 3] += L_H_P[:3, :3] @ centre
    return Piece(found.link, L_H_P, hull, float(np.linalg.norm(vertices, axis=1).max()))
