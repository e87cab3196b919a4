# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""True state, wrenches and torques of the simulated robot at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross
from inertial_estimation.sample import Sample
from inertial_estimation.simulation.description import demo_package


class Snapshot(NamedTuple):
    """
    True values of one instant.

    Rows follow ``joint_names``, ``imu_names``, ``ft_names`` and ``contact_frames`` of the robot.
    The accelerations are those that the forces cause.
    """

    time_ns: int
    """Time since the start of the scenario [ns]."""
    positions: Array
    """Joint positions, shape (n_joints,) [rad]."""
    velocities: Array
    """Joint velocities, shape (n_joints,) [rad/s]."""
    accelerations: Array
    """Joint accelerations, shape (n_joints,) [rad/s^2]."""
    torques: Array
    """Torque through each joint on the link beyond it (T 4.22), shape (n_joints,) [Nm]."""
    angular_velocities: Array
    """Angular velocity of each IMU in its own axes, shape (n_imus, 3) [rad/s]."""
    proper_accelerations: Array
    """Acceleration minus gravity of each IMU in its own axes, shape (n_imus, 3) [m/s^2]."""
    angular_accelerations: Array
    """Angular acceleration of each IMU in its own axes, shape (n_imus, 3) [rad/s^2]."""
    ft_wrenches: Array
    """Reading of each FT sensor without error, in and about its frame, (n_fts, 6) [N, Nm]."""
    external_wrenches: Array
    """Sum of pushes, ground and pole on the submodel of each frame, (n_contacts, 6) [N, Nm]."""
    W_H_B: Array
    """Pose of the root link in the world, shape (4, 4) [m]."""

    def sample(self) -> Sample:
        """Return readings without error, accelerations included."""
        return Sample(
            self.time_ns, self.positions, self.velocities, self.accelerations,
            self.angular_velocities, self.proper_accelerations, self.angular_accelerations,
            self.ft_wrenches, efforts=self.torques,
        )  # fmt: skip


class TruthReader:
    """Reads snapshots of one robot."""

    def __init__(
        self, model: Any, robot: Robot, imus: Sequence[str], contacts: Sequence[str]
    ) -> None:
        constraint = demo_package('mujoco').mjtConstraint
        self._friction = int(constraint.mjCNSTR_FRICTION_DOF)
        self._limit = int(constraint.mjCNSTR_LIMIT_JOINT)
        self._root = model.body(robot.link_names[0]).id
        self._joints = slice(-model.nu, None)
        self._rotor_inertias = model.dof_armature[self._joints].copy()
        self._signs = np.array([[sensor.direction] for sensor in robot.ft_sensors])
        self._imus = np.array([model.site(f'imu/{name}').id for name in imus], int)
        self._contacts = np.array([model.site(f'frame/{frame}').id for frame in contacts], int)
        self._members = self._membership(model, robot, contacts)
        self._held = bool(model.nq == model.nu)

    def _membership(self, model: Any, robot: Robot, contacts: Sequence[str]) -> Array:
        """Return the bodies of the submodel of each contact, shape (n_contacts, n_bodies)."""
        tops = {model.body(submodel.name).id for submodel in robot.submodels}
        submodel = np.arange(model.nbody)
        for body in range(1, model.nbody):
            if body not in tops:
                submodel[body] = submodel[model.body_parentid[body]]
        own = submodel[model.site_bodyid[self._contacts]]
        if sorted(own) != sorted(tops):
            raise ConfigError(
                f'contacts {list(contacts)} lie in the submodels of '
                f'{[model.body(body).name for body in own]}; name one link in each of '
                f'{[model.body(body).name for body in sorted(tops)]}'
            )
        return np.asarray(own[:, None] == submodel[None, :], float)

    def read(self, data: Any, time_ns: int) -> Snapshot:
        """Return the snapshot of an instant."""
        fts, values = len(self._signs), data.sensordata.reshape(-1, 3)
        # The engine gives the action of the parent on the child.
        ft_wrenches = -self._signs * np.hstack([values[:fts], values[fts : 2 * fts]])
        gyroscopes, accelerometers, world_angular = values[2 * fts :].reshape(3, -1, 3).copy()
        W_R_S = data.site_xmat[self._imus].reshape(-1, 3, 3)
        W_H_B = np.eye(4)
        W_H_B[:3, :3], W_H_B[:3, 3] = data.xmat[self._root].reshape(3, 3), data.xpos[self._root]
        return Snapshot(
            time_ns=time_ns,
            positions=data.qpos[self._joints].copy(),
            velocities=data.qvel[self._joints].copy(),
            accelerations=data.qacc[self._joints].copy(),
            torques=self._torques(data),
            angular_velocities=gyroscopes,
            proper_accelerations=accelerometers,
            angular_accelerations=_rotated_back(W_R_S, world_angular),
            ft_wrenches=ft_wrenches,
            external_wrenches=self._external_wrenches(data),
            W_H_B=W_H_B,
        )

    def _torques(self, data: Any) -> Array:
        """Return the torques that reach the links, shape (n_joints,) [Nm]."""
        joints = self._joints
        torques = data.qfrc_actuator[joints] + data.qfrc_passive[joints]
        torques -= self._rotor_inertias * data.qacc[joints]
        kinds = data.efc_type
        rows = (kinds == self._friction) | (kinds == self._limit)
        if rows.any():
            jacobian = data.efc_J.reshape(rows.size, -1)[rows, joints]
            torques += data.efc_force[rows] @ jacobian
        return np.asarray(torques)

    def _external_wrenches(self, data: Any) -> Array:
        """Return the wrenches in the contact frames, shape (n_contacts, 6) [N, Nm]."""
        # World axes, moment first, about the robot's centre of mass.
        bodies = data.cfrc_ext.copy()
        if self._held:
            bodies[self._root] += data.cfrc_int[self._root]
        moments, forces = np.hsplit(self._members @ bodies, 2)
        arms = data.subtree_com[self._root] - data.site_xpos[self._contacts]
        W_R_C = data.site_xmat[self._contacts].reshape(-1, 3, 3)
        moments = moments + cross(arms, forces)
        return np.hstack([_rotated_back(W_R_C, forces), _rotated_back(W_R_C, moments)])


def _rotated_back(A_R_B: Array, A_vectors: Array) -> Array:
    """Return vectors of A in the axes of B, shape (n, 3), from n rotations (n, 3, 3)."""
    return np.asarray(np.einsum('nji,nj->ni', A_R_B, A_vectors))
