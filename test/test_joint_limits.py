# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Limits of joints, from the URDF and as told.

Not covered: whether a motion keeps within them, see `test_excitation`.
"""

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.model.joint_limits import joint_limits
from inertial_estimation.model.robot import Robot

SHOULDER = {'lower': -1.0, 'upper': 2.0, 'velocity': 2.0}


def test_what_is_told_goes_before_the_description(arm_with_wrist_sensor):
    given = {'shoulder': SHOULDER, 'elbow': {'velocity': 1, 'acceleration': 7.0}}
    found = joint_limits(arm_with_wrist_sensor, given, acceleration=4.0)
    assert found.joint_names == ('shoulder', 'elbow', 'lift')
    np.testing.assert_array_equal(found.lower, [-1.0, -3.0, -3.0])
    np.testing.assert_array_equal(found.upper, [2.0, 3.0, 3.0])
    np.testing.assert_array_equal(found.velocity, [2.0, 1.0, 10.0])
    np.testing.assert_array_equal(found.acceleration, [4.0, 7.0, 4.0])
    np.testing.assert_array_equal(found.effort, [np.nan, 50.0, 50.0])
    np.testing.assert_array_equal(found.middle, [0.5, 0.0, 0.0])
    np.testing.assert_array_equal(found.half, [1.5, 3.0, 3.0])


def test_the_description_may_hold_accelerations(arm_with_wrist_sensor):
    urdf = arm_with_wrist_sensor.urdf.replace('velocity="10"', 'velocity="10" acceleration="6"')
    robot = Robot.from_urdf(urdf, fixed_link='base')
    found = joint_limits(robot, {'shoulder': SHOULDER}, acceleration=4.0)
    np.testing.assert_array_equal(found.acceleration, [4.0, 6.0, 6.0])


def test_what_goes_beyond_the_description_is_known(arm_with_wrist_sensor):
    urdf = arm_with_wrist_sensor.urdf.replace('velocity="10"', 'velocity="10" acceleration="6"')
    robot = Robot.from_urdf(urdf, fixed_link='base')
    given = {
        'shoulder': SHOULDER,  # Continuous: the description has no positions of it.
        'elbow': {'lower': -3.1, 'upper': 2.9, 'velocity': 10.0, 'acceleration': 6.5},
        'lift': {'lower': -2.9, 'upper': 3.00001, 'velocity': 573.0},  # Rounded; degrees.
    }
    found = joint_limits(robot, given, acceleration=60.0)
    assert list(found.wider) == [
        ('elbow', 'lower', -3.1, -3.0),
        ('elbow', 'acceleration', 6.5, 6.0),
        ('lift', 'velocity', 573.0, 10.0),
    ]


@pytest.mark.parametrize(
    ('given', 'acceleration'),
    [
        ({}, 4.0),
        ({'shoulder': SHOULDER}, None),
        ({'shoulder': SHOULDER | {'lower': 2.0}}, 4.0),
        ({'shoulder': SHOULDER | {'velocity': 0.0}}, 4.0),
        ({'shoulder': SHOULDER | {'upper': np.inf}}, 4.0),
        ({'shoulder': SHOULDER}, -1.0),
        ({'shoulder': {'lower': 'far'}}, 4.0),
        ({'shoulder': 3}, 4.0),
    ],
)
def test_what_is_missing_or_impossible(arm_with_wrist_sensor, given, acceleration):
    with pytest.raises(ConfigError):
        joint_limits(arm_with_wrist_sensor, given, acceleration)


def test_names_that_do_not_exist(arm_with_wrist_sensor):
    with pytest.raises(NameNotFound):
        joint_limits(arm_with_wrist_sensor, {'elbo': {}}, 4.0)
    with pytest.raises(NameNotFound):
        joint_limits(arm_with_wrist_sensor, {'elbow': {'speed': 1.0}}, 4.0)


def test_a_description_that_holds_no_number(arm_with_wrist_sensor):
    urdf = arm_with_wrist_sensor.urdf.replace('velocity="10"', 'velocity="10" acceleration="much"')
    robot = Robot.from_urdf(urdf, fixed_link='base')
    with pytest.raises(ModelError):
        joint_limits(robot, {'shoulder': SHOULDER}, 4.0)
