# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The robot: links, joints, inertias, frames and sensors against a second reading of the same XML.

The second reading composes the origins of the URDF with scipy's rotations and moves inertias as
4 x 4 moment matrices; it knows nothing of Pinocchio. The frames of FT sensors are held against
what iDynTree found. Not covered: the text of sensor tags (test_urdf.py), submodels
(test_submodels.py).
"""

import csv
from pathlib import Path
from xml.etree import ElementTree

import brute_force
import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import (
    FrameNotFound,
    InertialEstimationError,
    ModelError,
    NameNotFound,
    ShapeError,
)
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec, LinkSensorSpec

# Chains of ten transforms of order one.
ROUND_OFF = 1e-12
# The table of frames has nine digits.
PRINTED = 1e-8
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
SHARED = ['icub_v2_5', 'icub_genova01', 'icub_sensorised', 'ergocub_sn001', 'panda_wrist_ft']
ACC = '<sensor name="{}" type="accelerometer"><parent link="{}"/>{}</sensor>'
GYRO = '<sensor name="{}" type="gyroscope"><parent link="{}"/>{}</sensor>'


def shared_robot(folder: Path, name: str, **options) -> Robot:
    """Read a shared model; the panda without its fingers, one of which mimics the other."""
    if name.startswith('panda'):
        options.setdefault('joints', PANDA_JOINTS)
    return Robot.from_urdf(folder / f'{name}.urdf', **options)


def with_tags(text: str, *tags: str) -> str:
    return text.replace('</robot>', ''.join(tags) + '</robot>')


class SecondReading:
    """Poses of all URDF links in the root link, and their inertias, at given joint positions."""

    def __init__(self, text: str, positions: dict[str, float]) -> None:
        tree = ElementTree.fromstring(text)
        joints = {joint.find('child').get('link'): joint for joint in tree.findall('joint')}
        self.links = {link.get('name'): link for link in tree.findall('link')}
        self.poses: dict[str, np.ndarray] = {}
        for name in self.links:
            self._place(name, joints, positions)

    def _place(self, name: str, joints: dict, positions: dict[str, float]) -> np.ndarray:
        if name not in self.poses:
            pose = np.eye(4)
            if name in joints:
                joint = joints[name]
                above = self._place(joint.find('parent').get('link'), joints, positions)
                pose = above @ origin(joint) @ motion(joint, positions.get(joint.get('name'), 0.0))
            self.poses[name] = pose
        return self.poses[name]

    def moments(self, name: str) -> np.ndarray:
        """Return the pseudo-inertia of a link about the root link's origin."""
        inertial = self.links[name].find('inertial')
        if inertial is None:
            return np.zeros((4, 4))
        xx, xy, xz, yy, yz, zz = (
            float(inertial.find('inertia').get(f'i{key}'))
            for key in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
        )
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        central = np.zeros((4, 4))
        central[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
        central[3, 3] = float(inertial.find('mass').get('value'))
        pose = self.poses[name] @ origin(inertial)
        return pose @ central @ pose.T


def origin(tag: ElementTree.Element) -> np.ndarray:
    found = tag.find('origin')
    pose = np.eye(4)
    if found is not None:
        pose[:3, 3] = [float(x) for x in found.get('xyz', '0 0 0').split()]
        rpy = [float(x) for x in found.get('rpy', '0 0 0').split()]
        pose[:3, :3] = Rotation.from_euler('xyz', rpy).as_matrix()
    return pose


def motion(joint: ElementTree.Element, position: float) -> np.ndarray:
    pose = np.eye(4)
    axis = joint.find('axis')
    if axis is None or joint.get('type') == 'fixed':
        return pose
    direction = np.array([float(x) for x in axis.get('xyz').split()])
    direction /= np.linalg.norm(direction)
    if joint.get('type') == 'prismatic':
        pose[:3, 3] = position * direction
    else:
        pose[:3, :3] = Rotation.from_rotvec(position * direction).as_matrix()
    return pose


def assert_same_robot(robot: Robot, q: np.ndarray, locked: dict[str, float]) -> None:
    """Compare poses and inertias of every URDF link with the second reading."""
    positions = {**locked, **dict(zip(robot.joint_names, q, strict=True))}
    second = SecondReading(robot.urdf, positions)
    link_poses = brute_force.link_poses(robot, q)
    moments = [np.zeros((4, 4)) for _ in robot.links]
    for name, expected in second.poses.items():
        link, L_H_U = robot.frame(name)
        np.testing.assert_allclose(
            link_poses[link] @ L_H_U, expected, rtol=0, atol=ROUND_OFF, err_msg=name
        )
        moments[link] += second.moments(name)
    for A_H_L, parameters, expected in zip(link_poses, robot.parameters, moments, strict=True):
        got = A_H_L @ pseudo_inertia(parameters) @ A_H_L.T
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * robot.mass)


