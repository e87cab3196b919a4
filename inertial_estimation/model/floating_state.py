# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A floating robot in motion: where its frames are, how they move, its equations of motion.

Pinocchio gives poses and Jacobians of the left-trivialised variables of the root link; all other
variables follow by the maps of the thesis [T sections 3.5-3.8].
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.equations_of_motion import EquationsOfMotion
from inertial_estimation.model.representations import (
    Representation,
    as_representation,
    convert_acceleration,
    gravity_acceleration,
    pose_of_base,
)
from inertial_estimation.model.rigid_body import coriolis_matrix
from inertial_estimation.model.sensors import read_only
from inertial_estimation.model.spatial import inverse_pose, motion_cross, motion_transform

if TYPE_CHECKING:
    from inertial_estimation.model.free_floating import FreeFloating

Array = NDArray[np.float64]


class State:
    """
    A robot in motion; build one with `FreeFloating.state`.

    A_H_root (4, 4) [m]; positions (n_joints,) [rad or m]; root_velocity (6 + n_joints,).
    """

    def __init__(
        self, model: FreeFloating, A_H_root: Array, positions: Array, root_velocity: Array
    ) -> None:
        self.model = model
        self.positions = read_only(positions)
        self.root_velocity = read_only(root_velocity)
        q = np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(A_H_root)), positions])
        data = model.model.createData()
        pin.computeJointJacobiansTimeVariation(model.model, data, q, self.root_velocity)
        joints = range(1, model.model.njoints)
        args = [(model.model, data, j, pin.LOCAL) for j in joints]
        self._A_H_J = np.array([pose.homogeneous for pose in data.oMi])
        # Entry 0 is the world, so that joints keep Pinocchio's indices.
        zero = np.zeros((6, model.model.nv))
        self._J = np.array([zero, *(pin.getJointJacobian(*a) for a in args)])
        self._J_rate = np.array([zero, *(pin.getJointJacobianTimeVariation(*a) for a in args)])

    def pose(self, frame: str = '') -> Array:
        """
        Return the pose of a frame [T 3.46].

        Returns (4, 4) [m].
        """
        joint, J_H_F = self.model.locate(frame)
        return np.asarray(self._A_H_J[joint] @ J_H_F, dtype=np.float64)

    def velocity(
        self, frame: str = '', representation: Representation = Representation.MIXED
    ) -> Array:
        """
        Return the velocity of a frame [T 3.47].

        Returns (6,) [m/s, rad/s].
        """
        return np.asarray(self._base_rows(frame, representation)[0] @ self.root_velocity)

    def acceleration(
        self,
        frame: str,
        variables: EquationsOfMotion,
        acceleration: Array,
        representation: Representation = Representation.MIXED,
    ) -> Array:
        """
        Return the acceleration of a frame [T Table 2.2].

        acceleration (6 + n_joints,); returns (6,) [m/s^2, rad/s^2].
        """
        root = self._root_equations.acceleration_from(variables, acceleration)
        J, J_rate = self._base_rows(frame, Representation.LEFT)
        left = J @ root + J_rate @ self.root_velocity
        v, A_H_F = J @ self.root_velocity, self.pose(frame)
        return convert_acceleration(left, v, A_H_F, Representation.LEFT, representation)

    def jacobian(
        self,
        frame: str,
        variables: EquationsOfMotion,
        representation: Representation = Representation.MIXED,
    ) -> Array:
        """
        Return the Jacobian of a frame [T 3.47, 3.67, 3.70].

        Returns (6, 6 + n_joints).
        """
        to_root = self._root_equations.velocity_map(variables)
        return np.asarray(self._base_rows(frame, representation)[0] @ to_root)

    def equations(
        self, base: str = '', representation: Representation = Representation.MIXED
    ) -> EquationsOfMotion:
        """Return the equations of motion about a base [T 3.62-3.78]."""
        representation = as_representation(representation)
        if representation is Representation.SENSOR:
            raise ModelError(
                'equations of motion need a velocity whose rate is the acceleration, and the '
                'sensor acceleration is not one; take LEFT, or FreeFloating.proper_dynamics'
            )
        return self._root_equations.change_base_rows(*self._base_rows(base, representation))

    @cached_property
    def _root_equations(self) -> EquationsOfMotion:
        """Return the equations in the left-trivialised variables of the root link [T 3.63]."""
        J, M = self._J, self.model.inertias
        J_T = np.swapaxes(J, -1, -2)
        N = coriolis_matrix(M, J @ self.root_velocity)
        mass_matrix = (J_T @ M @ J).sum(axis=0)
        C = (J_T @ (M @ self._J_rate + N @ J)).sum(axis=0)
        fall = np.zeros(self.root_velocity.size)
        fall[:6] = gravity_acceleration(self.pose(), self.model.robot.gravity, Representation.LEFT)
        n = self.root_velocity.size
        return EquationsOfMotion(
            velocity=self.root_velocity,
            mass_matrix=read_only(mass_matrix),
            coriolis_matrix=read_only(C),
            gravity_forces=read_only(-mass_matrix @ fall),
            T=read_only(np.eye(n)),
            T_rate=read_only(np.zeros((n, n))),
        )

    def _base_rows(self, frame: str, representation: Representation) -> tuple[Array, Array]:
        """Return the Jacobian of a frame in the variables of the root, and its rate [T 3.47]."""
        representation = as_representation(representation)
        joint, J_H_F = self.model.locate(frame)
        F_X_J = motion_transform(inverse_pose(J_H_F))
        J, J_rate = F_X_J @ self._J[joint], F_X_J @ self._J_rate[joint]
        C_H_F = pose_of_base(self._A_H_J[joint] @ J_H_F, representation)
        C_X_F = motion_transform(C_H_F)
        # Velocity of the frame as seen from C: all of it, its rotation, or nothing.
        v = np.zeros(6)
        if representation is Representation.RIGHT:
            v = J @ self.root_velocity
        elif representation is Representation.MIXED:
            v[3:] = J[3:] @ self.root_velocity
        return C_X_F @ J, C_X_F @ (motion_cross(v) @ J + J_rate)
