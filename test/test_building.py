# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From settings to a robot: sensors that the configuration places, and the frames of messages.

Not covered: where a description puts a sensor (test_robot.py), what settings must fulfil without
a robot (test_config.py), and what becomes of a message in another frame (test_replay.py and
ros/test_estimator_node.py).
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.cli.robot_check import check_robot
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.errors import (
    ConfigError,
    LogError,
    ModelError,
    NameNotFound,
    ShapeError,
)
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.assembler import build_assembler
from inertial_estimation.signals.router import accepted_frame_ids

# Sums over some thirty links.
ROUND_OFF = 1e-12
STAMP = 1_700_000_000_000_000_000
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
    with pytest.raises(ConfigError):
        frames_of(text, 'shank')
    given = {'ft_sensors': ['shank'], 'ft.shank.frame_id': 'shank'}
    assert frames_of(text, 'shank', **given) == {'shank'}


def test_a_replay_refuses_the_name_of_a_frame_elsewhere(tmp_path):
    pytest.importorskip('rosbags')
    from bag_messages import IMU, JOINT_STATE, imu, joint_state, write_bag

    given = {'imus': ['head'], 'imu.head.frame': 'eye', 'ft_sensors': []}
    settings = EstimatorSettings.from_dict(given)
    text = with_tags(EYE)
    robot = Robot.from_urdf(text, ft_sensors=[], imus=[('head', 'eye')])
    for frame in ('eye', 'head'):
        data = imu(STAMP, frame, np.zeros(3), [0.0, 0.0, 9.81])
        joints = joint_state(STAMP, list(robot.joint_names), np.zeros(len(robot.joint_names)))
        messages = [('/imu/head', IMU, STAMP, data), ('/joint_states', JOINT_STATE, STAMP, joints)]
        bag = write_bag(tmp_path / frame, messages)
        if frame == 'eye':
            assert len(open_log(bag, robot, settings).samples) == 1
            continue
        with pytest.raises(LogError):
            open_log(bag, robot, settings)


def test_a_robot_without_imu_takes_empty_arrays(rng):
    settings = EstimatorSettings.from_dict({'fixed_link': 'sole'})
    robot = build_robot(settings, with_tags())
    estimator = build_estimator(settings, robot)
    sample = random_sample(robot, rng)
    assert sample.proper_accelerations.shape == (0, 3)
    assert np.isfinite(estimator.update(sample).torques).all()
    with pytest.raises(ShapeError):
        estimator.update(sample._replace(proper_accelerations=np.zeros((1, 3))))


POSE = [0.1, -0.2, 0.3, 0.4, 0.5, -0.6]
"""x y z roll pitch yaw."""
# Products of a few numbers of order one.
ROUND_OFF = 1e-14


def place_in(robot, frame):
    """Return the pose of `POSE` in the link that carries a frame."""
    roll, pitch, yaw = POSE[3:]
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler('xyz', [roll, pitch, yaw]).as_matrix()
    pose[:3, 3] = POSE[:3]
    return robot.frame(frame)[1] @ pose


def robot_of(text, **given):
    return build_robot(EstimatorSettings.from_dict(given), text)


def test_an_imu_without_a_frame_in_the_description():
    given = {'imus': ['board'], 'imu.board.frame': 'sole', 'imu.board.pose': POSE}
    robot = robot_of(with_tags(), **given)
    (imu,) = robot.imus
    assert imu.link == robot.frame('sole')[0]
    np.testing.assert_allclose(imu.L_H_S, place_in(robot, 'sole'), rtol=0, atol=ROUND_OFF)
    assert frames_of(with_tags(), 'board', **given) == {'board'}
    given |= {'imu.board.frame_id': 'foot_imu_link'}
    assert frames_of(with_tags(), 'board', **given) == {'foot_imu_link'}
    given = {'imus': ['sole'], 'imu.sole.frame': 'sole', 'imu.sole.pose': POSE}
    with pytest.raises(ConfigError):
        frames_of(with_tags(), 'sole', **given)


def test_the_order_of_imus_is_that_of_the_list():
    given = {'imu.b.frame': 'head', 'imu.a.frame': 'foot', 'imus': ['a', 'b']}
    assert [imu.name for imu in robot_of(with_tags(), **given).imus] == ['a', 'b']


BOARD = {
    'accelerometers': ['skin', 'board'],
    'gyroscopes': ['board'],
    'accelerometer.skin.frame': 'sole',
    'accelerometer.board.frame': 'hand',
    'accelerometer.board.pose': POSE,
    'gyroscope.board.frame': 'hand',
    'gyroscope.board.pose': POSE,
}