@pytest.mark.parametrize(
    'text', [two_link_urdf(), arm_with_wrist_sensor_urdf(), nested_humanoid_urdf()]
)
def test_poses_and_inertias(text, rng):
    robot = Robot.from_urdf(text)
    for _ in range(5):
        assert_same_robot(robot, rng.uniform(-3, 3, len(robot.joint_names)), {})


@pytest.mark.parametrize('name', SHARED)
def test_poses_and_inertias_of_real_robots(name, rng, shared_models):
    robot = shared_robot(shared_models, name)
    assert_same_robot(robot, rng.uniform(-3, 3, len(robot.joint_names)), {})


@pytest.mark.parametrize(
    ('kept', 'locked'),
    [
        (['elbow'], {'shoulder': 4.0, 'lift': 0.1}),
        (['shoulder', 'lift'], {'elbow': -0.7}),
        (['lift'], {}),
        ([], {'shoulder': -9.0, 'elbow': 0.3, 'lift': -0.2}),
    ],
)
def test_locked_joints_merge_their_links(kept, locked, rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), joints=kept, locked_positions=locked)
    assert set(robot.joint_names) == set(kept)
    assert len(robot.links) == len(kept) + 2
    assert_same_robot(robot, rng.uniform(-3, 3, len(kept)), locked)


def test_a_mimic_joint_can_be_left_out(rng, shared_models):
    locked = {'panda_finger_joint1': 0.02, 'panda_finger_joint2': 0.03}
    robot = shared_robot(shared_models, 'panda_wrist_ft', locked_positions=locked)
    assert_same_robot(robot, rng.uniform(-2, 2, 7), locked)


def test_printing_a_robot_says_what_it_consists_of(nested_humanoid):
    shown = (
        "<robot 'nested_humanoid': 10 links, 6 joints, 22.800 kg, 3 FT sensors, "
        '0 accelerometers, 0 gyroscopes, 1 IMUs in use>'
    )
    assert repr(nested_humanoid) == str(nested_humanoid) == shown


@pytest.mark.parametrize('name', ['joints', 'ft_sensors', 'accelerometers', 'gyroscopes', 'imus'])
def test_a_name_alone_is_no_list(name):
    with pytest.raises(ModelError):
        Robot.from_urdf(nested_humanoid_urdf(), **{name: 'head'})
    with pytest.raises(ModelError):
        Robot.from_urdf(nested_humanoid_urdf(), **{name: LinkSensorSpec('head')})


def test_links_are_named_after_their_topmost_urdf_link(nested_humanoid):
    robot = nested_humanoid
    assert robot.link_names[0] == 'root'
    assert 'sole' not in robot.link_names
    assert robot.frame('sole')[0] == robot.link_names.index('foot')
    for link in robot.links[1:]:
        assert (link.joint >= 0) != (link.ft_sensor >= 0)
    assert [link.parent < k for k, link in enumerate(robot.links)] == [True] * len(robot.links)


