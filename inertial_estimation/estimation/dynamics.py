# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The forest and the geometry of a robot, run for a sample or for many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.estimation.forest import build_forest
from inertial_estimation.model.pinocchio_model import add_joints, motion_view, pose_view, supports
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch


class Dynamics:
    """Forest and geometry of a robot for a set of sources of motion, with their workspace."""

    def __init__(self, robot: Robot, imus: Sequence[int]) -> None:
        self.imus, sources = robot.motion_sources(imus)
        """Indices of the IMUs that serve at least one link; empty with a fixed link."""
        self.forest = build_forest(robot, sources)
        self.geometry, (carrying, L_poses) = pin.Model(), supports(robot)
        """Model whose world is the root link; its columns are the robot's joints."""
        self.support, self.support_H_L = carrying - 1, read_only(L_poses)
        """Row of the support of each link in `poses`, (n_links,), and the link's pose there."""
        add_joints(self.geometry, robot, (self.support, self.support_H_L))
        self.parameters = robot.parameters
        """Inertial parameters of the forest, shape (n_links, 10)."""
        self.forest_data = self.forest.model.createData()
        """Pinocchio's results for the forest of the last `run`."""
        self._geometry_data = self.geometry.createData()
        self.tau: Array = self.forest_data.tau
        """Result of the last `run`: generalised forces of the forest, shape (nv,)."""
        self.forces = motion_view(self.forest_data.f)
        """Likewise: force through each joint of the forest, in its frame, (n_joints + 1, 6)."""
        self.poses = pose_view(self._geometry_data)
        """Likewise: row poses of the geometry's joints, shape (n_supports, 4, 3)."""
        self.jacobian: Array = self._geometry_data.J.reshape(6, len(robot.joint_names))
        """Likewise: joint axes about the root link's origin, shape (6, n_joints)."""
        forest = self.forest
        inside = forest.joint_rows >= 0
        self._inside = slice(None) if inside.all() else np.flatnonzero(inside)
        self._v_rows = forest.joint_rows[inside]
        position_of = {joint.idx_v: joint.idx_q for joint in forest.model.joints}
        self._q_rows = np.array([position_of[row] for row in self._v_rows.tolist()], dtype=np.intp)
        self._linear = forest.top_rows[: len(sources), :3].ravel()
        self._angular = forest.top_rows[: len(sources), 3:].ravel()
        self.q = pin.neutral(forest.model)
        """Positions of the forest in the last `run`, shape (nq,); `v` and `a` likewise, (nv,)."""
        self.v = np.zeros(forest.model.nv)
        self.a = np.zeros(forest.model.nv)
        if robot.fixed_frame:
            self.a[self._linear] = -robot.gravity

    def use(self, parameters: Array) -> None:
        """Go on with these inertial parameters; parameters (n_links, 10)."""
        if parameters is not self.parameters:
            self.forest.set_inertias(parameters)
            self.parameters = parameters

    def run(self, sample: Sample) -> None:
        """Compute `tau`, `poses` and `jacobian`."""
        self._write(sample, self.q, self.v, self.a)
        self._compute(self.q, self.v, self.a, sample.positions)

    def run_many(self, samples: SampleBatch) -> tuple[Array, Array, Array]:
        """Return tau (n, nv), poses (n, n_supports, 4, 3), jacobian (n, 6, n_joints) of many."""
        n = len(samples)
        q, v, a = (np.tile(x, (n, 1)) for x in (self.q, self.v, self.a))
        self._write(samples, q, v, a)
        positions = np.ascontiguousarray(samples.positions)
        tau, poses, jacobian = (
            np.empty((n, *x.shape)) for x in (self.tau, self.poses, self.jacobian)
        )
        for i in range(n):
            self._compute(q[i], v[i], a[i], positions[i])
            tau[i] = self.tau
            poses[i] = self.poses
            jacobian[i] = self.jacobian
        return tau, poses, jacobian

    def _write(self, sample: Sample | SampleBatch, q: Array, v: Array, a: Array) -> None:
        """Write readings into the rows of the forest; the last axis is the row."""
        q, v, a = q.T, v.T, a.T
        inside = self._inside
        q[self._q_rows] = sample.positions.T[inside]
        v[self._v_rows] = sample.velocities.T[inside]
        a[self._v_rows] = sample.accelerations.T[inside]
        if len(self.imus):
            v[self._angular] = self._rows(sample.angular_velocities)
            a[self._linear] = self._rows(sample.proper_accelerations)
            a[self._angular] = self._rows(sample.angular_accelerations)

    def _rows(self, readings: Array) -> Array:
        """Return the readings of the IMUs that serve, (3 n_imus,) or (3 n_imus, n)."""
        if len(self.imus) < readings.shape[-2]:
            readings = readings.take(self.imus, axis=-2)
        return readings.reshape(*readings.shape[:-2], 3 * len(self.imus)).T

    def _compute(self, q: Array, v: Array, a: Array, positions: Array) -> None:
        pin.rnea(self.forest.model, self.forest_data, q, v, a)
        pin.computeJointJacobians(self.geometry, self._geometry_data, positions)
