# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
URDF text: sensor tags, numbers, and its export with other inertial parameters.

Not covered: links, inertias and joint placements, which Pinocchio reads (test_robot.py).
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model import urdf
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf, inertial_of, lightened

ROUND_OFF = 1e-14  # of a few products of sines and cosines, of an inertia moved there and back
ARM = arm_with_wrist_sensor_urdf()
INERTIAL = (
    '<inertial><mass value="{0}"/><inertia ixx="{1}" ixy="0" ixz="0" iyy="{1}" iyz="0" izz="{1}"/>'
    '</inertial>'
)


def robot_with(*tags):
    return urdf.parse(f'<robot name="r">{"".join(tags)}</robot>')


def ft_tag(joint='j', inside='', origin=''):
    return (
        f'<sensor name="ft" type="force_torque"><parent joint="{joint}"/>'
        f'<force_torque>{inside}</force_torque>{origin}</sensor>'
    )


# Text


def test_files_that_are_no_urdf_are_refused(tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_bytes(b'\xef\xbb\xbf<robot name="r">\r\n</robot>\r\n')
    assert urdf.load_text(path) == '<robot name="r">\r\n</robot>\r\n'
    path.write_bytes(b'\x7fELF\x00\x01\xff')
    for given in (path, tmp_path / 'nowhere.urdf'):
        with pytest.raises(ModelError):
            urdf.load_text(given)


# Tags


def test_sensor_tags_are_read():
    origin = '<origin xyz="0.01 -0.02 0.03" rpy="0.4 0.1 -2.0"/>'
    root = robot_with(ft_tag(inside='<frame> sensor </frame>', origin=origin))
    pose = urdf.ft_specs(root)['ft'].pose
    np.testing.assert_allclose(pose[:3, 3], [0.01, -0.02, 0.03], rtol=0)
    expected = Rotation.from_euler('xyz', (0.4, 0.1, -2.0)).as_matrix()
    np.testing.assert_allclose(pose[:3, :3], expected, rtol=0, atol=ROUND_OFF)
    # Frame child does not even read the origin.
    child = urdf.ft_specs(robot_with(ft_tag(origin='<origin xyz="none"/>')))['ft']
    np.testing.assert_array_equal(child.pose, np.eye(4))
    assert (child.joint, child.child_to_parent) == ('j', True)
    turned = ft_tag(inside='<measure_direction>\n parent_to_child\n</measure_direction>')
    assert not urdf.ft_specs(robot_with(turned))['ft'].child_to_parent
    wrong = robot_with(ft_tag(inside='<frame>parent</frame>'))
    assert isinstance(urdf.ft_specs(wrong)['ft'], ModelError)
    # Tags inside <gazebo> do not count, and names are unique.
    once = ft_tag(), '<sensor name="s" type="gyroscope"><parent link="hand"/></sensor>'
    root = robot_with(*once, '<gazebo reference="j">', *once, '</gazebo>')
    assert list(urdf.ft_specs(root)) == ['ft']
    assert len(urdf.link_sensor_tags(root, 'gyroscope')) == 1
    with pytest.raises(ModelError):
        urdf.ft_specs(robot_with(ft_tag(), ft_tag(joint='k')))
    with pytest.raises(ModelError):
        urdf.link_sensor_tags(robot_with(*once, *once), 'gyroscope')


MASS = '<mass value="1.5"/>'


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        (MASS, '<mass value="nan"/>'),
        ('xyz="0.02 -0.01 0.1"', 'xyz="0.02 0"'),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'),
        ('</robot>', '<link name="second_root"/></robot>'),
        ('<child link="arm"/>', '<child link="amr"/>'),
        ('<limit lower="-3" upper="3" effort="50" velocity="10"/>', ''),
        ('</robot>', '<sensor name="a" type="gyroscope"><parent link="tp"/></sensor></robot>'),
    ],
)
def test_impossible_numbers_and_trees_are_refused(old, new, capfd):
    text = two_link_urdf()
    assert old in text
    with pytest.raises((ModelError, NameNotFound)):
        Robot.from_urdf(text.replace(old, new))
    assert not capfd.readouterr().err


# Export


def heavier(robot, link, by=1.3):
    """Return parameters of a robot one of whose links is heavier."""
    parameters = robot.parameters.copy()
    parameters[robot.link_names.index(link)] *= by
    return parameters


def assert_read_again(robot, parameters, atol=ROUND_OFF):
    text = export_urdf(robot, parameters)
    again = Robot.from_urdf(text, fixed_link=robot.fixed_frame)
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=atol)
    return text


def inertials(text):
    return {tag.get('name'): inertial_of(tag) for tag in urdf.parse(text).iter('link')}


TEXTS = {
    'arm': ARM,
    'humanoid': nested_humanoid_urdf(),
    'empty link': (
        f'<robot name="r"><link name="a">{INERTIAL.format(1, 1)}</link><link name="b"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
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
        f'<link name="wheel">{INERTIAL.format(0.5, 0.01)}</link>'
        f'<link name="base">{INERTIAL.format(20, 2)}</link><link name="arm">'
        f'{INERTIAL.format(1, 0.1)}</link>'
        '<joint name="a" type="fixed"><parent link="footprint"/><child link="wheel"/></joint>'
        '<joint name="b" type="fixed"><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><parent '
        'link="footprint"/><child link="base"/></joint><joint name="j" type="continuous"><parent '
        'link="base"/><child link="arm"/></joint></robot>'
    )
    robot = Robot.from_urdf(text)
    parameters = heavier(robot, 'footprint', by=factor)
    before, after = inertials(text), inertials(assert_read_again(robot, parameters, 1e-12))
    assert lightened(robot, parameters) == {}
    for name in ('footprint', 'wheel', 'arm'):
        np.testing.assert_array_equal(after[name], before[name])
    change = (factor - 1.0) * robot.parameters[0, 0]
    assert after['base'][0] - before['base'][0] == pytest.approx(change)