def test_orders_agree(nested_humanoid):
    robot = nested_humanoid
    joints = [link.joint for link in robot.links if link.joint >= 0]
    assert joints == list(range(len(robot.joint_names)))
    for k, sensor in enumerate(robot.ft_sensors):
        assert robot.links[sensor.child].ft_sensor == k
        assert robot.links[sensor.child].parent == sensor.parent


def test_motion_subspaces(arm_with_wrist_sensor):
    robot = arm_with_wrist_sensor
    axes = {robot.joint_names[link.joint]: link.motion for link in robot.links if link.joint >= 0}
    np.testing.assert_array_equal(axes['shoulder'], [0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(axes['elbow'], [0, 0, 0, 0, 1, 0])
    np.testing.assert_allclose(axes['lift'], [0.6, 0, 0.8, 0, 0, 0], rtol=0, atol=ROUND_OFF)


def test_arrays_are_read_only(nested_humanoid):
    robot = nested_humanoid
    arrays = [robot.parameters, robot.gravity, *(pose for _, pose in robot.frames.values())]
    arrays += [a for link in robot.links for a in (link.P_H_L, link.motion)]
    arrays += [s.child_H_sensor for s in robot.ft_sensors] + [i.L_H_S for i in robot.imus]
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize('name', ['icub_v2_5', 'icub_genova01', 'ergocub_sn001', 'panda_wrist_ft'])
def test_ft_frames_as_another_library_reads_them(name, shared_models):
    robot = shared_robot(shared_models, name)
    sensors = {sensor.name: sensor for sensor in robot.ft_sensors}
    with (shared_models / f'ft_frames_{name}.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert {row['sensor'] for row in rows} == set(sensors)
    for row in rows:
        sensor = sensors[row['sensor']]
        assert sensor.joint == row['joint']
        assert robot.frame(row['first_link'])[0] == sensor.parent
        link, L_H_second = robot.frame(row['second_link'])
        assert link == sensor.child
        on_first = row['wrench_applied_to_link'] == row['first_link']
        assert sensor.direction == (1 if on_first else -1)
        second_H_sensor = np.eye(4)
        second_H_sensor[:3, 3] = [float(row[key]) for key in ('px', 'py', 'pz')]
        second_H_sensor[:3, :3] = np.reshape(
            [float(row[f'r{i}{j}']) for i in '123' for j in '123'], (3, 3)
        )
        expected = L_H_second @ second_H_sensor
        np.testing.assert_allclose(sensor.child_H_sensor, expected, rtol=0, atol=PRINTED)


def test_ft_sensors_are_chosen_by_name_in_the_given_order(nested_humanoid):
    text = nested_humanoid.urdf
    robot = Robot.from_urdf(text, ft_sensors=['foot_sensor', 'arm_sensor'])
    assert [s.name for s in robot.ft_sensors] == ['foot_sensor', 'arm_sensor']
    assert [s.direction for s in robot.ft_sensors] == [-1, 1]
    assert len(robot.submodels) == 3
    assert len(Robot.from_urdf(text, ft_sensors=[]).submodels) == 1


def test_ft_sensors_without_tag_come_as_descriptions(rng):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=1).as_matrix()
    pose[:3, 3] = rng.normal(size=3)
    spec = FtSpec('tip_sensor', 'tip_joint', 'sensor', child_to_parent=False, pose=pose)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), ft_sensors=['wrist_sensor', spec])
    sensor = robot.ft_sensors[1]
    assert (sensor.name, sensor.direction) == ('tip_sensor', -1)
    assert robot.link_names[sensor.child] == 'tip'
    np.testing.assert_array_equal(sensor.child_H_sensor, pose)


def test_a_sensor_that_cannot_be_used_can_be_left_out(shared_models):
    path = shared_models / 'icub_sensorised_ftvariants.urdf'
    with pytest.raises(ModelError):
        Robot.from_urdf(path)
    assert Robot.from_urdf(path, ft_sensors=['l_leg_ft_sensor']).ft_sensors


