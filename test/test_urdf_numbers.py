# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The numbers of a URDF that the parser behind Pinocchio drops, or answers in many lines.

Not covered: the numbers of sensor tags (test_urdf.py).
"""

import pytest
from robots import two_link_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot

MASS = '<mass value="1.5"/>'
IXX = 'ixx="0.03"'
COM = 'xyz="0.02 -0.01 0.1"'
PLACE = 'xyz="0.1 0 0.3"'
AXIS = '<axis xyz="0 1 0"/>'


def read(old, new):
    text = two_link_urdf()
    assert old in text
    return Robot.from_urdf(text.replace(old, new))


@pytest.mark.parametrize(
    ('old', 'new', 'complaint'),
    [
        (MASS, '<mass value="nan"/>', "link 'arm': <mass value='nan'> is no finite number"),
        (MASS, '<mass value="1.5 "/>', "link 'arm': <mass value='1.5 '>"),
        (MASS, '<mass value="1e400"/>', "link 'arm': <mass value='1e400'>"),
        (MASS, '<mass value="1_5"/>', "link 'arm': <mass value='1_5'>"),
        (MASS, '<mass/>', "link 'arm': <mass value=''>"),
        (MASS, '', "link 'arm': its <inertial> lacks <mass>"),
        (IXX, 'ixx="inf"', "link 'arm': <inertia ixx='inf'>"),
        (IXX, '', "link 'arm': <inertia ixx=''>"),
        (COM, 'xyz="0.02 nan 0"', "link 'body': <origin xyz='0.02 nan 0'> is not three"),
        (COM, 'xyz="0.02 0"', "link 'body': <origin xyz='0.02 0'> is not three"),
        (PLACE, 'xyz="0.1 a 0.3"', "joint 'elbow': <origin xyz='0.1 a 0.3'> is not three"),
        (AXIS, '<axis xyz="0 nan 0"/>', "joint 'elbow': <axis xyz='0 nan 0'> is not three"),
        (AXIS, '<axis xyz="0 0 0"/>', "joint 'elbow': <axis xyz='0 0 0'> has no direction"),
    ],
)
def test_what_is_no_number_is_named(old, new, complaint, capfd):
    with pytest.raises(ModelError) as caught:
        read(old, new)
    assert complaint in str(caught.value)
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('mass', [' 1.5', '+1.5', '15e-1', '.15E1', '1.5'])
def test_numbers_may_be_written_in_any_way(mass, capfd):
    assert read(MASS, f'<mass value="{mass}"/>').parameters[1, 0] == 1.5
    assert capfd.readouterr().err == ''


def test_a_link_may_have_no_inertia_at_all_and_a_fixed_joint_no_axis():
    text = two_link_urdf().replace(
        '</robot>',
        """<link name="tip"/>
        <joint name="tip_joint" type="fixed"><parent link="arm"/><child link="tip"/>
        <axis xyz="0 0 0"/></joint></robot>""",
    )
    assert Robot.from_urdf(text).frame('tip')[0] == 1
