# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensor models: from state and wrenches to readings without error [T section 4.3].

S is the frame of a sensor, L that of the link that carries it, A is inertial. The readings of
gyroscopes and accelerometers do not depend on the choice of A, nor do those of FT sensors.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def floating_acceleration(
    state: State, joint_accelerations: Array, wrenches: Mapping[str, Array] | None = None
) -> Array:
    """
    Return the acceleration of a robot under these wrenches alone [T 3.57].

    joint_accelerations (n_joints,) [rad/s^2 or m/s^2]; wrenches (6,) in and about frames [N, Nm];
    returns (6 + n_joints,) in the left-trivialised variables of the root link.
    """
    equations = state.equations('', Representation.LEFT)
    acceleration, pushed = np.concatenate([np.zeros(6), joint_accelerations]), np.zeros(6)
    for frame, wrench in (wrenches or {}).items():
        pushed += (state.jacobian(frame, equations, Representation.LEFT).T @ wrench)[:6]
    for _ in range(2):  # the second round takes away the round-off of the first
        lack = pushed - equations.inverse_dynamics(acceleration)[:6]
        acceleration[:6] += np.linalg.solve(equations.mass_matrix[:6, :6], lack)
    return acceleration


def sensor_readings(
    state: State,
    variables: EquationsOfMotion,
    acceleration: Array,
    wrenches: Mapping[str, Array] | None = None,
) -> tuple[Sample, Array]:
    """
    Return the readings of all sensors of a robot, and the reaction that holds it [N, Nm].

    acceleration (6 + n_joints,) in these variables; wrenches (6,) in and about frames [N, Nm]. The
    reaction (6,) is the sum of all other wrenches that the motion takes, in the fixed frame or
    that of the root link; it is zero for a `floating_acceleration`.
    """
    robot, form = state.model.robot, Representation.SENSOR
    acceleration = numbers('acceleration', acceleration, variables.velocity.shape)
    poses = np.array([state.pose(name) for name in robot.link_names])
    w = np.array([state.velocity(name, form)[3:] for name in robot.link_names])
    a = [state.acceleration(name, variables, acceleration, form) for name in robot.link_names]
    proper = np.array(a) - gravity_acceleration(poses, robot.gravity)
    root_H_L = inverse_pose(poses[0]) @ poses
    # Net wrench of each link less the external ones, about the root.
    rows = apply(wrench_transform(root_H_L), net_wrench(robot.parameters, w, proper))
    for frame, wrench in (wrenches or {}).items():
        link, L_H_F = robot.frame(frame)
        rows[link] -= wrench_transform(root_H_L[link] @ L_H_F) @ wrench
    held, held_H_frame = robot.frame(robot.fixed_frame) if robot.fixed_frame else (0, np.eye(4))
    fts = []
    for sensor in robot.ft_sensors:
        # Parent on child: it moves the side of the child, or is held against by the other one.
        beyond = robot.carried[sensor.child]
        root_f = -rows[~beyond].sum(axis=0) if beyond[held] else rows[beyond].sum(axis=0)
        S_H_root = inverse_pose(root_H_L[sensor.child] @ sensor.child_H_sensor)
        fts.append(-sensor.direction * wrench_transform(S_H_root) @ root_f)
    imus = np.empty((3, len(robot.imus), 3))
    for k, imu in enumerate(robot.imus):
        imus[0, k] = gyroscope(w[imu.link], imu.L_H_S)
        imus[1, k] = accelerometer(w[imu.link], proper[imu.link], imu.L_H_S)
        imus[2, k] = gyroscope(proper[imu.link, 3:], imu.L_H_S)
    joints = np.array(state.positions), np.array(state.root_velocity[6:]), acceleration[6:].copy()
    reaction = wrench_transform(inverse_pose(root_H_L[held] @ held_H_frame)) @ rows.sum(axis=0)
    readings = imus[0], imus[1], imus[2], np.array(fts).reshape(-1, 6)
    return Sample(0, *joints, *readings), reaction


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