def test_accelerometers_and_gyroscopes_of_the_real_robot(shared_models):
    robot = shared_robot(shared_models, 'icub_v2_5')
    assert (len(robot.accelerometers), len(robot.gyroscopes)) == (62, 15)
    assert len(robot.imus) == 15
    assert len({imu.name for imu in robot.imus}) == 15


def test_tags_of_one_link_pair_where_their_frames_agree():
    at = '<origin xyz="0.1 0 0" rpy="0 0 1"/>'
    beside = '<origin xyz="0.105 0 0" rpy="0 0 1"/>'
    text = with_tags(
        two_link_urdf(),
        ACC.format('a', 'arm', at),
        GYRO.format('turned', 'arm', '<origin xyz="0.1 0 0" rpy="0 0 1.1"/>'),
        GYRO.format('away', 'arm', '<origin xyz="0.3 0 0" rpy="0 0 1"/>'),
        GYRO.format('other_link', 'body', at),
        GYRO.format('g', 'arm', beside),
        ACC.format('b', 'body', at),
        ACC.format('alone', 'body', '<origin xyz="0.5 0 0"/>'),
        GYRO.format('far_from_alone', 'body', '<origin xyz="0.6 0 0"/>'),
        ACC.format('second', 'arm', at),
        GYRO.format('g2', 'arm', at),
    )
    robot = Robot.from_urdf(text)
    assert [imu.name for imu in robot.imus] == ['a', 'b', 'second']
    link, L_H_arm = robot.frame('arm')
    pose = L_H_arm @ origin(ElementTree.fromstring(f'<s>{at}</s>'))
    assert robot.imus[0].link == link
    np.testing.assert_allclose(robot.imus[0].L_H_S, pose, rtol=0, atol=ROUND_OFF)


def test_sensor_tags_are_frames_too(rng):
    text = with_tags(two_link_urdf(), ACC.format('a', 'arm', '<origin xyz="0.1 0 0"/>'))
    robot = Robot.from_urdf(text, imus=['a', ('named', 'elbow')])
    assert [(imu.name, imu.frame) for imu in robot.imus] == [('a', 'a'), ('named', 'elbow')]
    np.testing.assert_array_equal(robot.imus[0].L_H_S, robot.frame('a')[1])


def places(sensors) -> dict[str, tuple[int, list[float]]]:
    return {s.name: (s.link, s.L_H_S[:3, 3].tolist()) for s in sensors}


