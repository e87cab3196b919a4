# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The robot: links, joints, inertias, frames, sensors and submodels, by its URDF and by settings.

Robots with locked joints are held against the whole robot in that posture, the frames of FT
sensors against what iDynTree found. Not covered: the text of sensor tags (test_urdf.py), poses and
inertias of whole robots (test_floating_dynamics.py, test_against_idyntree.py).
"""

import csv

import brute_force
import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec, LinkSensorSpec
from inertial_estimation.signals.router import accepted_frame_ids

ROUND_OFF = 1e-12  # chains of ten transforms of order one
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
ACC = '<sensor name="{}" type="accelerometer"><parent link="{}"/>{}</sensor>'
GYRO = '<sensor name="{}" type="gyroscope"><parent link="{}"/>{}</sensor>'
ARM = arm_with_wrist_sensor_urdf()
AT = '<origin xyz="0.1 0 0" rpy="0 0 1"/>'


def shared_robot(folder, name, **options):
    """Read a shared model; the panda without its fingers, one of which mimics the other."""
    if name.startswith('panda'):
        options.setdefault('joints', PANDA_JOINTS)
    return Robot.from_urdf(folder / f'{name}.urdf', **options)


def with_tags(text, *tags):
    return text.replace('</robot>', ''.join(tags) + '</robot>')


def assert_same_robot(robot, q, full, q_full):
    """Compare poses of all frames and inertias with another robot of the same URDF."""
    poses, expected = brute_force.link_poses(robot, q), brute_force.link_poses(full, q_full)
    moments = np.zeros((len(robot.links), 4, 4))
    for name, (link, L_H_F) in full.frames.items():
        other, L_H_other = robot.frame(name)
        got = poses[other] @ L_H_other
        np.testing.assert_allclose(got, expected[link] @ L_H_F, rtol=0, atol=ROUND_OFF)
        if name in full.link_names:
            body = pseudo_inertia(full.parameters[full.link_names.index(name)])
            moments[other] += expected[link] @ body @ expected[link].T
    for A_H_L, parameters, moment in zip(poses, robot.parameters, moments, strict=True):
        got = A_H_L @ pseudo_inertia(parameters) @ A_H_L.T
        np.testing.assert_allclose(got, moment, rtol=0, atol=ROUND_OFF * robot.mass)


# Links and joints


@pytest.mark.parametrize(
    ('kept', 'locked'),
    [
        (['elbow'], {'shoulder': 4.0, 'lift': 0.1}),
        ([], {'shoulder': -9.0, 'elbow': 0.3, 'lift': -0.2}),
    ],
)
def test_locked_joints_merge_their_links(kept, locked, rng):
    robot = Robot.from_urdf(ARM, joints=kept, locked_positions=locked)
    assert set(robot.joint_names) == set(kept)
    assert len(robot.links) == len(kept) + 2
    full, q = Robot.from_urdf(ARM), rng.uniform(-3, 3, len(kept))
    everywhere = {**locked, **dict(zip(robot.joint_names, q))}
    assert_same_robot(robot, q, full, [everywhere[name] for name in full.joint_names])


def test_submodels_of_nested_sensors(nested_humanoid):
    robot = nested_humanoid
    assert {s.name: {robot.link_names[k] for k in s.links} for s in robot.submodels} == {
        'root': {'root', 'chest', 'head', 'shoulder', 'hip'},
        'upper_arm': {'upper_arm', 'hand'},
        'thigh': {'thigh', 'shank'},
        'foot': {'foot'},
    }
    names = ['arm_sensor', 'leg_sensor', 'foot_sensor']
    assert [sensor.name for sensor in robot.ft_sensors] == names
    borders = {s.name: (s.root_sensor, s.child_sensors) for s in robot.submodels}
    assert borders == {
        'root': (-1, (0, 1)), 'upper_arm': (0, ()), 'thigh': (1, (2,)), 'foot': (2, ()),
    }  # fmt: skip
    assert all(link.parent < k for k, link in enumerate(robot.links))
    for k, sensor in enumerate(robot.ft_sensors):
        child = robot.links[sensor.child]
        assert (child.ft_sensor, child.parent) == (k, sensor.parent)


def test_unusual_names_and_joints_are_read():
    usual = Robot.from_urdf(ARM)
    for old in ('tip_joint', 'base'):
        robot = Robot.from_urdf(ARM.replace(f'"{old}"', '"root_joint"'))
        np.testing.assert_array_equal(robot.parameters, usual.parameters)
        np.testing.assert_array_equal(robot.frame('root_joint')[1], usual.frame(old)[1])
    # Joints of several degrees of freedom can be left out.
    old = '<joint name="elbow" type="revolute">'
    text = ARM.replace(old, old.replace('revolute', 'planar'))
    with pytest.raises(ModelError):
        Robot.from_urdf(text)
    assert Robot.from_urdf(text, joints=['lift']).joint_names == ('lift',)


# FT sensors


@pytest.mark.parametrize('name', ['icub_v2_5', 'icub_genova01', 'ergocub_sn001', 'panda_wrist_ft'])
def test_ft_frames_are_those_of_another_library(name, shared_models):
    robot = shared_robot(shared_models, name)
    sensors = {sensor.name: sensor for sensor in robot.ft_sensors}
    with (shared_models / f'ft_frames_{name}.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert {row['sensor'] for row in rows} == set(sensors)
    for row in rows:
        sensor, (link, L_H_second) = sensors[row['sensor']], robot.frame(row['second_link'])
        assert (sensor.joint, sensor.child) == (row['joint'], link)
        assert sensor.parent == robot.frame(row['first_link'])[0]
        on_first = row['wrench_applied_to_link'] == row['first_link']
        assert sensor.direction == (1 if on_first else -1)
        second_H_sensor = np.eye(4)
        second_H_sensor[:3, 3] = [float(row[f'p{i}']) for i in 'xyz']
        second_H_sensor[:3, :3] = [[float(row[f'r{i}{j}']) for j in '123'] for i in '123']
        expected = L_H_second @ second_H_sensor  # nine digits
        np.testing.assert_allclose(sensor.child_H_sensor, expected, rtol=0, atol=1e-8)


def test_ft_sensors_are_chosen_by_name_or_specification(nested_humanoid, rng):
    text = nested_humanoid.urdf
    robot = Robot.from_urdf(text, ft_sensors=['foot_sensor', 'arm_sensor'])
    found = [(s.name, s.direction) for s in robot.ft_sensors]
    assert found == [('foot_sensor', -1), ('arm_sensor', 1)]
    assert len(Robot.from_urdf(text, ft_sensors=[]).submodels) == 1
    pose = np.eye(4)
    pose[:3, 3] = rng.normal(size=3)
    spec = FtSpec('tip_sensor', 'tip_joint', child_to_parent=False, pose=pose)
    sensor = Robot.from_urdf(ARM, ft_sensors=['wrist_sensor', spec]).ft_sensors[1]
    assert (sensor.name, sensor.direction) == ('tip_sensor', -1)
    np.testing.assert_array_equal(sensor.child_H_sensor, pose)


# Accelerometers, gyroscopes and IMUs


def test_tags_of_one_link_pair_where_their_frames_agree(shared_models):
    text = with_tags(
        two_link_urdf(),
        ACC.format('a', 'arm', AT),
        GYRO.format('turned', 'arm', '<origin xyz="0.1 0 0" rpy="0 0 1.1"/>'),
        GYRO.format('away', 'arm', '<origin xyz="0.3 0 0" rpy="0 0 1"/>'),
        GYRO.format('other_link', 'body', AT),
        GYRO.format('g', 'arm', '<origin xyz="0.105 0 0" rpy="0 0 1"/>'),
        ACC.format('b', 'body', AT),
        ACC.format('alone', 'body', '<origin xyz="0.5 0 0"/>'),
        ACC.format('second', 'arm', AT),
        GYRO.format('g2', 'arm', AT),
    )
    robot = Robot.from_urdf(text)
    assert [imu.name for imu in robot.imus] == ['a', 'b', 'second']
    link, pose = robot.frame('arm')
    arm_H_a = np.eye(4)
    arm_H_a[:3, :3], arm_H_a[0, 3] = Rotation.from_rotvec([0, 0, 1]).as_matrix(), 0.1
    assert robot.imus[0].link == link
    np.testing.assert_allclose(robot.imus[0].L_H_S, pose @ arm_H_a, rtol=0, atol=ROUND_OFF)
    assert Robot.from_urdf(text, fixed_link='body').imus == ()
    icub = shared_robot(shared_models, 'icub_v2_5')
    counts = len(icub.accelerometers), len(icub.gyroscopes), len(icub.imus)
    assert counts == (62, 15, 15)
    # The tag of an IMU goes before the link of its name.
    lifted = with_tags(two_link_urdf(), ACC.format('arm', 'arm', '<origin xyz="0 0 0.2"/>'))
    assert Robot.from_urdf(lifted, imus=['arm']).imus[0].L_H_S[2, 3] == 0.2


# Settings

EYE = (
    '<link name="eye"/><joint name="eye_joint" type="fixed"><parent link="head"/>'
    '<child link="eye"/><origin xyz="0.1 0 0" rpy="1.5 0 0"/></joint></robot>'
)
"""A frame of the head that is rotated."""
HUMANOID = nested_humanoid_urdf()
WITH_EYE = HUMANOID.replace('</robot>', EYE)
POSE = [0.1, -0.2, 0.3, 0.4, 0.5, -0.6]
"""x y z roll pitch yaw."""
SOLE = {'imus': ['board'], 'imu.board.frame': 'sole', 'imu.board.pose': POSE}


@pytest.mark.parametrize(
    ('text', 'sensor', 'given', 'wanted'),
    [
        (WITH_EYE, 'gaze', {'imus': ['gaze'], 'imu.gaze.frame': 'eye'},
         {'gaze', 'eye', 'eye_joint'}),
        (HUMANOID, 'arm_sensor', {}, {'arm_sensor', 'arm_sensor_joint', 'upper_arm'}),
        (HUMANOID.replace('"arm_sensor"', '"shoulder"'), 'shoulder', {},
         {'arm_sensor_joint', 'upper_arm'}),
        (HUMANOID, 'board', SOLE | {'imu.board.frame_id': 'foot_imu_link'}, {'foot_imu_link'}),
    ],
)  # fmt: skip
def test_frames_at_the_pose_of_a_sensor_are_accepted(text, sensor, given, wanted):
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, text)
    (found,) = (s for s in (*robot.imus, *robot.ft_sensors) if s.name == sensor)
    assert accepted_frame_ids(settings, robot, found) == wanted
    # A sensor of which no frame has the pose needs a frame_id.
    robot = build_robot(
        settings := EstimatorSettings(), HUMANOID.replace('"leg_sensor"', '"shank"')
    )
    with pytest.raises(ConfigError):
        accepted_frame_ids(settings, robot, robot.ft_sensors[1])


def test_imus_are_placed_by_the_settings_in_their_order():
    given = {'imus': ['b', 'a'], 'imu.a.frame': 'sole', 'imu.a.pose': POSE, 'imu.b.frame': 'hand'}
    robot = build_robot(EstimatorSettings.from_dict(given), HUMANOID)
    assert [sensor.name for sensor in robot.imus] == ['b', 'a']
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler('xyz', POSE[3:]).as_matrix()
    pose[:3, 3] = POSE[:3]
    for sensor, frame, in_frame in zip(robot.imus, ('hand', 'sole'), (np.eye(4), pose)):
        link, L_H_F = robot.frame(frame)
        assert sensor.link == link
        np.testing.assert_allclose(sensor.L_H_S, L_H_F @ in_frame, rtol=0, atol=1e-14)


def test_an_empty_list_of_ft_sensors_is_none():
    base = {'fixed_link': 'base'}
    for given, wanted in ({}, 1), ({'ft_sensors': ['all']}, 1), ({'ft_sensors': []}, 0):
        robot = build_robot(EstimatorSettings.from_dict(base | given), ARM)
        assert (len(robot.ft_sensors), len(robot.submodels)) == (wanted, 1 + wanted)
    with pytest.raises(NameNotFound):
        EstimatorSettings.from_dict({'ft_sensors': [], 'ft.wrist_sensor.max_age': 0.2})


# Mistakes


@pytest.mark.parametrize(
    ('options', 'error'),
    [
        ({'joints': ['elbw']}, NameNotFound),
        ({'ft_sensors': ['wrist']}, NameNotFound),
        ({'ft_sensors': ['wrist_sensor', FtSpec('a', 'wrist_sensor_joint')]}, ModelError),
        ({'imus': ['tup']}, NameNotFound),
        ({'imus': ['tip', LinkSensorSpec('tip', 'tool')]}, ModelError),
        ({'gravity': (0.0, 0.0, -26.0)}, ModelError),
        ({'locked_positions': {'elbow': 1.0}}, ModelError),
    ],
)
def test_impossible_arguments_are_refused(options, error):
    with pytest.raises(error):
        Robot.from_urdf(ARM, **options)
    with pytest.raises(ModelError):
        LinkSensorSpec('acc', pose=np.full((4, 4), np.inf))
