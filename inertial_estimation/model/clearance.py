# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Distances between the links of a robot, by the geometry of its URDF, and a cost of nearness.

Primitives are taken as they are, of meshes the convex hull: distances are never too large. Links
that a joint ties together are left out where they are near each other with joints at zero, and so
are parts that touch in nearly all postures: there hulls are too coarse. The surroundings of a
robot are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import CallError
from inertial_estimation.model.geometry import Geometry, collision_library, link_shapes
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import apply, cross
from inertial_estimation.model.torque_derivatives import joint_screws

ZONE = 0.05
"""Distance beyond the margin from which on nearness costs nothing [m]."""
ALWAYS = 0.95
"""Share of random postures in which parts touch that the geometry draws into each other."""
POSTURES = 60
"""Random postures for it."""


class Near(NamedTuple):
    """Pairs of parts that are near each other; one entry for each pair and instant."""

    instants: Indices
    pairs: Indices
    distances: Array
    """Negative by the depth of penetration, shape (k,) [m]."""
    slopes: Array
    """Derivatives of distances by the joints, (k, n_joints)."""


class SelfClearance:
    """The parts of links that must keep at a margin from each other."""

    def __init__(
        self,
        robot: Robot,
        lower: Array,
        upper: Array,
        margin: float = 0.0,
        mesh_folders: Iterable[str | Path] = (),
        ignored: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Take postures between lower and upper, (n_joints,) [rad or m]; margin [m]."""
        if not (np.isfinite(margin) and margin >= 0.0):
            raise CallError(f'the clearance is {margin} m, expected zero or more')
        self.robot, self.margin = robot, margin
        shapes = link_shapes(robot, mesh_folders)
        found, notes = [], list(shapes.notes)
        for name, shape in shapes.by_link.items():
            for part in shape.parts:
                try:
                    found.append((robot.link_names.index(name), part.L_H_P, _solid(part)))
                except (RuntimeError, ValueError):
                    notes.append(f"{shape.source} of link '{name}': its mesh is flat")
        self.links = np.array([link for link, *_ in found], dtype=np.intp)
        """Of the parts, (n_parts,)."""
        self._poses = np.array([pose for _, pose, _ in found]).reshape(-1, 4, 4)
        self._solids = [solid for *_, solid in found]
        # Links that an FT sensor ties together are one rigid body.
        rigid = list(range(len(robot.links)))
        for k, link in enumerate(robot.links):
            if link.parent >= 0 and link.joint < 0:
                rigid[k] = rigid[link.parent]
        free = {frozenset((k,)) for k in rigid}
        free |= {frozenset(rigid[robot.frame(name)[0]] for name in pair) for pair in ignored}
        bodies = {
            pair: frozenset(rigid[self.links[k]] for k in pair)
            for pair in combinations(range(len(found)), 2)
        }
        self.pairs = [pair for pair in bodies if bodies[pair] not in free]
        """Numbers of parts."""
        zero = self.near(np.clip(np.zeros((1, len(lower))), lower, upper), margin)
        tied = {
            frozenset((k, rigid[link.parent]))
            for k, link in enumerate(robot.links)
            if link.parent >= 0
        }
        tied &= {bodies[self.pairs[k]] for k in zero.pairs[zero.distances <= margin]}
        left = [pair for pair in self.pairs if bodies[pair] in tied]
        self.unchecked = tuple(dict.fromkeys(map(self.names, left)))
        """Names of links that a joint ties together and that are no pair here."""
        self.pairs = [pair for pair in self.pairs if pair not in left]
        postures = np.random.default_rng(0).uniform(lower, upper, (POSTURES, len(lower)))
        near = self.near(postures, 0.0)
        touching = np.bincount(near.pairs[near.distances <= 0.0], minlength=len(self.pairs))
        left = [self.pairs[k] for k in np.flatnonzero(touching >= ALWAYS * POSTURES)]
        notes += [f'parts of {self.names(pair)} touch in nearly all postures' for pair in left]
        self.notes = tuple(dict.fromkeys(notes))
        """Geometry that is left out, and the reason."""
        self.pairs = [pair for pair in self.pairs if pair not in left]

    def near(self, positions: Array, within: float) -> Near:
        """Return the pairs that are near each other; positions (n, n_joints); within [m]."""
        library = collision_library()
        links, screws = joint_screws(self.robot, positions)
        poses = links[:, self.links] @ self._poses
        inside = np.array([solid.aabb_center for solid in self._solids]).reshape(-1, 3)
        centres = poses[..., :3, 3] + apply(poses[..., :3, :3], inside)
        radii = np.array([solid.aabb_radius for solid in self._solids])
        ends = np.array(self.pairs, dtype=np.intp).reshape(-1, 2).T
        apart = np.linalg.norm(centres[:, ends[0]] - centres[:, ends[1]], axis=2)
        instants, pairs = np.nonzero(apart - radii[ends].sum(axis=0) <= within)
        distances, points, normals = np.zeros(len(pairs)), *np.zeros((2, len(pairs), 3))
        request, result = library.DistanceRequest(), library.DistanceResult()
        for i, (t, pair) in enumerate(zip(instants, pairs, strict=True)):
            one, other = (
                (self._solids[k], library.Transform3s(poses[t, k, :3, :3], poses[t, k, :3, 3]))
                for k in self.pairs[pair]
            )
            result.clear()
            distances[i] = library.distance(*one, *other, request, result)
            points[i], normals[i] = result.getNearestPoint1(), result.normal
        # Its power on the second part less that on the first is the rate of the distance.
        wrenches = np.concatenate([normals, cross(points, normals)], axis=1)
        carried = self.robot.carried.astype(float)
        first, second = carried[:, self.links[ends[:, pairs]]].swapaxes(0, 1)
        powers = apply(screws[instants], wrenches)
        slopes = np.zeros((len(pairs), positions.shape[1]))
        for k, link in enumerate(self.robot.links):
            if link.joint >= 0:
                slopes[:, link.joint] = powers[:, k] * (second[k] - first[k])
        return Near(instants, pairs, distances, slopes)

    def penalty(self, positions: Array) -> tuple[float, Array]:
        """
        Return a cost, infinite where links are nearer than the margin, and its gradient.

        Of a pair at distance d at one of n samples it is ``log((d - margin) / ZONE)^2 / n``.
        """
        near, gradient = self.near(positions, self.margin + ZONE), np.zeros_like(positions)
        left = near.distances - self.margin
        if left.min(initial=np.inf) <= 0.0:
            return np.inf, gradient
        logs = np.log(np.minimum(left / ZONE, 1.0))
        slopes = 2.0 * logs / left / len(positions)
        np.add.at(gradient, near.instants, slopes[:, None] * near.slopes)
        return float(np.sum(logs**2) / len(positions)), gradient

    def nearest(self, positions: Array) -> tuple[float, str]:
        """Return the least distance [m] and its links; infinite and '' if none come near."""
        near = self.near(positions, self.margin + ZONE)
        if not len(near.pairs):
            return np.inf, ''
        k = int(near.distances.argmin())
        return float(near.distances[k]), self.names(self.pairs[near.pairs[k]])

    def names(self, pair: tuple[int, int]) -> str:
        """Return the links of a pair of parts."""
        one, other = (self.robot.link_names[k] for k in sorted(self.links[list(pair)]))
        return f"'{one}' and '{other}'"


def _solid(part: Geometry) -> Any:
    """Return geometry as a shape of the collision library, of a mesh the convex hull."""
    library = collision_library()
    if part.kind == 'mesh':
        points = library.StdVec_Vec3s()
        for vertex in part.vertices:
            points.append(vertex)
        solid = library.Convex.convexHull(points, True, 'Qt')
    else:
        solid = getattr(library, part.kind.capitalize())(*part.sizes)
    solid.computeLocalAABB()
    return solid
