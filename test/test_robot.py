# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The robot: links, joints, inertias, frames, sensors and submodels, by its URDF and by settings.

Robots with locked joints are held against the whole robot in that posture. URDFs are read, refused
and exported. Not covered: poses and inertias of whole robots (test_floating_dynamics.py,
test_against_idyntree.py).
"""

import brute_force
import numpy as np
import pytest
from robots import (
    _joint,
    _link,
    _links,
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    two_link_urdf,
)
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.model import urdf
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec, LinkSensorSpec
from inertial_estimation.model.urdf_export import export_urdf, inertial_of, lightened
from inertial_estimation.signals.sources import accepted_frame_ids

ROUND_OFF = 1e-12  # chains of ten transforms of order one
ACC = '<sensor name="{}" type="accelerometer"><parent link="{}"/>{}</sensor>'
GYRO = '<sensor name="{}" type="gyroscope"><parent link="{}"/>{}</sensor>'
ARM, HUMANOID = arm_with_wrist_sensor_urdf(), nested_humanoid_urdf()
AT = '<origin xyz="0.1 0 0" rpy="0 0 1"/>'


def with_tags(text, *tags):
    return text.replace('</robot>', ''.join(tags) + '</robot>')


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
    poses = brute_force.link_poses(robot, q)
    expected = brute_force.link_poses(full, [everywhere[name] for name in full.joint_names])
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


def test_ft_sensors_are_chosen_by_name_or_specification(rng):
    robot = Robot.from_urdf(HUMANOID, ft_sensors=['foot_sensor', 'arm_sensor'])
    assert [sensor.name for sensor in robot.ft_sensors] == ['foot_sensor', 'arm_sensor']
    for given, wanted in ({}, 4), ({'ft_sensors': ['all']}, 4), ({'ft_sensors': []}, 1):
        assert len(build_robot(EstimatorSettings.from_dict(given), HUMANOID).submodels) == wanted
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
        ACC.format('alone', 'body', '<origin xyz="0.5 0 0" rpy="0 0 1"/>'),
        ACC.format('b', 'body', AT),
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
    icub = Robot.from_urdf(shared_models / 'icub_v2_5.urdf')
    counts = len(icub.accelerometers), len(icub.gyroscopes), len(icub.imus)
    assert counts == (62, 15, 15)
    # The tag of an IMU goes before the link of its name.
    lifted = with_tags(two_link_urdf(), ACC.format('arm', 'arm', '<origin xyz="0 0 0.2"/>'))
    assert Robot.from_urdf(lifted, imus=['arm']).imus[0].L_H_S[2, 3] == 0.2


# Settings

EYE = '<link name="eye"/>' + _joint('eye_joint', 'fixed', 'head', 'eye', '0.1 0 0')
"""A frame of the head that is rotated."""
WITH_EYE = HUMANOID.replace('</robot>', EYE + '</robot>')
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


# URDFs


MOVED = 1e-14  # of a few products of sines and cosines, of an inertia moved there and back
MASS = '<mass value="1.5"/>'


def robot_with(*tags):
    return urdf.parse(f'<robot name="r">{"".join(tags)}</robot>')


def ft_tag(joint='j', inside='', origin=''):
    return (
        f'<sensor name="ft" type="force_torque"><parent joint="{joint}"/>'
        f'<force_torque>{inside}</force_torque>{origin}</sensor>'
    )


def test_files_that_are_no_urdf_are_refused(tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_bytes(b'\xef\xbb\xbf<robot name="r">\r\n</robot>\r\n')
    assert urdf.load_text(path) == '<robot name="r">\r\n</robot>\r\n'
    path.write_bytes(b'\x7fELF\x00\x01\xff')
    for given in (path, tmp_path / 'nowhere.urdf'):
        with pytest.raises(ModelError):
            urdf.load_text(given)


def test_unusual_sensor_tags():
    """Frames and directions that are usual are compared with iDynTree's."""
    # Frame child does not even read the origin.
    child = urdf.ft_specs(robot_with(ft_tag(origin='<origin xyz="none"/>')))['ft']
    np.testing.assert_array_equal(child.pose, np.eye(4))
    wrong = robot_with(ft_tag(inside='<frame>parent</frame>'))
    assert isinstance(urdf.ft_specs(wrong)['ft'], ModelError)
    # Inside <gazebo> the sensor of a fixed joint counts, if it has no other.
    sdf = '<gazebo reference="j"><sensor name="s" type="force_torque"><pose>1 2 3 0 0 0</pose>'
    sdf += '<force_torque><frame>sensor</frame></force_torque></sensor></gazebo>'
    joint = '<joint name="j" type="{}"/>'
    (found,) = urdf.ft_specs(robot_with(joint.format('fixed'), sdf, sdf)).values()
    assert (found.name, found.joint, *found.pose[:3, 3]) == ('s', 'j', 1.0, 2.0, 3.0)
    assert urdf.ft_specs(robot_with(joint.format('revolute'), sdf)) == {}
    assert list(urdf.ft_specs(robot_with(joint.format('fixed'), ft_tag(), sdf))) == ['ft']
    # Names are unique.
    once = ft_tag(), '<sensor name="s" type="gyroscope"><parent link="hand"/></sensor>'
    root = robot_with(*once, '<gazebo reference="j">', *once, '</gazebo>')
    assert list(urdf.ft_specs(root)) == ['ft']
    assert len(urdf.link_sensor_tags(root, 'gyroscope')) == 1
    twice = robot_with(*once, *once)
    for read in (urdf.ft_specs, lambda root: urdf.link_sensor_tags(root, 'gyroscope')):
        with pytest.raises(ModelError):
            read(twice)


