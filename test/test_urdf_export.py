# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Robot descriptions with other inertials: read again they say so, and nothing else changes."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse
from inertial_estimation.model.urdf_export import export_urdf, inertial_of, lightened

# Moving an inertia to the centre of mass and back.
ROUND_OFF = 1e-14
INERTIAL = (
    '<inertial><mass value="{0}"/><inertia ixx="{1}" ixy="0" ixz="0" iyy="{1}" iyz="0" izz="{1}"/>'
    '</inertial>'
)


def heavier(robot, links, by=1.3):
    """Return parameters of a robot whose links are some bodies heavier."""
    parameters = robot.parameters.copy()
    for link in links:
        parameters[robot.link_names.index(link)] *= by
    return parameters


@pytest.mark.parametrize('urdf', [arm_with_wrist_sensor_urdf, nested_humanoid_urdf])
def test_what_is_written_is_read(urdf, rng):
    robot = Robot.from_urdf(urdf())
    parameters = robot.parameters * rng.uniform(1.0, 2.0, (len(robot.links), 1))
    again = Robot.from_urdf(export_urdf(robot, parameters))
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=ROUND_OFF)


def test_all_else_stays_byte_for_byte():
    robot = Robot.from_urdf(
        '<?xml version="1.0"?>\n<!-- <link name="upper"> é -->\n'
        + arm_with_wrist_sensor_urdf().replace('  ', '\t')
    )
    text = export_urdf(robot, heavier(robot, ['upper']))
    old, new = robot.urdf, text
    assert export_urdf(robot, robot.parameters) == old
    start = old.index('<inertial>', old.rindex('<link name="upper">'))
    stop = old.index('</inertial>', start) + len('</inertial>')
    assert new.startswith(old[:start])
    assert new.endswith(old[stop:])
    assert 'mass value="2.6"' in new[start : len(new) - len(old) + stop]


def test_lumped_links_keep_theirs_as_long_as_the_rest_is_a_body():
    robot = Robot.from_urdf(nested_humanoid_urdf())
    text = export_urdf(robot, heavier(robot, ['foot']))
    assert lightened(robot, heavier(robot, ['foot'])) == {}
    assert text.count('<inertial>') == robot.urdf.count('<inertial>')
    assert '<mass value="0.0001"/>' in text  # the sole's
    again = Robot.from_urdf(text)
    np.testing.assert_allclose(again.parameters, heavier(robot, ['foot']), rtol=0, atol=ROUND_OFF)


def test_links_of_a_light_lump_keep_an_equal_share():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf())
    parameters = heavier(robot, ['tool'], by=0.1)  # 0.06 kg; its tip alone has 0.1
    text = export_urdf(robot, parameters)
    assert text.count('<inertial>') == robot.urdf.count('<inertial>')
    again = Robot.from_urdf(text)
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=ROUND_OFF)
    tags = {tag.get('name'): tag for tag in parse(text).iter('link')}
    bodies = np.array([inertial_of(tags[name]) for name in ('tool', 'tip')])
    assert (consistency_margin(bodies) > 0).all()
    # Half way to where there is none: no less than half of what the whole has.
    whole = parameters[robot.link_names.index('tool')]
    assert consistency_margin(bodies[0]) > 0.49 * consistency_margin(whole)
    before = inertial_of({t.get('name'): t for t in parse(robot.urdf).iter('link')}['tip'])
    np.testing.assert_allclose(bodies[1] / bodies[1][0], before / before[0], rtol=0, atol=1e-12)
    assert lightened(robot, parameters) == {'tip': pytest.approx(bodies[1][0] / before[0])}


@pytest.mark.parametrize('frame', ['', INERTIAL.format(1e-3, 1e-6)])
@pytest.mark.parametrize('factor', [1.0 - 1e-6, 1.0 + 1e-6, 1.2])
def test_the_heaviest_link_takes_what_is_new_where_the_topmost_is_a_frame(frame, factor):
    """Many descriptions begin with a link that is but a name for where the robot stands."""
    text = (
        f'<robot name="r"><link name="footprint">{frame}</link>'
        f'<link name="wheel">{INERTIAL.format(0.5, 0.01)}</link>'
        f'<link name="base">{INERTIAL.format(20, 2)}</link><link name="arm">'
        f'{INERTIAL.format(1, 0.1)}</link>'
        '<joint name="a" type="fixed"><parent link="footprint"/><child link="wheel"/></joint>'
        '<joint name="b" type="fixed"><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><parent '
        'link="footprint"/><child link="base"/></joint><joint name="j" type="continuous"><parent '
        'link="base"/><child link="arm"/></joint></robot>'
    )
    robot = Robot.from_urdf(text)
    parameters = heavier(robot, ['footprint'], by=factor)
    written = export_urdf(robot, parameters)
    found = Robot.from_urdf(written).parameters
    np.testing.assert_allclose(found, parameters, rtol=0, atol=20 * ROUND_OFF)
    assert lightened(robot, parameters) == {}
    before, after = (
        {tag.get('name'): inertial_of(tag) for tag in parse(one).iter('link')}
        for one in (text, written)
    )
    for name in ('footprint', 'wheel', 'arm'):
        np.testing.assert_array_equal(after[name], before[name])
    change = (factor - 1.0) * robot.parameters[0, 0]
    assert after['base'][0] - before['base'][0] == pytest.approx(change)


