# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The net wrench of every link, from the IMU that serves it and the joints between [T 4.9]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.model.rigid_body import net_wrench
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import motion_transform
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


class NetWrenches:
    """Reads the net wrenches of single links out of the dynamics, which sum them only."""

    def __init__(self, robot: Robot, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self._joints, self._L_X_J = carriers(robot, dynamics.forest)

    def of(self, samples: SampleBatch) -> tuple[Array, Array]:
        """
        Compute net wrenches, and where the links are.

        Returns net (n, n_links, 6) [N, Nm]; supports (n, n_supports, 4, 3).
        """
        dynamics, n, n_links = self.dynamics, len(samples), len(self._joints)
        motions = np.empty((2, n, n_links, 6))
        supports = np.empty((n, *dynamics.poses.shape))
        for i in range(n):
            dynamics.run(samples[i])
            supports[i] = dynamics.poses
            motions[:, i] = self._motions()
        v, a = (self._L_X_J @ motions[..., None])[..., 0]
        # From the spatial to the sensor acceleration: the point, not the field, is followed.
        a[..., :3] += np.cross(v[..., 3:], v[..., :3])
        return net_wrench(self.dynamics.parameters, v[..., 3:], a), supports

    def _motions(self) -> Array:
        """Return velocity and proper spatial acceleration of the links' joints of the forest."""
        data = self.dynamics.forest_data
        return np.array([[part[i].vector for i in self._joints] for part in (data.v, data.a_gf)])


def carriers(robot: Robot, forest: Forest) -> tuple[list[int], Array]:
    """
    Return the joint of the forest that carries each link, and what moves motions to the link.

    Returns L_X_J (n_links, 6, 6).
    """
    joint_at = {forest.model.joints[i].idx_v: i for i in range(1, forest.model.njoints)}
    joints = [0] * len(robot.links)
    L_H_J = np.tile(np.eye(4), (len(robot.links), 1, 1))
    child = {link.joint: k for k, link in enumerate(robot.links)}
    for top, rows in zip(forest.tops, forest.top_rows, strict=True):
        if top.below:
            k = top.below[0]
            joints[k] = joint_at[int(rows[0])]
            L_H_J[k] = top.L_H_top if k == top.link else robot.links[top.link].P_H_L
    for j, row in enumerate(forest.joint_rows):
        if row >= 0:
            k = forest.below[j][0]
            joints[k] = joint_at[int(row)]
            L_H_J[k] = np.eye(4) if k == child[j] else robot.links[child[j]].P_H_L
    return joints, motion_transform(L_H_J)