@pytest.mark.parametrize(
    ('old', 'new', 'options'),
    [
        (MASS, '<mass value="nan"/>', {}),
        ('xyz="0.02 -0.01 0.1"', 'xyz="0.02 0"', {}),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', {}),
        ('</robot>', '<link name="second_root"/></robot>', {}),
        ('<child link="upper"/>', '<child link="uper"/>', {}),
        ('<limit lower="-3" upper="3" effort="50" velocity="10"/>', '', {}),
        ('</robot>', ACC.format('a', 'tp', '') + '</robot>', {}),
        ('', '', {'joints': ['elbw']}),
        ('', '', {'ft_sensors': ['wrist']}),
        ('', '', {'ft_sensors': ['wrist_sensor', FtSpec('a', 'wrist_sensor_joint')]}),
        ('', '', {'imus': ['tup']}),
        ('', '', {'imus': ['tip', LinkSensorSpec('tip', 'tool')]}),
        ('', '', {'gravity': (0.0, 0.0, -26.0)}),
        ('', '', {'locked_positions': {'elbow': 1.0}}),
    ],
)
def test_impossible_urdfs_and_arguments_are_refused(old, new, options, capfd):
    assert old in ARM
    with pytest.raises((ModelError, NameNotFound)):
        Robot.from_urdf(ARM.replace(old, new), **options)
    assert not capfd.readouterr().err


@pytest.mark.parametrize('kind', [FtSpec, LinkSensorSpec])
def test_poses_without_a_rotation_are_refused(kind):
    for pose in (np.full((4, 4), np.inf), 2.0 * np.eye(4), np.diag([1.0, 1.0, -1.0, 1.0])):
        with pytest.raises(ModelError):
            kind('sensor', 'tip_joint', pose=pose)


# Export


def heavier(robot, link, by=1.3):
    """Return parameters of a robot one of whose links is heavier."""
    parameters = robot.parameters.copy()
    parameters[robot.link_names.index(link)] *= by
    return parameters


def assert_read_again(robot, parameters, atol=MOVED):
    text = export_urdf(robot, parameters)
    again = Robot.from_urdf(text, fixed_link=robot.fixed_frame)
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=atol)
    return text


def inertials(text):
    return {tag.get('name'): inertial_of(tag) for tag in urdf.parse(text).iter('link')}