def test_links_beyond_locked_joints_keep_a_mass(rng):
    """They move in other programs, which refuse what moves without mass."""
    free = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    locked = Robot.from_urdf(
        arm_with_wrist_sensor_urdf(),
        fixed_link='base',
        joints=['lift'],
        locked_positions={'shoulder': 0.4, 'elbow': -0.7},
    )
    # A third of the whole, which no body can be that has all but the topmost link.
    parameters = locked.parameters / 3.0
    text = export_urdf(locked, parameters)
    again = Robot.from_urdf(
        text,
        fixed_link='base',
        joints=['lift'],
        locked_positions={'shoulder': 0.4, 'elbow': -0.7},
    )
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=ROUND_OFF)
    moving = Robot.from_urdf(text, fixed_link='base')
    heavy = free.parameters[:, 0] > 0
    assert (moving.parameters[heavy, 0] > 0).all()
    assert (consistency_margin(moving.parameters[heavy]) > 0).all()


def test_a_massless_inertial_of_a_light_lump_stays_massless():
    text = arm_with_wrist_sensor_urdf()
    start = text.index('<mass', text.index('<link name="tip">'))
    text = text[:start] + '<mass value="0"/>' + text[text.index('/>', start) + 2 :]
    robot = Robot.from_urdf(text)
    parameters = heavier(robot, ['tool'], by=1e-3)
    again = Robot.from_urdf(export_urdf(robot, parameters))
    np.testing.assert_allclose(again.parameters, parameters, rtol=0, atol=ROUND_OFF)


def test_small_changes_are_written():
    robot = Robot.from_urdf(nested_humanoid_urdf())
    parameters = heavier(robot, ['foot'], by=1.0 + 1e-9)
    text = export_urdf(robot, parameters)
    assert text != robot.urdf
    np.testing.assert_allclose(
        Robot.from_urdf(text).parameters, parameters, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize('quote', ['"', "'"])
def test_signs_within_quotes_end_no_tag(quote):
    text = arm_with_wrist_sensor_urdf()
    for tag in ('link', 'inertial'):
        text = text.replace(f'<{tag}', f'<{tag} note={quote}a > b{quote}')
    robot = Robot.from_urdf(text)
    parameters = heavier(robot, ['upper'])
    again = export_urdf(robot, parameters)
    assert again.count('a > b') == text.count('a > b') - 1  # the new inertial has no note
    np.testing.assert_allclose(
        Robot.from_urdf(again).parameters, parameters, rtol=0, atol=ROUND_OFF
    )


def test_a_text_that_declares_another_encoding_is_cut_where_its_tags_are():
    text = '<?xml version="1.0" encoding="latin-1"?><!-- äöü -->' + arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(text.replace('"upper"', '"übër"'))
    parameters = heavier(robot, ['übër'])
    again = export_urdf(robot, parameters)
    assert 'äöü' in again
    np.testing.assert_allclose(
        Robot.from_urdf(again).parameters, parameters, rtol=0, atol=ROUND_OFF
    )


@pytest.mark.parametrize(
    'link',
    [
        '<link name="b"/>',
        '<link note="> />" name="b"/>',
        "<link name='b' ></link>",
        '<link name="b"><inertial/></link>',
    ],
)
def test_a_link_without_inertial_gets_one(link):
    text = (
        '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0"'
        f' ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>{link}<joint name="j" '
        'type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    if '<inertial/>' in text:
        with pytest.raises(ModelError):
            Robot.from_urdf(text)
        return
    robot = Robot.from_urdf(text)
    body = np.array([1.0, 0.1, 0, 0, 1, 0, 1, 0, 0, 1])
    parameters = robot.parameters.copy()
    parameters[1] = body
    found = Robot.from_urdf(export_urdf(robot, parameters)).parameters
    np.testing.assert_allclose(found, parameters, rtol=0, atol=ROUND_OFF)


def test_no_body_no_export():
    robot = Robot.from_urdf(nested_humanoid_urdf())
    parameters = robot.parameters.copy()
    parameters[robot.link_names.index('chest'), 4] *= 5
    with pytest.raises(ModelError):
        export_urdf(robot, parameters)