def shifted(*xyz: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = xyz
    return pose


@pytest.mark.parametrize('kind', ['accelerometers', 'gyroscopes', 'imus'])
def test_sensors_without_tag_come_as_descriptions(kind, rng):
    pose = shifted(*rng.normal(size=3))
    pose[:3, :3] = Rotation.random(random_state=1).as_matrix()
    chosen = [
        LinkSensorSpec('posed', 'sole', pose),
        LinkSensorSpec('at_joint', 'knee'),
        LinkSensorSpec('head'),
        'hand',
    ]
    robot = Robot.from_urdf(nested_humanoid_urdf(), **{kind: chosen})
    found = {sensor.name: sensor for sensor in getattr(robot, kind)}
    assert list(found) == ['posed', 'at_joint', 'head', 'hand']
    link, L_H_sole = robot.frame('sole')
    assert found['posed'].link == link
    expected = L_H_sole @ pose
    np.testing.assert_allclose(found['posed'].L_H_S, expected, rtol=0, atol=ROUND_OFF)
    assert not found['posed'].L_H_S.flags.writeable
    for name, frame in (('at_joint', 'knee'), ('head', 'head'), ('hand', 'hand')):
        assert found[name].link == robot.frame(frame)[0]
        np.testing.assert_array_equal(found[name].L_H_S, robot.frame(frame)[1])
    if kind != 'imus':
        np.testing.assert_array_equal(robot.frame('posed')[1], found['posed'].L_H_S)


def test_the_frame_of_an_imu_with_a_pose_is_its_own():
    posed, plain = LinkSensorSpec('a', 'arm', shifted(0.1, 0, 0)), LinkSensorSpec('b', 'arm')
    robot = Robot.from_urdf(two_link_urdf(), imus=[posed, plain])
    assert [imu.frame for imu in robot.imus] == ['a', 'arm']


def test_a_description_stands_in_place_of_a_tag_of_its_name():
    text = with_tags(
        two_link_urdf(),
        ACC.format('a', 'arm', '<origin xyz="0.1 0 0"/>'),
        ACC.format('b', 'arm', '<origin xyz="0.2 0 0"/>'),
        ACC.format('c', 'arm', '<origin xyz="0.3 0 0"/>'),
    )
    chosen = [LinkSensorSpec('b', 'body', shifted(0.5, 0, 0)), 'a', LinkSensorSpec('d', 'c')]
    robot = Robot.from_urdf(text, accelerometers=chosen)
    arm = robot.frame('arm')[0]
    expected = {'b': (0, [0.5, 0, 0]), 'a': (arm, [0.1, 0, 0]), 'd': (arm, [0.3, 0, 0])}
    assert places(robot.accelerometers) == expected
    assert [sensor.has_tag for sensor in robot.accelerometers] == [False, True, False]
    # A tag that is not in use is still a frame; one whose place is taken is not.
    assert robot.frame('c')[0] == arm
    assert robot.frame('b')[0] == 0
    assert [sensor.name for sensor in Robot.from_urdf(text).accelerometers] == ['a', 'b', 'c']


def test_descriptions_pair_as_tags_do():
    text = with_tags(two_link_urdf(), GYRO.format('tag', 'arm', '<origin xyz="0.1 0 0"/>'))
    accelerometers = [
        LinkSensorSpec('with_tag', 'arm', shifted(0.1, 0, 0)),
        LinkSensorSpec('board', 'body', shifted(0, 0, 0.2)),
        LinkSensorSpec('alone', 'body', shifted(0, 0, 0.3)),
    ]
    gyroscopes = ['tag', LinkSensorSpec('board', 'body', shifted(0, 0.005, 0.2))]
    sensors = {'accelerometers': accelerometers, 'gyroscopes': gyroscopes}
    robot = Robot.from_urdf(text, **sensors)
    assert [imu.name for imu in robot.imus] == ['with_tag', 'board']
    # Asked for by name, the place is that of the accelerometer, whichever of the two is named.
    for frame in ('with_tag', 'tag'):
        robot = Robot.from_urdf(text, imus=[('imu', frame)], **sensors)
        assert places(robot.imus) == {'imu': (robot.frame('arm')[0], [0.1, 0, 0])}
    robot = Robot.from_urdf(
        text,
        accelerometers=accelerometers,
        gyroscopes=[LinkSensorSpec('gyro', 'body', shifted(0, 0.005, 0.2))],
        imus=[('imu', 'gyro')],
    )
    assert places(robot.imus) == {'imu': (0, [0, 0, 0.2])}


@pytest.mark.parametrize(
    ('gyroscopes', 'why'),
    [
        ([], 'there is no gyroscope'),
        ([LinkSensorSpec('g', 'arm')], "gyroscope 'g' is on another link"),
        ([LinkSensorSpec('g', 'body', shifted(0, 0, 0.2))], "'g' is 0.2 m away.*0.01 m"),
        ([LinkSensorSpec('g', 'body', np.diag([1.0, -1.0, -1.0, 1.0]))], "'g' has other axes"),
        (['arm', LinkSensorSpec('near', 'body', shifted(0, 0, 0.1))], "'near' is 0.1 m away"),
    ],
)
def test_described_sensors_that_make_no_imu_say_why(gyroscopes, why):
    sensors = {'accelerometers': [LinkSensorSpec('acc', 'body')], 'gyroscopes': gyroscopes}
    assert Robot.from_urdf(two_link_urdf(), **sensors).imus == ()
    with pytest.raises(ModelError):
        Robot.from_urdf(two_link_urdf(), **sensors, imus=['acc'])
    for gyroscope in gyroscopes:
        if isinstance(gyroscope, LinkSensorSpec):
            with pytest.raises(ModelError):
                Robot.from_urdf(two_link_urdf(), **sensors, imus=[('imu', gyroscope.name)])


@pytest.mark.parametrize('kind', ['accelerometers', 'gyroscopes', 'imus'])
def test_a_pose_is_not_given_in_a_sensor_tag(kind):
    origin = '<origin xyz="0.1 0 0"/>'
    text = with_tags(
        two_link_urdf(),
        *(tag.format(name, 'arm', at) for tag in (ACC, GYRO)
          for name, at in (('tag', origin), ('body', origin), ('arm', ''))),
    )  # fmt: skip
    for frame in ('tag', 'body'):
        with pytest.raises(ModelError):
            Robot.from_urdf(text, **{kind: [LinkSensorSpec('s', frame, shifted(1, 0, 0))]})
    # A tag at its link leaves nothing to be told apart.
    robot = Robot.from_urdf(text, **{kind: [LinkSensorSpec('s', 'arm', shifted(1, 0, 0))]})
    assert places(getattr(robot, kind)) == {'s': (robot.frame('arm')[0], [1, 0, 0])}


def test_beside_a_fixed_link_there_is_no_imu_unless_asked_for():
    text = with_tags(two_link_urdf(), ACC.format('a', 'arm', ''), GYRO.format('g', 'arm', ''))
    assert len(Robot.from_urdf(text).imus) == 1
    assert Robot.from_urdf(text, fixed_link='body').imus == ()
    assert len(Robot.from_urdf(text, fixed_link='body', imus=['a']).imus) == 1


@pytest.mark.parametrize('old', ['shoulder', 'tip_joint', 'wrist_sensor_joint', 'tip', 'base'])
def test_a_frame_may_be_called_root_joint(old, rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf().replace(f'"{old}"', '"root_joint"'))
    assert len(robot.links) == 5
    assert robot.frame('root_joint')[0] in range(5)
    assert_same_robot(robot, rng.uniform(-3, 3, 3), {})


def test_other_parameters(nested_humanoid, rng):
    values = rng.normal(size=nested_humanoid.parameters.shape)
    changed = nested_humanoid.with_parameters(values)
    np.testing.assert_array_equal(changed.parameters, values)
    assert changed.links is nested_humanoid.links
    assert changed.mass == values[:, 0].sum()
    assert nested_humanoid.mass != changed.mass


@pytest.mark.parametrize(
    ('options', 'error'),
    [
        ({'joints': ['elbw']}, NameNotFound),
        ({'joints': ['tip_joint']}, ModelError),
        ({'ft_sensors': ['wrist']}, NameNotFound),
        ({'ft_sensors': [FtSpec('a', 'elbow')]}, ModelError),
        ({'ft_sensors': [FtSpec('a', 'wrst')]}, NameNotFound),
        ({'ft_sensors': ['wrist_sensor', FtSpec('a', 'wrist_sensor_joint')]}, ModelError),
        ({'ft_sensors': ['wrist_sensor', FtSpec('wrist_sensor', 'tip_joint')]}, ModelError),
        ({'imus': ['tup']}, FrameNotFound),
        ({'imus': [('imu', 'tup')]}, FrameNotFound),
        ({'imus': ['tip', ('tip', 'tool')]}, ModelError),
        ({'imus': [LinkSensorSpec('a', 'tup', np.eye(4))]}, FrameNotFound),
        ({'accelerometers': ['tup']}, FrameNotFound),
        ({'gyroscopes': [LinkSensorSpec('a', 'tup')]}, FrameNotFound),
        ({'gyroscopes': ['tip', 'tip']}, ModelError),
        ({'fixed_link': 'bse'}, FrameNotFound),
        ({'gravity': (0.0, -9.81)}, ShapeError),
        ({'gravity': (0.0, 0.0, np.nan)}, ModelError),
        ({'gravity': (0.0, 0.0, -981.0)}, ModelError),
        ({'gravity': (25.0, 0.0, -1.0)}, ModelError),
        ({'joints': ['lift'], 'locked_positions': {'elbw': 1.0}}, NameNotFound),
        ({'locked_positions': {'elbow': 1.0}}, ModelError),
        ({'locked_positions': {'tip_joint': 1.0}}, ModelError),
        ({'joints': [], 'locked_positions': {'elbow': np.inf}}, ModelError),
    ],
)
def test_what_cannot_be_is_named(options, error):
    with pytest.raises(error):
        Robot.from_urdf(arm_with_wrist_sensor_urdf(), **options)


@pytest.mark.parametrize('kind', ['planar', 'floating'])
def test_joints_of_several_degrees_of_freedom(kind):
    old = '<joint name="elbow" type="revolute">'
    text = arm_with_wrist_sensor_urdf().replace(old, old.replace('revolute', kind))
    with pytest.raises(ModelError):
        Robot.from_urdf(text)
    assert Robot.from_urdf(text, joints=['lift']).joint_names == ('lift',)
    with pytest.raises(ModelError):
        Robot.from_urdf(text, joints=['lift'], locked_positions={'elbow': 0.3})


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        ('</robot>', '<link name="second_root"/></robot>'),
        ('"tip_joint"', '"elbow"'),
        ('<origin xyz="0.3 0 0"', '<origin xyz="0.3 zero 0"'),
        ('</robot>', ACC.format('a', 'tp', '') + '</robot>'),
        ('</robot>', GYRO.format('g', 'tp', '') + '</robot>'),
    ],
)
def test_descriptions_that_make_no_sense(old, new):
    with pytest.raises(ModelError):
        Robot.from_urdf(arm_with_wrist_sensor_urdf().replace(old, new, 1))