TEXTS = {
    'arm': ARM,
    'humanoid': HUMANOID,
    'empty link': (
        f'<robot name="r">{_link("a", 1.0)}<link name="b"/>'
        f'{_joint("j", "continuous", "a", "b", "0 0 0")}</robot>'
    ),
}


@pytest.mark.parametrize('text', TEXTS.values(), ids=TEXTS)
def test_exported_parameters_are_read_again(text, rng):
    robot = Robot.from_urdf(text)
    body = np.array([1.0, 0.1, 0, 0, 1, 0, 1, 0, 0, 1]) * (robot.parameters[:, :1] == 0.0)
    scale = rng.uniform(1.0, 2.0, (len(robot.links), 1))
    assert_read_again(robot, robot.parameters * scale + body)
    assert export_urdf(robot, robot.parameters) == text
    parameters = robot.parameters.copy()
    parameters[0, 4] *= 50.0
    with pytest.raises(ModelError):
        export_urdf(robot, parameters)


def test_export_changes_nothing_else():
    name = 'übër'
    before = f'<?xml version="1.0" encoding="latin-1"?>\n<!-- <link name="{name}"> é -->\n'
    text = before + ARM.replace('  ', '\t').replace('"upper"', f'"{name}"')
    robot = Robot.from_urdf(text.replace('<inertial', '<inertial note="a > b"'))
    new, old = assert_read_again(robot, heavier(robot, name)), robot.urdf
    start = old.index('<inertial', old.rindex(f'<link name="{name}">'))
    stop = old.index('</inertial>', start) + len('</inertial>')
    assert new.startswith(old[:start]) and new.endswith(old[stop:])
    assert 'mass value="2.6"' in new[start : len(new) - len(old) + stop]


def test_links_of_a_light_lump_keep_an_equal_share():
    robot = Robot.from_urdf(ARM)
    parameters = heavier(robot, 'tool', by=0.1)  # 0.06 kg; its tip alone has 0.1
    after = inertials(assert_read_again(robot, parameters))
    bodies = np.array([after['tool'], after['tip']])
    assert (consistency_margin(bodies) > 0).all()
    # Half way to where there is none: no less than half of what the whole has.
    whole = parameters[robot.link_names.index('tool')]
    assert consistency_margin(bodies[0]) > 0.49 * consistency_margin(whole)
    before = inertials(robot.urdf)['tip']
    np.testing.assert_allclose(bodies[1] / bodies[1][0], before / before[0], rtol=0, atol=1e-12)
    assert lightened(robot, parameters) == {'tip': pytest.approx(bodies[1][0] / before[0])}
    # Locked joints lump links that move in other programs, which refuse what has no mass.
    locked = Robot.from_urdf(ARM, fixed_link='base', joints=['lift'])
    moving = Robot.from_urdf(export_urdf(locked, locked.parameters / 3.0), fixed_link='base')
    assert (consistency_margin(moving.parameters) > 0).all()


@pytest.mark.parametrize('factor', [1.0 - 1e-6, 1.2])
def test_heaviest_link_takes_the_difference_of_a_topmost_frame(factor):
    """Many URDFs begin with a link that is but a name for where the robot stands."""
    text = (
        '<robot name="r"><link name="footprint"/>'
        + _links(wheel=0.5, base=20.0, arm=1.0)
        + _joint('a', 'fixed', 'footprint', 'wheel', '0 0 0')
        + _joint('b', 'fixed', 'footprint', 'base', '0.1 0.2 0.3')
        + _joint('j', 'continuous', 'base', 'arm', '0 0 0')
        + '</robot>'
    )
    robot = Robot.from_urdf(text)
    parameters = heavier(robot, 'footprint', by=factor)
    before, after = inertials(text), inertials(assert_read_again(robot, parameters, 1e-12))
    assert lightened(robot, parameters) == {}
    for name in ('footprint', 'wheel', 'arm'):
        np.testing.assert_array_equal(after[name], before[name])
    change = (factor - 1.0) * robot.parameters[0, 0]
    assert after['base'][0] - before['base'][0] == pytest.approx(change)
