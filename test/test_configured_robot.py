# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From settings to a robot: sensors that the settings place, and the frames of their messages.

Not covered: where a URDF puts a sensor (test_robot.py), and settings without a robot
(test_config.py).
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.router import accepted_frame_ids

EYE = (
    '<link name="eye"/><joint name="eye_joint" type="fixed"><parent link="head"/>'
    '<child link="eye"/><origin xyz="0.1 0 0" rpy="1.5 0 0"/></joint></robot>'
)
"""A frame of the head that is rotated."""
URDF = nested_humanoid_urdf()
WITH_EYE = URDF.replace('</robot>', EYE)
POSE = [0.1, -0.2, 0.3, 0.4, 0.5, -0.6]
"""x y z roll pitch yaw."""
SOLE = {'imus': ['board'], 'imu.board.frame': 'sole', 'imu.board.pose': POSE}
ROUND_OFF = 1e-14  # products of a few numbers of order one


@pytest.mark.parametrize(
    ('text', 'sensor', 'given', 'wanted'),
    [
        (WITH_EYE, 'gaze', {'imus': ['gaze'], 'imu.gaze.frame': 'eye'},
         {'gaze', 'eye', 'eye_joint'}),
        (URDF, 'arm_sensor', {}, {'arm_sensor', 'arm_sensor_joint', 'upper_arm'}),
        (URDF.replace('"arm_sensor"', '"shoulder"'), 'shoulder', {},
         {'arm_sensor_joint', 'upper_arm'}),
        (URDF, 'board', SOLE | {'imu.board.frame_id': 'foot_imu_link'}, {'foot_imu_link'}),
    ],
)  # fmt: skip
def test_frames_at_the_pose_of_a_sensor_are_accepted(text, sensor, given, wanted):
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, text)
    (found,) = (s for s in (*robot.imus, *robot.ft_sensors) if s.name == sensor)
    assert accepted_frame_ids(settings, robot, found) == wanted
    # A sensor of which no frame has the pose needs a frame_id.
    robot = build_robot(settings := EstimatorSettings(), URDF.replace('"leg_sensor"', '"shank"'))
    with pytest.raises(ConfigError):
        accepted_frame_ids(settings, robot, robot.ft_sensors[1])


def test_imus_are_placed_by_the_settings_in_their_order():
    given = {'imus': ['b', 'a'], 'imu.a.frame': 'sole', 'imu.a.pose': POSE, 'imu.b.frame': 'hand'}
    robot = build_robot(EstimatorSettings.from_dict(given), URDF)
    assert [sensor.name for sensor in robot.imus] == ['b', 'a']
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler('xyz', POSE[3:]).as_matrix()
    pose[:3, 3] = POSE[:3]
    for sensor, frame, in_frame in zip(robot.imus, ('hand', 'sole'), (np.eye(4), pose)):
        link, L_H_F = robot.frame(frame)
        assert sensor.link == link
        np.testing.assert_allclose(sensor.L_H_S, L_H_F @ in_frame, rtol=0, atol=ROUND_OFF)


def test_an_empty_list_of_ft_sensors_is_none():
    urdf, base = arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}
    for given, wanted in ({}, 1), ({'ft_sensors': ['all']}, 1), ({'ft_sensors': []}, 0):
        robot = build_robot(EstimatorSettings.from_dict(base | given), urdf)
        assert (len(robot.ft_sensors), len(robot.submodels)) == (wanted, 1 + wanted)
    with pytest.raises(NameNotFound):
        EstimatorSettings.from_dict({'ft_sensors': [], 'ft.wrist_sensor.max_age': 0.2})