def test_other_parameters_of_another_shape(two_link):
    with pytest.raises(ShapeError):
        two_link.with_parameters(np.zeros((3, 10)))


def test_unphysical_inertias_are_read():
    text = arm_with_wrist_sensor_urdf().replace('<mass value="0.1"/>', '<mass value="-0.1"/>')
    assert Robot.from_urdf(text).mass == pytest.approx(9.7)
    massless = two_link_urdf().replace('<mass value="1.5"/>', '<mass value="0"/>')
    np.testing.assert_array_equal(Robot.from_urdf(massless).parameters[1, :4], np.zeros(4))


def test_a_tag_wins_over_a_link_of_its_name():
    urdf = nested_humanoid_urdf().replace(
        '</robot>',
        '<sensor name="head" type="accelerometer"><parent link="head"/>'
        '<origin xyz="0 0 0.2" rpy="0 0 0"/></sensor></robot>',
    )
    (imu,) = Robot.from_urdf(urdf, imus=['head']).imus
    np.testing.assert_array_equal(imu.L_H_S[:3, 3], [0.0, 0.0, 0.2])


def test_what_an_imu_measures_is_what_its_tag_says_where_both_kinds_are_named():
    tags = (
        ACC.format('acc', 'body', '<origin xyz="0.5 0 0"/>')
        + GYRO.format('gyro', 'body', '<origin xyz="0.1 0 0"/>')
        + ACC.format('pair', 'arm', '')
        + GYRO.format('pair_gyro', 'arm', '')
    )
    text = two_link_urdf().replace('</robot>', tags + '</robot>')
    chosen = ['acc', 'gyro', 'pair', 'body', LinkSensorSpec('whole', 'acc', measures='both')]
    imus = Robot.from_urdf(text, imus=chosen).imus
    kinds = ['accelerometer', 'gyroscope', 'both', 'both', 'both']
    assert [imu.measures for imu in imus] == kinds
    (alone,) = Robot.from_urdf(text, imus=['acc']).imus
    assert alone.measures == 'both'
    imus = Robot.from_urdf(text, imus=['pair', 'pair_gyro']).imus
    assert [imu.measures for imu in imus] == ['accelerometer', 'gyroscope']


