# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The motion of one IMU from that of another and the joints between [T 3.6, 3.7, 4.15]."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.model.motion_sources import Source, assign_owners
from inertial_estimation.model.pinocchio_model import free_floating_model, supports
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose, motion_cross, motion_transform
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class ImuPrediction:
    """
    Predicts each IMU of a robot from another source of motion.

    That is the fixed link, or else the nearest other IMU that measures both quantities.

    sources (n_imus,).
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = free_floating_model(robot)
        self._data = self._model.createData()
        places = [(imu.link, imu.L_H_S) for imu in robot.imus]
        if robot.fixed_frame:
            places.append(robot.frame(robot.fixed_frame))
        joint_of, J_H_L = supports(robot)
        links = np.array([link for link, _ in places], dtype=np.intp)
        self._joints = joint_of[links].tolist()
        self._J_H_S = J_H_L[links] @ np.array([H for _, H in places]).reshape(-1, 4, 4)
        self._S_X_J = motion_transform(inverse_pose(self._J_H_S))
        self.sources = _sources(robot)
        self._between = _joints_between(robot, links, self.sources)

    def of(self, samples: SampleBatch) -> tuple[Array, Array]:
        """
        Predict the readings.

        Returns angular_velocities, proper_accelerations (n, n_imus, 3) [rad/s, m/s^2].
        """
        n_imus = len(self._robot.imus)
        poses, velocities, accelerations = self._relative(samples)
        v, a = self._measured(samples)
        # Motion of the root link at rest among the joints, as each source sees it [T 3.6].
        root_v = v - velocities
        root_a = a - accelerations - _cross(root_v, velocities)
        k, m = np.arange(n_imus), self.sources
        S_X_M = motion_transform(inverse_pose(poses[:, k]) @ poses[:, m])
        carried = _apply(S_X_M, root_v[:, m])
        v = carried + velocities[:, k]
        a = _apply(S_X_M, root_a[:, m]) + accelerations[:, k] + _cross(carried, velocities[:, k])
        lost = self._lost(samples)
        linear = a[..., :3] + np.cross(v[..., 3:], v[..., :3])
        found = np.where(lost, np.nan, v[..., 3:]), np.where(lost, np.nan, linear)
        return found

    def _relative(self, samples: SampleBatch) -> tuple[Array, Array, Array]:
        """Return poses, velocities, accelerations of the places relative to the root link."""
        n, n_places = len(samples), len(self._joints)
        poses = np.empty((n, n_places, 4, 4))
        motions = np.empty((2, n, n_places, 6))
        q = pin.neutral(self._model)
        v, a = np.zeros((2, self._model.nv))
        # What is missing must not reach what does not depend on it.
        rows = [np.nan_to_num(x, posinf=0.0, neginf=0.0) for x in _joint_rows(samples)]
        for i in range(n):
            q[7:], v[6:], a[6:] = (x[i] for x in rows)
            pin.forwardKinematics(self._model, self._data, q, v, a)
            poses[i] = [self._data.oMi[j].homogeneous for j in self._joints]
            motions[:, i] = [
                [part[j].vector for j in self._joints] for part in (self._data.v, self._data.a)
            ]
        velocities, accelerations = _apply(self._S_X_J, motions)
        return poses @ self._J_H_S, velocities, accelerations

    def _measured(self, samples: SampleBatch) -> tuple[Array, Array]:
        """Return velocity and acceleration of the places as measured, their origins at rest."""
        v, a = np.zeros((2, len(samples), len(self._joints), 6))
        n_imus = len(self._robot.imus)
        v[:, :n_imus, 3:] = samples.angular_velocities
        a[:, :n_imus, :3] = samples.proper_accelerations
        a[:, :n_imus, 3:] = samples.angular_accelerations
        if self._robot.fixed_frame:
            a[:, n_imus, :3] = -self._robot.gravity
        return v, a

    def _lost(self, samples: SampleBatch) -> NDArray[np.bool_]:
        """Tell which predictions lack a source or a joint on the way, shape (n, n_imus, 1)."""
        missing = ~np.asarray(np.isfinite(_joint_rows(samples)).all(axis=0))
        on_the_way = (missing[:, None, :] & self._between).any(axis=-1)
        return np.asarray(on_the_way | (self.sources < 0))[..., None]


def _joint_rows(samples: SampleBatch) -> Array:
    """Return positions, velocities and accelerations of the joints, shape (3, n, n_joints)."""
    return np.array([samples.positions, samples.velocities, samples.accelerations])


def _sources(robot: Robot) -> Indices:
    """Return for each IMU the row of what predicts it; the fixed link comes after all IMUs."""
    n_imus = len(robot.imus)
    if robot.fixed_frame:
        return np.full(n_imus, n_imus, dtype=np.intp)
    found = np.full(n_imus, -1, dtype=np.intp)
    whole = [m for m, imu in enumerate(robot.imus) if imu.measures == 'both']
    for k, imu in enumerate(robot.imus):
        others = [m for m in whole if m != k]
        if not others:
            continue
        sources = [Source(robot.imus[m].name, robot.imus[m].link, np.eye(4)) for m in others]
        owners = assign_owners(robot.links, sources, rigid_sensors=True)
        found[k] = others[owners[imu.link]]
    return found


def _joints_between(robot: Robot, links: Indices, source: Indices) -> NDArray[np.bool_]:
    """Tell which joints lie between each IMU and what predicts it, shape (n_imus, n_joints)."""
    between = np.zeros((len(source), len(robot.joint_names)), dtype=bool)
    beyond = subtrees(robot)
    for child, link in enumerate(robot.links):
        if link.joint >= 0:
            is_beyond = np.isin(links, list(beyond[child]))
            between[:, link.joint] = is_beyond[: len(source)] != is_beyond[source]
    return between


def _apply(matrix: Array, six: Array) -> Array:
    """Return the product of stacks of matrices and of vectors."""
    return np.asarray((matrix @ six[..., None])[..., 0], dtype=np.float64)


def _cross(v: Array, w: Array) -> Array:
    """Return the cross product of stacks of motions."""
    return _apply(motion_cross(v), w)
