# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensor tags, joints and numbers of URDF text; text that makes no sense is refused.

Not covered: links, inertias and joint placements, which Pinocchio reads (test_robot.py).
"""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model import urdf
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec
from inertial_estimation.model.urdf import encoded

# A few products of sines and cosines.
ROUND_OFF = 1e-14
FT_TAG = """
<sensor name="{name}" type="force_torque"><parent joint="{joint}"/>
  <force_torque>{inside}</force_torque>{origin}</sensor>"""


def robot_with(*tags):
    return urdf.parse(f'<robot name="r">{"".join(tags)}</robot>')


def ft_tag(name='ft', joint='j', inside='', origin=''):
    return FT_TAG.format(name=name, joint=joint, inside=inside, origin=origin)


def link_tag(name, kind, link='hand', origin=''):
    return f'<sensor name="{name}" type="{kind}"><parent link="{link}"/>{origin}</sensor>'


def joint_tag(name, kind, inside=''):
    return f'<joint name="{name}" type="{kind}">{inside}</joint>'


@pytest.mark.parametrize('before', ['', '\ufeff', ' \n\t', '<?xml version="1.0"?>\n'])
def test_text_is_told_from_a_path(before):
    text = before + '<robot name="r"/>'
    assert urdf.load_text(text) == text
    assert urdf.parse(text).get('name') == 'r'


@pytest.mark.parametrize('kind', [str, Path])
def test_a_file_is_read(tmp_path, kind):
    path = tmp_path / 'robot.urdf'
    path.write_text('<robot name="ü"/>', encoding='utf-8')
    assert urdf.load_text(kind(path)) == '<robot name="ü"/>'


def test_a_missing_file_is_named():
    with pytest.raises(ModelError):
        urdf.load_text('nowhere/robot.urdf')


@pytest.mark.parametrize('given', [None, 5, ElementTree.Element('robot')])
def test_what_is_neither_text_nor_path_is_named(given):
    with pytest.raises(ModelError):
        urdf.load_text(given)


LATIN_1 = '<?xml version="1.0" encoding="ISO-8859-1"?>\r\n<robot name="Prüfstand"/>'


@pytest.mark.parametrize(
    'data',
    [
        b'<robot name="r">\r\n</robot>\r\n',
        '\ufeff<?xml version="1.0" encoding="UTF-8"?>\n<robot name="\u00fc"/>'.encode(),
        '\ufeff<?xml version="1.0" encoding="ISO-8859-1"?>\n<robot name="\u00fc"/>'.encode(),
        LATIN_1.encode('latin-1'),
    ],
)
def test_line_ends_and_encoding_are_kept(tmp_path, data):
    path = tmp_path / 'robot.urdf'
    path.write_bytes(data)
    text = urdf.load_text(path)
    assert encoded(text) == data
    assert urdf.parse(text).get('name') in ('r', '\u00fc', 'Prüfstand')


@pytest.mark.parametrize(
    'data',
    [
        b'\xff\xfe\x00\xd8',
        b'\x7fELF\x00\x01',
        b'<robot>\n<!-- \xfc --></robot>',
        b'<?xml version="1.0" encoding="UTF-7.5"?><robot/>',
        b'<?xml version="1.0" encoding="UTF-16"?><robot/> ',
        b'<?xml version="1.0" encoding="us-ascii"?><robot name="\xc3\xbc"/>',
    ],
)
def test_a_file_that_is_no_text_is_named(tmp_path, data):
    path = tmp_path / 'robot.urdf'
    path.write_bytes(data)
    with pytest.raises(ModelError):
        urdf.load_text(path)


@pytest.mark.parametrize(
    'text',
    ['<robot', '<robot></sensor>', '<sdf/>', '<mujoco><robot/></mujoco>'],
)
def test_text_that_is_no_robot_is_refused(text):
    with pytest.raises(ModelError):
        urdf.parse(text)


def test_frame_child_ignores_the_origin():
    root = robot_with(ft_tag(inside='<frame>child</frame>', origin='<origin xyz="1 2 3"/>'))
    np.testing.assert_array_equal(urdf.ft_specs(root)['ft'].pose, np.eye(4))


def test_frame_child_does_not_even_read_the_origin():
    root = robot_with(ft_tag(inside='<frame>child</frame>', origin='<origin xyz="none"/>'))
    assert isinstance(urdf.ft_specs(root)['ft'], FtSpec)


def test_frame_sensor_takes_rotation_and_position():
    rpy = (0.4, 0.1, -2.0)
    origin = '<origin xyz="0.01 -0.02 0.03" rpy="0.4 0.1 -2.0"/>'
    root = robot_with(ft_tag(inside='<frame> sensor </frame>', origin=origin))
    pose = urdf.ft_specs(root)['ft'].pose
    np.testing.assert_allclose(pose[:3, 3], [0.01, -0.02, 0.03], rtol=0)
    expected = Rotation.from_euler('xyz', rpy).as_matrix()
    np.testing.assert_allclose(pose[:3, :3], expected, rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize(
    ('inside', 'frame', 'child_to_parent'),
    [
        ('', 'child', True),
        ('<measure_direction>child_to_parent</measure_direction>', 'child', True),
        ('<measure_direction>\n parent_to_child\n</measure_direction>', 'child', False),
        ('<frame>sensor</frame>', 'sensor', True),
    ],
)
def test_frame_and_direction(inside, frame, child_to_parent):
    spec = urdf.ft_specs(robot_with(ft_tag(inside=inside)))['ft']
    assert (spec.name, spec.joint) == ('ft', 'j')
    assert (spec.frame, spec.child_to_parent) == (frame, child_to_parent)


@pytest.mark.parametrize(
    'tag',
    [
        ft_tag(inside='<frame>parent</frame>'),
        ft_tag(inside='<frame>world</frame>'),
        ft_tag(inside='<measure_direction>up</measure_direction>'),
        ft_tag(joint=''),
        '<sensor name="ft" type="force_torque"/>',
    ],
)
def test_a_tag_that_cannot_be_used_says_why(tag):
    reason = urdf.ft_specs(robot_with(tag))['ft']
    assert isinstance(reason, ModelError)
    with pytest.raises(ModelError):
        raise reason


@pytest.mark.parametrize('xyz', ['0.1 foo 0.2', '0.1 0.2', '0 0 0 0', '', 'nan 0 0', '0,0,0'])
@pytest.mark.parametrize('key', ['xyz', 'rpy'])
def test_an_origin_that_is_not_three_numbers_names_its_sensor(key, xyz):
    origin = f'<origin {key}="{xyz}"/>'
    reason = urdf.ft_specs(robot_with(ft_tag(inside='<frame>sensor</frame>', origin=origin)))['ft']
    with pytest.raises(ModelError):
        raise reason
    with pytest.raises(ModelError):
        urdf.link_sensor_tags(robot_with(link_tag('g', 'gyroscope', origin=origin)), 'gyroscope')


def test_tags_of_one_name_are_refused():
    with pytest.raises(ModelError):
        urdf.ft_specs(robot_with(ft_tag(), ft_tag(joint='k')))
    twice = robot_with(link_tag('a', 'accelerometer'), link_tag('a', 'accelerometer', 'foot'))
    with pytest.raises(ModelError):
        urdf.link_sensor_tags(twice, 'accelerometer')


def test_an_accelerometer_and_a_gyroscope_may_share_a_name():
    root = robot_with(link_tag('imu', 'accelerometer'), link_tag('imu', 'gyroscope'))
    for kind in ('accelerometer', 'gyroscope'):
        assert [name for name, _, _ in urdf.link_sensor_tags(root, kind)] == ['imu']


def test_sensors_inside_gazebo_are_not_counted_again():
    once = [ft_tag(), link_tag('a', 'accelerometer'), link_tag('g', 'gyroscope')]
    root = robot_with(*once, '<gazebo reference="j">', *once, '</gazebo>')
    assert list(urdf.ft_specs(root)) == ['ft']
    assert len(urdf.link_sensor_tags(root, 'accelerometer')) == 1
    assert len(urdf.link_sensor_tags(root, 'gyroscope')) == 1


def test_sensors_of_other_kinds_are_left_alone():
    root = robot_with('<sensor name="eye" type="camera"><parent link="hand"/></sensor>')
    assert urdf.ft_specs(root) == {}
    assert urdf.link_sensor_tags(root, 'accelerometer') == []


def test_joint_types():
    mimic = '<mimic joint="a"/>'
    root = robot_with(joint_tag('a', 'revolute'), joint_tag('b', 'prismatic', mimic))
    assert urdf.joint_types(root) == {'a': 'revolute', 'b': 'mimic'}


def test_by_default_everything_that_moves_is_chosen():
    types = {'a': 'revolute', 'b': 'fixed', 'c': 'continuous', 'd': 'prismatic'}
    assert urdf.check_joints(types, None) == ['a', 'c', 'd']
    assert urdf.check_joints(types, ['d', 'a']) == ['d', 'a']


@pytest.mark.parametrize('kind', ['mimic', 'planar', 'floating', 'spherical', ''])
def test_a_joint_that_cannot_be_treated_is_named(kind):
    types = {'a': 'revolute', 'odd': kind}
    with pytest.raises(ModelError) as caught:
        urdf.check_joints(types, None)
    # No setting of the node and no option of a command.
    assert 'locked_positions' not in str(caught.value)
    with pytest.raises(ModelError):
        urdf.check_joints(types, ['odd'])
    assert urdf.check_joints(types, ['a']) == ['a']


def test_a_fixed_joint_cannot_be_chosen():
    with pytest.raises(ModelError):
        urdf.check_joints({'b': 'fixed'}, ['b'])


def test_an_unknown_joint_brings_the_closest_ones():
    with pytest.raises(NameNotFound):
        urdf.check_joints({'elbow': 'revolute', 'knee': 'revolute'}, ['elbw'])


def test_only_the_joints_of_sensors_in_use_become_free():
    root = urdf.parse(nested_humanoid_urdf())
    text = urdf.free_ft_joints(root, [FtSpec('any', 'leg_sensor_joint')])
    types = urdf.joint_types(ElementTree.fromstring(text))
    assert types['leg_sensor_joint'] == 'floating'
    assert types['arm_sensor_joint'] == types['sole_joint'] == 'fixed'


@pytest.mark.parametrize('kind', ['revolute', 'continuous', 'prismatic', 'planar', 'floating'])
def test_a_sensor_on_a_moving_joint_is_refused_by_name(kind):
    root = robot_with(joint_tag('wrist', kind))
    with pytest.raises(ModelError):
        urdf.free_ft_joints(root, [FtSpec('ft', 'wrist')])


def test_a_sensor_on_no_joint_brings_the_closest_ones():
    root = urdf.parse(arm_with_wrist_sensor_urdf())
    with pytest.raises(NameNotFound):
        urdf.free_ft_joints(root, [FtSpec('ft', 'wrist_sensr_joint')])


def test_two_sensors_on_one_joint_are_both_named():
    root = robot_with(joint_tag('wrist', 'fixed'))
    with pytest.raises(ModelError):
        urdf.free_ft_joints(root, [FtSpec('one', 'wrist'), FtSpec('two', 'wrist')])


def test_roll_pitch_yaw_are_about_fixed_axes(rng):
    for rpy in rng.uniform(-4, 4, (20, 3)):
        pose = urdf.pose_from_xyz_rpy([1, 2, 3], rpy)
        expected = Rotation.from_euler('xyz', rpy).as_matrix()
        np.testing.assert_allclose(pose[:3, :3], expected, rtol=0, atol=ROUND_OFF)
        np.testing.assert_array_equal(pose[:, 3], [1, 2, 3, 1])


MASS = '<mass value="1.5"/>'
IXX = 'ixx="0.03"'
COM = 'xyz="0.02 -0.01 0.1"'
PLACE = 'xyz="0.1 0 0.3"'
AXIS = '<axis xyz="0 1 0"/>'


def read_with(old, new):
    text = two_link_urdf()
    assert old in text
    return Robot.from_urdf(text.replace(old, new))


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        (MASS, '<mass value="nan"/>'),
        (MASS, '<mass value="1.5 "/>'),
        (MASS, '<mass value="1e400"/>'),
        (MASS, '<mass value="1_5"/>'),
        (MASS, '<mass/>'),
        (MASS, ''),
        (IXX, 'ixx="inf"'),
        (IXX, ''),
        (COM, 'xyz="0.02 nan 0"'),
        (COM, 'xyz="0.02 0"'),
        (PLACE, 'xyz="0.1 a 0.3"'),
        (AXIS, '<axis xyz="0 nan 0"/>'),
        (AXIS, '<axis xyz="0 0 0"/>'),
    ],
)
def test_numbers_that_are_none_are_refused(old, new, capfd):
    with pytest.raises(ModelError):
        read_with(old, new)
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('mass', [' 1.5', '+1.5', '15e-1', '.15E1', '1.5'])
def test_numbers_may_be_written_in_any_way(mass, capfd):
    assert read_with(MASS, f'<mass value="{mass}"/>').parameters[1, 0] == 1.5
    assert capfd.readouterr().err == ''


def test_a_link_may_have_no_inertia_at_all_and_a_fixed_joint_no_axis():
    text = two_link_urdf().replace(
        '</robot>',
        """<link name="tip"/>
        <joint name="tip_joint" type="fixed"><parent link="arm"/><child link="tip"/>
        <axis xyz="0 0 0"/></joint></robot>""",
    )
    assert Robot.from_urdf(text).frame('tip')[0] == 1
