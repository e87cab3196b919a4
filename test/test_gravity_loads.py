# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Joints that gravity never loads, against the torques that it wants of a robot at rest."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.model.regressor import joints_without_gravity
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor

# Of efforts of tens of Nm.
ROUND_OFF = 1e-9


@pytest.mark.parametrize(
    ('along', 'names'),
    [
        ((0.0, 0.0, -9.81), {'shoulder'}),
        ((0.0, 0.0, 9.81), {'shoulder'}),
        # As descriptions say what should be vertical; a robot on a wall.
        ((0.001, 0.0, -9.81), {'shoulder'}),
        ((0.0, -9.81, 0.0), set()),
        ((0.0, 0.0, 0.0), {'shoulder', 'elbow', 'lift'}),
    ],
)
def test_joints_about_the_vertical_carry_nothing(along, names):
    """Gravity is given in the axes of the shoulder, whose third is its own."""
    urdf = arm_with_wrist_sensor_urdf()
    axes = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=()).links[1].P_H_L[:3, :3]
    gravity = axes @ along
    robot = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=(), gravity=gravity)
    assert joints_without_gravity(robot) == names


def test_what_is_named_has_no_torque_at_rest(rng):
    """Two axes about the vertical, one slide across it, one along it."""
    turns = {
        'a': ('revolute', '0 0 1'),
        'b': ('revolute', '0 0 -1'),
        'c': ('prismatic', '1 2 0'),
        'd': ('prismatic', '0 0 1'),
        'e': ('revolute', '1 0 0'),
        'f': ('revolute', '0 0 1'),
    }
    body = (
        '<inertial><origin xyz="0.1 0.2 0.3"/><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    text, parent = f'<robot name="scara"><link name="base">{body}</link>', 'base'
    for name, (kind, axis) in turns.items():
        text += (
            f'<link name="link_{name}">{body}</link><joint name="{name}" type="{kind}"><parent '
            f'link="{parent}"/><child link="link_{name}"/><origin xyz="0.1 0 0"/><axis '
            f'xyz="{axis}"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        )
        parent = f'link_{name}'
    robot = Robot.from_urdf(f'{text}</robot>', fixed_link='base')
    q = rng.uniform(-1.0, 1.0, (4, 6))
    Y = TorqueRegressor(robot).rows(q, np.zeros_like(q), np.zeros_like(q)).Y
    torques = np.abs(Y @ robot.parameters.reshape(-1)).max(axis=0)
    free = {n for n, torque in zip(robot.joint_names, torques, strict=True) if torque < ROUND_OFF}
    assert joints_without_gravity(robot) == free == {'a', 'b', 'c'}


def test_a_robot_that_floats_may_be_in_any_posture():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), ft_sensors=())
    assert joints_without_gravity(robot) == frozenset()