def test_a_lone_kind_of_tag_stands_for_a_whole_imu():
    tags = ACC.format('acc', 'body', '')
    text = two_link_urdf().replace('</robot>', tags + '</robot>')
    assert Robot.from_urdf(text, imus=['acc']).imus[0].measures == 'both'


@pytest.mark.parametrize(
    'given',
    [{'measures': 'acc'}, {'accelerometer_noise': -1.0}, {'gyroscope_noise': float('nan')}],
)
def test_an_imu_that_cannot_be_is_refused(given):
    with pytest.raises(ModelError):
        LinkSensorSpec('a', **given)


@pytest.mark.parametrize(
    ('options', 'name'),
    [
        ({'imus': ['tup']}, 'tup'),
        ({'accelerometers': ['tup']}, 'tup'),
        ({'imus': [('a', 'tup')]}, 'tup'),
        ({'gyroscopes': [LinkSensorSpec('a', 'tup')]}, 'tup'),
        ({'ft_sensors': ['wrist']}, 'wrist'),
        ({'ft_sensors': [FtSpec('a', 'wrst')]}, 'wrst'),
        ({'joints': ['elbw']}, 'elbw'),
        ({'joints': ['lift'], 'locked_positions': {'elbw': 1.0}}, 'elbw'),
        ({'fixed_link': 'bse'}, 'bse'),
        ({'external_torque_base': 'bse'}, 'bse'),
    ],
)
def test_an_unknown_name_is_refused(options, name):
    with pytest.raises(NameNotFound) as error:
        Robot.from_urdf(arm_with_wrist_sensor_urdf(), **options)
    assert error.value.name == name


