# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Robot descriptions with other inertials: read again they say so, and nothing else changes."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf

# Moving an inertia to the centre of mass and back.
ROUND_OFF = 1e-14


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
    assert text.count('<inertial>') == robot.urdf.count('<inertial>')
    assert '<mass value="0.0001"/>' in text  # the sole's
    again = Robot.from_urdf(text)
    np.testing.assert_allclose(again.parameters, heavier(robot, ['foot']), rtol=0, atol=ROUND_OFF)


def test_a_light_lump_goes_to_the_topmost_link():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf())
    parameters = heavier(robot, ['tool'], by=0.1)  # 0.06 kg; its tip alone has 0.1
    text = export_urdf(robot, parameters)
    assert text.count('<inertial>') == robot.urdf.count('<inertial>') - 1
    np.testing.assert_allclose(
        Robot.from_urdf(text).parameters, parameters, rtol=0, atol=ROUND_OFF
    )


@pytest.mark.parametrize(
    'link', ['<link name="b"/>', "<link name='b' ></link>", '<link name="b"><inertial/></link>']
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
    with pytest.raises(ModelError, match="'chest' is not fully physically consistent"):
        export_urdf(robot, parameters)
