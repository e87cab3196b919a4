# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bodies and robots in random motion, and the same a moment later."""

from __future__ import annotations

import numpy as np
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from inertial_estimation.model.free_floating import FreeFloatingModel, State
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec

ONE_LINK = (
    '<robot name="one_link"><link name="only"><inertial>'
    '<origin xyz="0.02 -0.01 0.1" rpy="0.1 0.2 0.3"/><mass value="2.0"/>'
    '<inertia ixx="0.04" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.02"/>'
    '</inertial></link></robot>'
)
ROBOTS = {
    'one_link': Robot.from_urdf(ONE_LINK),
    'two_link': Robot.from_urdf(two_link_urdf()),
    # One FT sensor behind the other.
    'arm': Robot.from_urdf(
        arm_with_wrist_sensor_urdf(),
        ft_sensors=['wrist_sensor', FtSpec('tip_sensor', 'tip_joint')],
        gravity=(1.0, -2.0, -9.0),
    ),
    'nested_humanoid': Robot.from_urdf(nested_humanoid_urdf()),
}
FORMS = (Representation.LEFT, Representation.RIGHT, Representation.MIXED)
STEP = 1e-5
"""Of central differences [s]; their error is step^2 of a third derivative and round-off / step."""


def random_pose(rng: np.random.Generator) -> np.ndarray:
    """Return a pose with any rotation, its origin within metres."""
    H = np.eye(4)
    H[:3, :3] = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
    H[:3, 3] = rng.uniform(-2.0, 2.0, 3)
    return H


def random_state(robot: Robot, rng: np.random.Generator) -> State:
    """Return a robot that moves fast, seen from its root."""
    n = len(robot.joint_names)
    return FreeFloatingModel(robot).state(
        rng.uniform(-1.5, 1.5, n),
        rng.normal(0.0, 2.0, n),
        random_pose(rng),
        rng.normal(0.0, 1.5, 6),
    )


def after(state: State, time: float, root_acceleration: np.ndarray | None = None) -> State:
    """
    Return the state a short time later, exact to second order in time.

    The left-trivialised acceleration of the root and those of the joints stay the same; without
    them the velocities do.
    """
    a = np.zeros_like(state.root_velocity) if root_acceleration is None else root_acceleration
    mean = state.root_velocity + a * time / 2
    twist = np.zeros((4, 4))
    twist[:3, :3] = np.cross(np.eye(3), mean[3:6])
    twist[:3, 3] = mean[:3]
    return State(
        state.model,
        state.pose() @ expm(twist * time),
        state.positions + mean[6:] * time,
        state.root_velocity + a * time,
    )


def rate(function, state: State, root_acceleration: np.ndarray | None = None) -> np.ndarray:
    """Return the rate of a function of the state by central differences."""
    later, before = (after(state, sign * STEP, root_acceleration) for sign in (1, -1))
    return (np.asarray(function(later)) - np.asarray(function(before))) / (2 * STEP)
