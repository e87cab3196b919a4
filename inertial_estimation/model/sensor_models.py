# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensor models: from state and wrenches to readings without error [T section 4.3].

S is the frame of a sensor, L that of the link that carries it, A is inertial. The readings of
gyroscopes and accelerometers do not depend on the choice of A, nor do those of FT sensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import NameNotFound
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.free_floating import EquationsOfMotion, State
from inertial_estimation.model.representations import (
    Representation,
    gravity_acceleration,
    net_wrench,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor
from inertial_estimation.model.spatial import apply, inverse_pose, wrench_transform
from inertial_estimation.sample import Sample


class SensorModels:
    """
    The readings of the sensors of a robot at one instant.

    acceleration (6 + n_joints,) in these variables; wrenches (6,) in and about frames [N, Nm].
    """

    def __init__(
        self,
        state: State,
        variables: EquationsOfMotion,
        acceleration: Array,
        wrenches: Mapping[str, Array] | None = None,
    ) -> None:
        self.state, self._robot = state, state.model.robot
        self.variables = variables
        self.acceleration = numbers('acceleration', acceleration, variables.velocity.shape)
        self._wrenches = wrenches or {}

    @classmethod
    def floating(
        cls,
        state: State,
        joint_accelerations: Array,
        wrenches: Mapping[str, Array] | None = None,
    ) -> SensorModels:
        """
        Return the sensors of a robot under these wrenches alone [T 3.57].

        joint_accelerations (n_joints,) [rad/s^2 or m/s^2]; wrenches (6,) [N, Nm].
        """
        equations = state.equations('', Representation.LEFT)
        acceleration, pushed = np.concatenate([np.zeros(6), joint_accelerations]), np.zeros(6)
        for frame, wrench in (wrenches or {}).items():
            pushed += (state.jacobian(frame, equations, Representation.LEFT).T @ wrench)[:6]
        for _ in range(2):  # the second round takes away the round-off of the first
            lack = pushed - equations.inverse_dynamics(acceleration)[:6]
            acceleration[:6] += np.linalg.solve(equations.mass_matrix[:6, :6], lack)
        return cls(state, equations, acceleration, wrenches)

    def force_torque(self, sensor: FtSensor) -> Array:
        """
        Return the reading of an FT sensor, (6,), from the balance of one of its sides.

        See [T 4.1, 4.23].
        """
        fixed = self._robot.frame(self._robot.fixed_frame)[0] if self._robot.fixed_frame else 0
        beyond = np.zeros(len(self._robot.links), dtype=bool)
        for k, link in enumerate(self._robot.links):
            beyond[k] = k == sensor.child or (link.parent >= 0 and beyond[link.parent])
        # Parent on child: what moves the side of the child, or the opposite of the other one.
        side, sign = (~beyond, -1.0) if beyond[fixed] else (beyond, 1.0)
        root_f = sign * self._unexplained[side].sum(axis=0)
        S_H_root = inverse_pose(self._root_H_L[sensor.child] @ sensor.child_H_sensor)
        return np.asarray(-sensor.direction * wrench_transform(S_H_root) @ root_f)

    @property
    def reaction(self) -> Array:
        """Sum of all other wrenches that the motion takes, in the fixed or root frame [N, Nm]."""
        place = (0, np.eye(4))
        if self._robot.fixed_frame:
            place = self._robot.frame(self._robot.fixed_frame)
        frame_H_root = inverse_pose(self._root_H_L[place[0]] @ place[1])
        return np.asarray(wrench_transform(frame_H_root) @ self._unexplained.sum(axis=0))

    def sample(self, stamp_ns: int = 0) -> Sample:
        """Return the readings of all joint sensors, IMUs and FT sensors of the robot."""
        w, a = self._motions
        imus = np.empty((3, len(self._robot.imus), 3))
        for k, imu in enumerate(self._robot.imus):
            link, pose = imu.link, imu.L_H_S
            imus[0, k] = gyroscope(w[link], pose)
            imus[1, k] = accelerometer(w[link], a[link], pose)
            imus[2, k] = gyroscope(a[link, 3:], pose)
        return Sample(
            stamp_ns,
            np.array(self.state.positions),
            np.array(self.state.root_velocity[6:]),
            self.acceleration[6:].copy(),
            imus[0],
            imus[1],
            imus[2],
            np.array([self.force_torque(ft) for ft in self._robot.ft_sensors]).reshape(-1, 6),
        )

    @cached_property
    def _motions(self) -> tuple[Array, Array]:
        """Return angular velocities (n_links, 3), proper sensor accelerations (n_links, 6)."""
        state, form = self.state, Representation.SENSOR
        velocities, accelerations = [], []
        for name in self._robot.link_names:
            velocities.append(state.velocity(name, form)[3:])
            a = state.acceleration(name, self.variables, self.acceleration, form)
            fall = gravity_acceleration(state.pose(name), self._robot.gravity, form)
            accelerations.append(a - fall)
        return np.array(velocities), np.array(accelerations)

    @cached_property
    def _root_H_L(self) -> Array:
        """Return the poses of the links in the root link, shape (n_links, 4, 4) [m]."""
        poses = np.array([self.state.pose(name) for name in self._robot.link_names])
        return np.asarray(inverse_pose(poses[0]) @ poses)

    @cached_property
    def _unexplained(self) -> Array:
        """Return the net wrench of each link less the external ones, about the root (n, 6)."""
        net = net_wrench(self._robot.parameters, *self._motions)
        rows = apply(wrench_transform(self._root_H_L), net)
        for frame, wrench in self._wrenches.items():
            link, L_H_F = self._robot.frame(frame)
            rows[link] -= wrench_transform(self._root_H_L[link] @ L_H_F) @ wrench
        return rows


def find_ft(robot: Robot, given: str | FtSensor, where: str = '') -> FtSensor:
    """Return an FT sensor."""
    if not isinstance(given, str):
        return given
    known = {sensor.name: sensor for sensor in robot.ft_sensors}
    if given not in known:
        raise NameNotFound('FT sensor', given, known, where)
    return known[given]


def gyroscope(angular_velocity: Array, L_H_S: Array) -> Array:
    """Return the reading of a gyroscope on a link that turns, (..., 3) [rad/s] [T 4.3, 4.4]."""
    return np.asarray(angular_velocity @ L_H_S[:3, :3])


def accelerometer(angular_velocity: Array, proper_acceleration: Array, L_H_S: Array) -> Array:
    """
    Return the reading of an accelerometer on a link [T 4.2]: (4.11b) solved for the sensor.

    angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2, rad/s^2]; L_H_S (4, 4)
    [m]; returns (..., 3) [m/s^2].
    """
    arm, rate = L_H_S[:3, 3], proper_acceleration[..., 3:]
    turning = np.cross(rate, arm) + np.cross(angular_velocity, np.cross(angular_velocity, arm))
    return np.asarray((proper_acceleration[..., :3] + turning) @ L_H_S[:3, :3], dtype=np.float64)