def test_accelerometers_and_gyroscopes_without_tags():
    robot = robot_of(with_tags(), **BOARD, imus=['board'])
    assert [sensor.name for sensor in robot.accelerometers] == ['skin', 'board']
    assert [sensor.name for sensor in robot.gyroscopes] == ['board']
    for sensor in (robot.accelerometers[1], robot.gyroscopes[0], robot.imus[0]):
        assert robot.link_names[sensor.link] == 'hand'
        np.testing.assert_allclose(sensor.L_H_S, place_in(robot, 'hand'), rtol=0, atol=ROUND_OFF)
    sensors = check_robot(robot).records['inertial_sensors']
    rows = {(row['sensor'], row['kind']): row for row in sensors}
    assert set(rows) == {
        ('skin', 'accelerometer'), ('board', 'accelerometer'), ('board', 'gyroscope'),
        ('board', 'IMU'),
    }  # fmt: skip
    pose = {'xyz_m': POSE[:3], 'rpy_rad': POSE[3:]}
    assert rows['board', 'gyroscope']['pose_in_link'] == pose


def test_an_accelerometer_and_a_gyroscope_apart_are_no_imu():
    apart = BOARD | {'gyroscope.board.pose': [0.1, -0.2, 0.35, 0.4, 0.5, -0.6]}
    with pytest.raises(ModelError):
        robot_of(with_tags(), **apart, imus=['board'])
    assert robot_of(with_tags(), **apart, fixed_link='sole').imus == ()


def test_without_lists_the_tags_count():
    tag = '<sensor name="{0}" type="{0}"><parent link="head"/></sensor>'
    text = with_tags(tag.format('accelerometer'), tag.format('gyroscope'))
    robot = robot_of(text, imus=['accelerometer'])
    assert (len(robot.accelerometers), len(robot.gyroscopes), len(robot.imus)) == (1, 1, 1)


@pytest.mark.parametrize('source', ['array', 'zero'])
def test_all_sensors_of_an_icub_by_their_names(shared_models, source):
    """The whole road: names in the settings, messages that say nothing about the other half."""
    text = (shared_models / 'icub_sensorised.urdf').read_text()
    plain = Robot.from_urdf(text)
    kinds = {s.name: 'accelerometer' for s in plain.accelerometers}
    kinds |= {s.name: 'gyroscope' for s in plain.gyroscopes}
    assert len(kinds) == 55 + 11
    given = {
        'imus': list(kinds),
        'acceleration_source': 'zero',
        'angular_acceleration_source': source,
        'contacts': ['root_link', 'l_foot'],
    }
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, text)
    assert {imu.name: imu.measures for imu in robot.imus} == kinds
    assembler = build_assembler(settings, robot)
    still = read_still(robot, up=np.array([0.0, 0.0, 9.81]))
    for k, imu in enumerate(robot.imus):
        reading = still[robot.link_names[imu.link]] @ imu.L_H_S[:3, :3]
        assembler.push_imu(k, STAMP, np.zeros(3), reading)
    for k in range(len(robot.ft_sensors)):
        assembler.push_ft(k, STAMP, np.zeros(6))
    zeros = np.zeros(len(robot.joint_names))
    sample = assembler.push_joints(0, STAMP, robot.joint_names, zeros, zeros, np.zeros(0))
    assert not sample.imu_states.any()
    estimate = build_estimator(settings, robot).update(sample)
    masses = robot.parameters[list(robot.submodels[0].links), 0].sum()
    force = np.linalg.norm(estimate.wrenches[0, :3])
    np.testing.assert_allclose(force, 9.81 * masses, rtol=ROUND_OFF)
    assert estimate.used_imus.all()


def read_still(robot, up):
    """Return what an accelerometer at each link's frame reads at rest with all joints at zero."""
    poses = {}
    for link in robot.links:
        turn = np.eye(3)
        if link.parent >= 0:
            turn = poses[robot.link_names[link.parent]] @ link.P_H_L[:3, :3]
        poses[link.name] = turn
    return {name: up @ turn for name, turn in poses.items()}


@pytest.mark.parametrize('kind', [EstimatorSettings, IdentifierSettings])
def test_no_ft_sensors_are_none_and_all_are_those_of_the_description(kind):
    urdf, base = arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}
    for given, wanted in ({}, 1), ({'ft_sensors': ['all']}, 1), ({'ft_sensors': []}, 0):
        robot = build_robot(kind.from_dict(base | given), urdf)
        assert len(robot.ft_sensors) == wanted
        assert len(robot.submodels) == 1 + wanted
    with pytest.raises(NameNotFound):
        kind.from_dict(base | {'ft_sensors': [], 'ft.wrist_sensor.max_age': 0.2})