@pytest.mark.parametrize(
    'options',
    [
        {'joints': 3},
        {'ft_sensors': [None]},
        {'ft_sensors': 3},
        {'imus': [None]},
        {'imus': [('a', 'tip', 'tool')]},
        {'imus': [('a', 3)]},
        {'imus': 3.0},
        {'accelerometers': [3]},
        {'gravity': None},
        {'gravity': 'down'},
        {'gravity': 9.81},
        {'locked_positions': ['elbow']},
        {'joints': [], 'locked_positions': {'elbow': 'up'}},
        {'joints': [], 'locked_positions': {'elbow': None}},
        {'joints': [None]},
        {'fixed_link': ['base']},
        {'external_torque_base': 3},
    ],
)
def test_arguments_that_are_something_else_are_refused(options):
    """Never with an error of Python alone; the argument is named."""
    with pytest.raises(InertialEstimationError):
        Robot.from_urdf(arm_with_wrist_sensor_urdf(), **options)


def test_what_an_imu_is_taken_to_measure_without_a_tag_is_kept():
    """One tag may stand for a whole IMU, which is for the user to know."""
    urdf = with_tags(
        two_link_urdf(),
        ACC.format('a', 'arm', ''),
        GYRO.format('g', 'body', ''),
        ACC.format('both', 'body', ''),
    )

    def presumed(*imus) -> list[tuple[str, str]]:
        robot = Robot.from_urdf(urdf, imus=imus)
        return [(imu.measures, imu.presumed) for imu in robot.imus]

    assert presumed('a') == [('both', 'gyroscope')]
    assert presumed('both') == presumed('g') == presumed('elbow') == [('both', '')]
    assert presumed(LinkSensorSpec('a', measures='both')) == [('both', '')]
    assert presumed(LinkSensorSpec('a', measures='accelerometer')) == [('accelerometer', '')]
    assert presumed('a', 'g') == [('accelerometer', ''), ('both', '')]
    lone = with_tags(two_link_urdf(), GYRO.format('g', 'body', ''))
    (imu,) = Robot.from_urdf(lone, imus=['g']).imus
    assert (imu.measures, imu.presumed) == ('both', 'accelerometer')
