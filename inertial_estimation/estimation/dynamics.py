# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The forest and the geometry of a robot, run for a sample or for many."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.estimation.balance import build_forest
from inertial_estimation.model.pinocchio_model import add_joints, motion_view, pose_view, supports
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

try:
    compiled: Any = import_module('inertial_estimation.estimation._step')
except ImportError:
    # There was no compiler when the package was installed.
    compiled = None


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
        self.axes: Array = self._geometry_data.J.reshape(6, len(robot.joint_names)).T
        """Likewise: joint axes about the root link's origin, shape (n_joints, 6)."""
        forest = self.forest
        nq, nv = forest.model.nq, forest.model.nv
        # One vector [q, v, a, unused] is written at once. Joints between two trees, and readings
        # of IMUs that serve no link, go where nothing reads them.
        self._state = np.zeros(nq + 2 * nv + 1)
        self.q, self.v, self.a = self._split(self._state)
        """Positions of the forest in the last `run`, (nq,); velocities, accelerations (nv,)."""
        self.q[:] = pin.neutral(forest.model)
        position_of = {joint.idx_v: joint.idx_q for joint in forest.model.joints}
        v_rows = forest.joint_rows
        q_rows = np.array([position_of.get(row, -1) for row in v_rows.tolist()], dtype=np.intp)
        tops = np.full((len(robot.imus), 6), -1)
        tops[list(self.imus)] = forest.top_rows[: len(self.imus)]
        linear, angular = tops[:, :3].ravel(), tops[:, 3:].ravel()
        starts, unused = (0, nq, nq + nv, nq, nq + nv, nq + nv), nq + 2 * nv
        rows = (q_rows, v_rows, v_rows, angular, linear, angular)
        self._rows = np.concatenate([np.where(r < 0, unused, r + s) for r, s in zip(rows, starts)])
        if robot.fixed_frame:
            self.a[forest.top_rows[: len(sources), :3].ravel()] = -robot.gravity

    def use(self, parameters: Array) -> None:
        """Go on with these inertial parameters; parameters (n_links, 10)."""
        if parameters is not self.parameters:
            self.forest.set_inertias(parameters)
            self.parameters = parameters

    def run(self, sample: Sample) -> None:
        """Compute `tau`, `poses` and `axes`."""
        positions = sample.positions
        if compiled is None or not compiled.spread(self._state, self._rows, *sample[1:7]):
            self._state[self._rows] = np.concatenate(sample[1:7], axis=None)
            # Pinocchio reads numbers of another byte order as they stand.
            positions = np.ascontiguousarray(positions, dtype=np.float64)
        self._compute(self.q, self.v, self.a, positions)

    def run_many(self, samples: SampleBatch) -> tuple[Array, Array, Array]:
        """Return tau (n, nv), poses (n, n_supports, 4, 3), axes (n, n_joints, 6) of many."""
        n = len(samples)
        given = [getattr(samples, name) for name in Sample._fields[1:7]]
        readings = [array.reshape(n, prod(array.shape[1:])) for array in given]
        states = np.tile(self._state, (n, 1))
        states[:, self._rows] = np.concatenate(readings, axis=1)
        q, v, a = (part.T for part in self._split(states.T))
        positions = np.ascontiguousarray(samples.positions, dtype=np.float64)
        tau, poses, axes = (np.empty((n, *x.shape)) for x in (self.tau, self.poses, self.axes))
        own = self.tau, self.poses, self.axes
        for state, found in zip(zip(q, v, a, positions), zip(tau, poses, axes)):
            self._compute(*state)
            found[0][...], found[1][...], found[2][...] = own
        return tau, poses, axes

    def _split(self, state: Array) -> tuple[Array, Array, Array]:
        nq, nv = self.forest.model.nq, self.forest.model.nv
        return state[:nq], state[nq : nq + nv], state[nq + nv : nq + 2 * nv]

    def _compute(self, q: Array, v: Array, a: Array, positions: Array) -> None:
        pin.rnea(self.forest.model, self.forest_data, q, v, a)
        pin.computeJointJacobians(self.geometry, self._geometry_data, positions)
