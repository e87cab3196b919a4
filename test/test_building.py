# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From settings to a robot: sensors that the configuration places, and the frames of messages.

Not covered: where a description puts a sensor (test_robot.py), what settings must fulfil without
a robot (test_config.py), and what becomes of a message in another frame (test_replay.py and
ros/test_estimator_node.py).
"""

import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.building import accepted_frame_ids, build_robot

EYE = (
    '<link name="eye"/><joint name="eye_joint" type="fixed"><parent link="head"/>'
    '<child link="eye"/><origin xyz="0.1 0 0" rpy="1.5 0 0"/></joint>'
)
"""A frame of the head that is turned."""


def with_tags(*tags):
    return nested_humanoid_urdf().replace('</robot>', ''.join(tags) + '</robot>')


def frames_of(text, sensor, **given):
    """Return the accepted frames of an IMU or FT sensor."""
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, text)
    (found,) = (s for s in (*robot.imus, *robot.ft_sensors) if s.name == sensor)
    return accepted_frame_ids(settings, robot, found)


def test_frames_at_the_place_of_a_sensor_and_its_name_are_accepted():
    text = with_tags(EYE)
    assert frames_of(text, 'eye', imus=['eye']) == {'eye', 'eye_joint'}
    given = {'imus': ['gaze'], 'imu.gaze.frame': 'eye'}
    assert frames_of(text, 'gaze', **given) == {'gaze', 'eye', 'eye_joint'}
    assert frames_of(text, 'leg_sensor') == {'leg_sensor'}
    assert frames_of(text, 'arm_sensor') == {'arm_sensor', 'arm_sensor_joint', 'upper_arm'}


def test_a_name_that_stands_for_a_frame_elsewhere_is_not_accepted():
    given = {'imus': ['head'], 'imu.head.frame': 'eye'}
    assert frames_of(with_tags(EYE), 'head', **given) == {'eye', 'eye_joint'}
    text = with_tags().replace('"arm_sensor"', '"shoulder"')
    assert frames_of(text, 'shoulder') == {'arm_sensor_joint', 'upper_arm'}


def test_a_configured_frame_id_is_the_only_one():
    given = {'imus': ['head'], 'imu.head.frame': 'eye', 'imu.head.frame_id': 'head'}
    assert frames_of(with_tags(EYE), 'head', **given) == {'head'}
    given = {'ft_sensors': ['leg_sensor'], 'ft.leg_sensor.frame_id': 'leg'}
    assert frames_of(with_tags(), 'leg_sensor', **given) == {'leg'}


def test_a_sensor_that_no_name_tells_is_refused_with_the_remedy():
    text = with_tags().replace('"leg_sensor"', '"shank"')
    with pytest.raises(ConfigError, match=r"'ft\.shank\.frame_id' is empty.*'shank'.*elsewhere"):
        frames_of(text, 'shank')
    given = {'ft_sensors': ['shank'], 'ft.shank.frame_id': 'shank'}
    assert frames_of(text, 'shank', **given) == {'shank'}
