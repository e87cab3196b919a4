# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Dynamics of a floating robot, about any base and in any representation [T chapter 3].

A is inertial, with the axes in which ``robot.gravity`` is given. FT sensors are rigid. Pinocchio
gives poses and Jacobians of the left-trivialised variables of the root link; all other variables
follow by the maps of the thesis [T sections 3.5-3.8]. The estimators do not use this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.pinocchio_model import (
    carried_inertias,
    free_floating_model,
    supports,
)
from inertial_estimation.model.representations import (
    Representation,
    as_representation,
    convert_acceleration,
    convert_velocity,
    coriolis_matrix,
    gravity_acceleration,
    pose_of_base,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import read_only
from inertial_estimation.model.spatial import inverse_pose, motion_cross, motion_transform

SAME_POSE = 1e-5
"""Rotations that are closer to orthonormal than this are taken and made orthonormal."""


@dataclass(frozen=True, eq=False)
class EquationsOfMotion:
    """
    Equations of motion in one choice of base variables, and the way to another [T section 3.6].

        mass_matrix @ acceleration + coriolis_matrix @ velocity + gravity_forces
            = [0; joint torques] + sum over the contacts of jacobian.T @ wrench        [T 3.57]

    Velocities, accelerations and forces are (6 + n_joints,), [base; joints]. Choices differ in
    the base rows only: the base link, the representation of its velocity, or the average velocity
    of the robot in its place. All arrays are read-only.
    """

    velocity: Array
    mass_matrix: Array
    """Symmetric [T 3.63a]."""
    coriolis_matrix: Array
    """Twice it, taken from the rate of the mass matrix, leaves a skew matrix [T 3.63b]."""
    gravity_forces: Array
    """Minus the weight [T 3.63c]."""
    T: Array
    """Takes the velocity in root variables to this one [T 3.58f]."""
    T_rate: Array

    @property
    def momentum_matrix(self) -> Array:
        """Takes the velocity to the momentum, shape (6, 6 + n) [T 3.56]."""
        return self.mass_matrix[:6]

    @property
    def momentum(self) -> Array:
        """Momentum of the robot in the frame C of the base velocity, C_h, (6,) [N s, Nm s]."""
        return np.asarray(self.momentum_matrix @ self.velocity, dtype=np.float64)

    @property
    def kinetic_energy(self) -> float:
        """The same in all variables [J] [T 3.61]."""
        return float(self.velocity @ self.mass_matrix @ self.velocity) / 2

    def inverse_dynamics(self, acceleration: Array) -> Array:
        """Return the generalised forces of a motion [T 3.57]."""
        acceleration = self._checked('acceleration', acceleration)
        return np.asarray(
            self.mass_matrix @ acceleration
            + self.coriolis_matrix @ self.velocity
            + self.gravity_forces,
            dtype=np.float64,
        )

    def velocity_map(self, source: EquationsOfMotion) -> Array:
        """Return the matrix that takes the velocity in other variables to these [T 3.71]."""
        return np.asarray(self.T @ _inverse(source.T), dtype=np.float64)

    def acceleration_from(self, source: EquationsOfMotion, acceleration: Array) -> Array:
        """Return an acceleration given in other variables in these [T 3.99]."""
        T_inverse = _inverse(source.T)
        root_velocity = T_inverse @ source.velocity
        given = self._checked('acceleration', acceleration)
        root_acceleration = T_inverse @ (given - source.T_rate @ root_velocity)
        return np.asarray(self.T @ root_acceleration + self.T_rate @ root_velocity)

    def forces_from(self, source: EquationsOfMotion, forces: Array) -> Array:
        """Return generalised forces given in other variables in these [T 3.72]."""
        return np.asarray(source.velocity_map(self).T @ self._checked('forces', forces))

    def change_base_rows(self, J: Array, J_rate: Array) -> EquationsOfMotion:
        """Return the equations in other base variables; J, J_rate (6, 6 + n) [T 3.58-3.60]."""
        T = np.eye(self.velocity.size)
        T[:6] = J
        T_rate = np.zeros_like(T)
        T_rate[:6] = J_rate
        inverse = _inverse(T)
        inverse_rate = -inverse @ T_rate @ inverse
        C = inverse.T @ (self.mass_matrix @ inverse_rate + self.coriolis_matrix @ inverse)
        return EquationsOfMotion(
            velocity=read_only(T @ self.velocity),
            mass_matrix=read_only(inverse.T @ self.mass_matrix @ inverse),
            coriolis_matrix=read_only(C),
            gravity_forces=read_only(inverse.T @ self.gravity_forces),
            T=read_only(T @ self.T),
            T_rate=read_only(T_rate @ self.T + T @ self.T_rate),
        )

    def _checked(self, name: str, values: Array) -> Array:
        return numbers(name, values, self.velocity.shape, finite=False)


def _inverse(T: Array) -> Array:
    """Return the inverse of a matrix that is the identity below its first six rows."""
    inverse = np.eye(len(T))
    inverse[:6, :6] = np.linalg.inv(T[:6, :6])
    inverse[:6, 6:] = -inverse[:6, :6] @ T[:6, 6:]
    return inverse


class FreeFloatingModel:
    """
    A robot and its model in Pinocchio; `state` gives it position and velocity.

    Parameters
    ----------
    robot : Robot
        Links, joints, inertial parameters (any numbers) and gravity.

    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model = free_floating_model(robot)
        self._joint_of, self._J_H_L = where = supports(robot)
        self.inertias = read_only(carried_inertias(robot, where))

    def state(
        self,
        positions: Array,
        velocities: Array,
        A_H_B: Array | None = None,
        base_velocity: Array | None = None,
        *,
        base: str = '',
        representation: Representation = Representation.MIXED,
    ) -> State:
        """
        Return the robot in motion.

        Parameters
        ----------
        positions, velocities : ndarray, shape (n_joints,)
            Of the joints [rad or m; rad/s or m/s].
        A_H_B : ndarray, shape (4, 4), optional
            Pose of the base [m]. Default: the identity.
        base_velocity : ndarray, shape (6,), optional
            Of the base [m/s, rad/s]. Default: at rest.
        base : str, optional
            Any frame of the robot. Default: the root link.
        representation : Representation
            Form of the base velocity.

        Returns
        -------
        State

        Raises
        ------
        FrameNotFound
            If the robot has no such frame.
        ModelError
            If the pose is none.
        ShapeError
            If an array has the wrong shape.

        """
        n = len(self.robot.joint_names)
        s, s_rate = _shaped('positions', positions, n), _shaped('velocities', velocities, n)
        A_H_B = _pose(np.eye(4) if A_H_B is None else A_H_B)
        v = _shaped('base_velocity', np.zeros(6) if base_velocity is None else base_velocity, 6)
        representation = as_representation(representation)
        # The base seen from the root at rest, which gives the pose and the velocity of the root.
        at_rest = State(self, np.eye(4), s, np.concatenate([np.zeros(6), s_rate]))
        frame = base or self.robot.link_names[0]
        root_H_B = at_rest.pose(frame)
        B_v = convert_velocity(v, A_H_B, representation, Representation.LEFT)
        B_v -= at_rest.velocity(frame, Representation.LEFT)
        root_velocity = motion_transform(root_H_B) @ B_v
        return State(
            self, A_H_B @ inverse_pose(root_H_B), s, np.concatenate([root_velocity, s_rate])
        )

    def proper_dynamics(
        self,
        positions: Array,
        velocities: Array,
        accelerations: Array,
        angular_velocity: Array,
        proper_acceleration: Array,
        *,
        base: str = '',
    ) -> Array:
        """
        Return the generalised forces from the readings of joint sensors and an IMU [T 3.64].

        Parameters
        ----------
        positions, velocities, accelerations : ndarray, shape (n_joints,)
            Of the joints.
        angular_velocity : ndarray, shape (3,)
            Of the base, in its axes [rad/s].
        proper_acceleration : ndarray, shape (6,)
            Proper sensor acceleration of the base [m/s^2, rad/s^2].
        base : str, optional
            Any frame of the robot. Default: the root link.

        Returns
        -------
        ndarray, shape (6 + n_joints,)
            In the left-trivialised variables of the base [N, Nm].

        """
        left = Representation.LEFT
        v = np.concatenate([np.zeros(3), _shaped('angular_velocity', angular_velocity, 3)])
        state = self.state(positions, velocities, None, v, base=base, representation=left)
        equations = state.equations(base, left)
        n = len(self.robot.joint_names)
        proper = _shaped('proper_acceleration', proper_acceleration, 6)
        acceleration = np.concatenate([proper, _shaped('accelerations', accelerations, n)])
        return equations.inverse_dynamics(acceleration) - equations.gravity_forces

    def locate(self, frame: str) -> tuple[int, Array]:
        """Return the joint of `model` that carries a frame, and the pose in it, (4, 4)."""
        link, L_H_F = self.robot.frame(frame) if frame else (0, np.eye(4))
        return int(self._joint_of[link]), np.asarray(self._J_H_L[link] @ L_H_F)


class State:
    """
    A robot in motion; build one with `FreeFloatingModel.state`.

    A_H_root (4, 4) [m]; positions (n_joints,) [rad or m]; root_velocity (6 + n_joints,). Of a
    frame, '' stands for the root link.
    """

    def __init__(
        self, model: FreeFloatingModel, A_H_root: Array, positions: Array, root_velocity: Array
    ) -> None:
        self.model = model
        self.positions = read_only(positions)
        self.root_velocity = read_only(root_velocity)
        q = np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(A_H_root)), positions])
        data = model.model.createData()
        pin.computeJointJacobiansTimeVariation(model.model, data, q, self.root_velocity)
        args = [(model.model, data, j, pin.LOCAL) for j in range(1, model.model.njoints)]
        self._A_H_J = np.array([pose.homogeneous for pose in data.oMi])
        # Entry 0 is the world, so that joints keep Pinocchio's indices.
        zero = np.zeros((6, model.model.nv))
        self._J = np.array([zero, *(pin.getJointJacobian(*a) for a in args)])
        self._J_rate = np.array([zero, *(pin.getJointJacobianTimeVariation(*a) for a in args)])

    def pose(self, frame: str = '') -> Array:
        """Return the pose of a frame, (4, 4) [m] [T 3.46]."""
        joint, J_H_F = self.model.locate(frame)
        return np.asarray(self._A_H_J[joint] @ J_H_F, dtype=np.float64)

    def velocity(
        self, frame: str = '', representation: Representation = Representation.MIXED
    ) -> Array:
        """Return the velocity of a frame, (6,) [m/s, rad/s] [T 3.47]."""
        return np.asarray(self._base_rows(frame, representation)[0] @ self.root_velocity)

    def acceleration(
        self,
        frame: str,
        variables: EquationsOfMotion,
        acceleration: Array,
        representation: Representation = Representation.MIXED,
    ) -> Array:
        """Return the acceleration of a frame, (6,) [m/s^2, rad/s^2] [T Table 2.2]."""
        root = self._root_equations.acceleration_from(variables, acceleration)
        J, J_rate = self._base_rows(frame, Representation.LEFT)
        left = J @ root + J_rate @ self.root_velocity
        v, A_H_F = J @ self.root_velocity, self.pose(frame)
        wanted = as_representation(representation)
        return convert_acceleration(left, v, A_H_F, Representation.LEFT, wanted)

    def jacobian(
        self,
        frame: str,
        variables: EquationsOfMotion,
        representation: Representation = Representation.MIXED,
    ) -> Array:
        """Return the Jacobian of a frame, (6, 6 + n_joints) [T 3.47, 3.67, 3.70]."""
        to_root = self._root_equations.velocity_map(variables)
        return np.asarray(self._base_rows(frame, representation)[0] @ to_root)

    def equations(
        self, base: str = '', representation: Representation = Representation.MIXED
    ) -> EquationsOfMotion:
        """Return the equations of motion about a base [T 3.62-3.78]."""
        if as_representation(representation) is Representation.SENSOR:
            raise ModelError(
                'equations of motion need a velocity whose rate is the acceleration, and the '
                'sensor acceleration is not one; take LEFT, or FreeFloatingModel.proper_dynamics'
            )
        return self._root_equations.change_base_rows(*self._base_rows(base, representation))

    @cached_property
    def _root_equations(self) -> EquationsOfMotion:
        """Return the equations in the left-trivialised variables of the root link [T 3.63]."""
        J, M, n = self._J, self.model.inertias, self.root_velocity.size
        J_T = np.swapaxes(J, -1, -2)
        N = coriolis_matrix(M, J @ self.root_velocity)
        mass_matrix = (J_T @ M @ J).sum(axis=0)
        C = (J_T @ (M @ self._J_rate + N @ J)).sum(axis=0)
        fall = np.zeros(n)
        fall[:6] = gravity_acceleration(self.pose(), self.model.robot.gravity, Representation.LEFT)
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
        C_X_F = motion_transform(pose_of_base(self._A_H_J[joint] @ J_H_F, representation))
        # Velocity of the frame as seen from C: all of it, its rotation, or nothing.
        v = np.zeros(6)
        if representation is Representation.RIGHT:
            v = J @ self.root_velocity
        elif representation is Representation.MIXED:
            v[3:] = J[3:] @ self.root_velocity
        return C_X_F @ J, C_X_F @ (motion_cross(v) @ J + J_rate)


def _shaped(name: str, values: Array, size: int) -> Array:
    return numbers(name, values, (size,), finite=False)


def _pose(A_H_B: Array) -> Array:
    """Return a pose with its rotation made orthonormal, or raise if it is none."""
    H = np.array(numbers('A_H_B', A_H_B, (4, 4), finite=False))
    R = H[:3, :3]
    off = np.abs(R.T @ R - np.eye(3)).max() if np.isfinite(H).all() else np.inf
    if off > SAME_POSE or np.linalg.det(R) < 0 or (H[3] != (0.0, 0.0, 0.0, 1.0)).any():
        raise ModelError(f'A_H_B is not the pose of a frame:\n{H}')
    left, _, right = np.linalg.svd(R)
    H[:3, :3] = left @ right
    return H
