# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sums of wrenches over links, one by one: slower than the estimator's, and complete.

All rows are about the root link's origin in its axes until they are handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.bodies import with_ways
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import side_joints
from inertial_estimation.estimation.net_wrenches import NetWrenches
from inertial_estimation.estimation.sides import find_sides
from inertial_estimation.estimation.transforms import (
    compose,
    cross_matrix,
    row_pose,
    to_child,
    to_parent,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class InternalSums:
    """
    The wrenches of some instants that agree in what works, ready to be summed.

    wrenches (n, n_contacts, 6) [N, Nm]; readings (n, n_fts, 6) [N, Nm]; used_fts (n_fts,); missing
    (n_joints,).
    """

    def __init__(
        self,
        robot: Robot,
        net: NetWrenches,
        samples: SampleBatch,
        contacts: Sequence[Contact],
        wrenches: Array,
        readings: Array,
        used_fts: Mask,
        missing: Mask,
        ways: Mapping[int, Iterable[int]],
    ) -> None:
        self._robot, self._forest = robot, with_ways(net.dynamics.forest, ways)
        self._missing = frozenset(map(int, np.flatnonzero(missing)))
        used = [int(k) for k in np.flatnonzero(used_fts)]
        self._sensor_above = {robot.ft_sensors[k].child: k for k in used}
        self._subtree = subtrees(robot)
        places = [robot.frame(contact.frame) for contact in contacts]
        self._contact_links = [link for link, _ in places]
        submodels = decompose(robot.links, robot.ft_sensors, used)
        unknowns = [contact.unknowns for contact in contacts]
        self._sides = find_sides(robot, submodels, self._contact_links, unknowns)
        self._in_links, supports = net.of(samples)
        geometry = net.dynamics.geometry
        rigid = row_pose(geometry.support_H_L)
        self._frames = compose(supports[:, geometry.support], rigid)
        self._net = self._to_root(range(len(robot.links)), self._in_links)
        self._external = self._to_root(self._contact_links, wrenches, [pose for _, pose in places])
        signs = np.array([[sensor.direction] for sensor in robot.ft_sensors]).reshape(-1, 1)
        self._child_on_parent = self._to_root(
            [sensor.child for sensor in robot.ft_sensors],
            signs * readings,
            [sensor.child_H_sensor for sensor in robot.ft_sensors],
        )

    def net(self) -> Array:
        """
        Return the net wrenches of all links in and about their frames.

        Returns (n, n_links, 6) [N, Nm].
        """
        lost = [bool(self._forest.path[k] & self._missing) for k in range(len(self._frames[0]))]
        return np.where(np.array(lost)[:, None], np.nan, self._in_links)

    def local(self, k: int) -> Array:
        """
        Return what the parent of a link does to it, in the local form.

        Returns (n, 6) [N, Nm].
        """
        if k in self._sensor_above:
            return self._at(k, -self._child_on_parent[:, self._sensor_above[k]])
        side = self._sides[k]
        rests = set(side_joints(self._robot, self._forest, side))
        if not side.away:
            # The sum is on the parent's side: to the child's frame it goes through this joint.
            rests.add(self._robot.links[k].joint)
        if self._missing & rests:
            return np.full((len(self._net), 6), np.nan)
        total = self._sum(side.links)
        for child, s in self._sensor_above.items():
            if self._robot.ft_sensors[s].parent in side.links:
                total -= self._child_on_parent[:, s]
            elif child in side.links:
                total += self._child_on_parent[:, s]
        return self._at(k, total if side.away else -total)

    def whole(self, k: int) -> tuple[Array, Array]:
        """
        Return the same by sums over the whole robot, which need no FT sensor [T 4.23b, 4.23c].

        Returns away (n, 6) [N, Nm]; root (n, 6).
        """
        if self._missing:
            nothing = np.full((len(self._net), 6), np.nan)
            return nothing, nothing
        beyond = set(self._subtree[k])
        others = set(range(len(self._robot.links))) - beyond
        return self._at(k, self._sum(beyond)), self._at(k, -self._sum(others))

    def _sum(self, links: Iterable[int]) -> Array:
        """Return the sum of net wrenches minus external wrenches over links."""
        # Rows are picked, not multiplied by zero: what is NaN elsewhere has no say.
        rows = sorted(links)
        contacts = [c for c, link in enumerate(self._contact_links) if link in set(rows)]
        total: Array = self._net[:, rows].sum(axis=1) - self._external[:, contacts].sum(axis=1)
        return total

    def _to_root(self, links: Sequence[int], rows: Array, poses: Sequence[Array] = ()) -> Array:
        """Move wrenches from frames on links to the root link."""
        frames = self._frames[:, list(links)]
        if len(poses):
            frames = compose(frames, row_pose(np.array(poses)))
        pairs = rows.reshape(*rows.shape[:-1], 2, 3)
        return to_parent(frames, pairs, cross_matrix(frames[..., 3, :])).reshape(rows.shape)

    def _at(self, k: int, row: Array) -> Array:
        """Move a wrench from the root link to a link's frame."""
        frame = self._frames[:, k]
        pairs = row.reshape(-1, 2, 3)
        return to_child(frame, pairs, cross_matrix(frame[:, 3])).reshape(-1, 6)
