# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Dynamics of a floating robot, about any base and in any representation [T chapter 3].

A is inertial, with the axes in which ``robot.gravity`` is given; G has its axes and the origin at
the centre of mass. FT sensors are rigid. Pinocchio gives equations and Jacobians in the
left-trivialised variables of the root link; all others follow by the maps of the thesis
[T sections 3.5-3.9]. The estimators do not use this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.errors import ModelError
from inertial_estimation.model.arguments import numbers, pose_matrix
from inertial_estimation.model.inertia import parameters_of
from inertial_estimation.model.pinocchio_model import free_floating_model, supports
from inertial_estimation.model.representations import (
    Representation,
    gravity_acceleration,
    pose_of_base,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, inverse_pose, motion_cross, motion_transform

LEAST_RATIO = 1e-12
"""Principal moments below this part of the moments about the root link count as zero."""


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
    def momentum(self) -> Array:
        """Momentum of the robot in the frame C of the base velocity, C_h, (6,) [T 3.56]."""
        return np.asarray(self.mass_matrix[:6] @ self.velocity)

    def inverse_dynamics(self, acceleration: Array) -> Array:
        """Return the generalised forces of a motion [T 3.57]."""
        bias = self.coriolis_matrix @ self.velocity + self.gravity_forces
        return np.asarray(self.mass_matrix @ acceleration + bias)

    def velocity_map(self, source: EquationsOfMotion) -> Array:
        """Return the matrix that takes the velocity in other variables to these [T 3.71]."""
        return np.asarray(self.T @ np.linalg.inv(source.T))

    def acceleration_from(self, source: EquationsOfMotion, acceleration: Array) -> Array:
        """Return an acceleration given in other variables in these [T 3.99]."""
        T_inverse = np.linalg.inv(source.T)
        root_velocity = T_inverse @ source.velocity
        root_acceleration = T_inverse @ (acceleration - source.T_rate @ root_velocity)
        return np.asarray(self.T @ root_acceleration + self.T_rate @ root_velocity)

    def forces_from(self, source: EquationsOfMotion, forces: Array) -> Array:
        """Return generalised forces given in other variables in these [T 3.72]."""
        return np.asarray(source.velocity_map(self).T @ forces)

    def change_base_rows(self, J: Array, J_rate: Array) -> EquationsOfMotion:
        """Return the equations in other base variables; J, J_rate (6, 6 + n) [T 3.58-3.60]."""
        T, T_rate = np.eye(self.velocity.size), np.zeros_like(self.mass_matrix)
        T[:6], T_rate[:6] = J, J_rate
        inverse = np.linalg.inv(T)
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


class FreeFloatingModel:
    """
    A robot and its model in Pinocchio; `state` gives it position and velocity.

    Parameters
    ----------
    robot : Robot
        Links, joints, inertial parameters and gravity.

    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model = free_floating_model(robot)
        self._joint_of, self._J_H_L = supports(robot)

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
        NameNotFound
            If the robot has no such frame.
        ShapeError, ModelError
            If an array has the wrong shape, or the pose no rotation in it.

        """
        n = len(self.robot.joint_names)
        s, s_rate = numbers('positions', positions, (n,)), numbers('velocities', velocities, (n,))
        A_H_B = np.array(pose_matrix('A_H_B', np.eye(4) if A_H_B is None else A_H_B))
        A_H_B[:3, :3] = Rotation.from_matrix(A_H_B[:3, :3]).as_matrix()
        v = np.zeros(6) if base_velocity is None else base_velocity
        v = numbers('base_velocity', v, (6,))
        # The base seen from the root at rest, which gives the pose and the velocity of the root.
        at_rest = State(self, np.eye(4), s, np.concatenate([np.zeros(6), s_rate]))
        frame = base or self.robot.link_names[0]
        root_H_B = at_rest.pose(frame)
        B_H_C = inverse_pose(pose_of_base(A_H_B, representation))
        B_v = motion_transform(B_H_C) @ v
        B_v -= at_rest.velocity(frame, Representation.LEFT)
        root_velocity = motion_transform(root_H_B) @ B_v
        return State(
            self, A_H_B @ inverse_pose(root_H_B), s, np.concatenate([root_velocity, s_rate])
        )

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
        self._data = model.model.createData()
        pin.computeJointJacobiansTimeVariation(model.model, self._data, q, self.root_velocity)
        self._q = q

    def pose(self, frame: str = '') -> Array:
        """Return the pose of a frame, (4, 4) [m] [T 3.46]."""
        joint, J_H_F = self.model.locate(frame)
        return np.asarray(self._data.oMi[joint].homogeneous @ J_H_F)

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
        J, J_rate = self._base_rows(frame, representation)
        found = J @ root + J_rate @ self.root_velocity
        if representation is Representation.SENSOR:
            v = J @ self.root_velocity
            found[:3] += cross(v[3:], v[:3])
        return np.asarray(found)

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
        if representation is Representation.SENSOR:
            raise ModelError('the sensor acceleration is the rate of no velocity; take LEFT')
        return self._root_equations.change_base_rows(*self._base_rows(base, representation))

    @cached_property
    def _root_equations(self) -> EquationsOfMotion:
        """Return the equations in the left-trivialised variables of the root link [T 3.63]."""
        model, n = self.model.model, self.root_velocity.size
        data = model.createData()
        upper = np.triu(pin.crba(model, data, self._q))
        mass_matrix = upper + np.triu(upper, 1).T
        C = pin.computeCoriolisMatrix(model, data, self._q, self.root_velocity)
        fall = np.zeros(n)
        fall[:6] = gravity_acceleration(self.pose(), self.model.robot.gravity)
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
        joint, J_H_F = self.model.locate(frame)
        given = self.model.model, self._data, joint, pin.LOCAL
        F_X_J = motion_transform(inverse_pose(J_H_F))
        J = F_X_J @ pin.getJointJacobian(*given)
        J_rate = F_X_J @ pin.getJointJacobianTimeVariation(*given)
        C_X_F = motion_transform(pose_of_base(self.pose(frame), representation))
        # Velocity of the frame as seen from C: all of it, its rotation, or nothing.
        v = np.zeros(6)
        if representation is Representation.RIGHT:
            v = J @ self.root_velocity
        elif representation is Representation.MIXED:
            v[3:] = J[3:] @ self.root_velocity
        return C_X_F @ J, C_X_F @ (motion_cross(v) @ J + J_rate)


@dataclass(frozen=True, eq=False)
class Centroidal:
    """The whole robot with all joints locked; all arrays are read-only."""

    mass: float
    """Total [kg]."""
    com: Array
    """Centre of mass in A, shape (3,) [m] [T 3.53]."""
    com_velocity: Array
    """Its rate, shape (3,) [m/s]."""
    inertia: Array
    """
    Locked inertia G_I, shape (6, 6): mass, zeros, and the 3 x 3 inertia about the centre of mass
    in the axes of A [T 3.83, 3.84].
    """
    momentum: Array
    """G_h, shape (6,) [N s, Nm s] [T 3.83, 3.84]."""


def centroidal(state: State) -> Centroidal:
    """Return mass, centre of mass, locked inertia and momentum [T 3.83, 3.84]."""
    mixed = state.equations('', Representation.MIXED)
    mass, com = _mass_and_com(mixed)
    G_Xf_B = motion_transform(_pose_at(com)).T
    momentum = G_Xf_B @ mixed.momentum
    return Centroidal(
        mass=mass,
        com=read_only(state.pose()[:3, 3] + com),
        com_velocity=read_only(momentum[:3] / mass),
        inertia=read_only(G_Xf_B @ mixed.mass_matrix[:6, :6] @ G_Xf_B.T),
        momentum=read_only(momentum),
    )


def average_equations(state: State) -> EquationsOfMotion:
    """
    Return the equations with the average velocity of the robot as base velocity [T 3.92-3.98].
    """
    mixed = state.equations('', Representation.MIXED)
    mass, com = _mass_and_com(mixed)
    M = mixed.mass_matrix[:6]
    # The property of the Coriolis matrix gives the rate of the mass matrix.
    M_rate = (mixed.coriolis_matrix + mixed.coriolis_matrix.T)[:6]
    moments = np.linalg.eigvalsh(centroidal(state).inertia[3:, 3:])
    if not np.abs(moments).min() > LEAST_RATIO * np.trace(M[3:, 3:6]):
        raise ModelError(f'no average angular velocity: principal moments {moments} kg m^2')
    # The average velocity as seen from B[A], then from G, which B[A] leaves without turning.
    J = np.linalg.solve(M[:, :6], M)
    J_rate = np.linalg.solve(M[:, :6], M_rate - M_rate[:, :6] @ J)
    v = np.zeros(6)
    v[:3] = mixed.velocity[:3] - mixed.momentum[:3] / mass
    G_X_B = motion_transform(_pose_at(-com))
    return mixed.change_base_rows(G_X_B @ J, G_X_B @ (motion_cross(v) @ J + J_rate))


def _mass_and_com(mixed: EquationsOfMotion) -> tuple[float, Array]:
    """Return total mass and the centre of mass in B[A], from the locked inertia [T 3.54]."""
    parameters = parameters_of(mixed.mass_matrix[:6, :6])
    if not parameters[0] > 0.0:
        raise ModelError(f'the robot has a mass of {parameters[0]:g} kg: no centre of mass')
    return float(parameters[0]), parameters[1:4] / parameters[0]


def _pose_at(origin: Array) -> Array:
    """Return the pose of a frame that is not turned."""
    pose = np.eye(4)
    pose[:3, 3] = origin
    return pose
