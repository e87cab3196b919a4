# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Frames and FT tags of a URDF reach the simulator where they belong, and faults are named.

Not covered: the iCub's own URDF (test_simulation_robot), and what the simulator makes of joints
and inertias (test_simulation_truth).
"""

import numpy as np
import pytest

from inertial_estimation.errors import FrameNotFound, ModelError
from inertial_estimation.simulation.description import describe

ROUND_OFF = 1e-14
INERTIA = """
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
"""
TAG = """
  <sensor name="wrist_ft" type="force_torque"><parent joint="wrist"/>
    <force_torque><frame>sensor</frame><measure_direction>child_to_parent</measure_direction>
    </force_torque><origin xyz="0 0.5 0" rpy="0 1.5707963267948966 0"/></sensor>
"""
URDF = f"""<robot name="arm">
  <link name="base">{INERTIA}<visual/></link>
  <link name="hand">{INERTIA}</link>
  <link name="palm"/>
  <link name="tip"/>
  <joint name="wrist" type="fixed"><parent link="base"/><child link="hand"/>
    <origin xyz="1 0 0" rpy="0 0 0"/></joint>
  <joint name="palm_joint" type="fixed"><parent link="hand"/><child link="palm"/>
    <origin xyz="0 0 2" rpy="0 0 1.5707963267948966"/></joint>
  <joint name="tip_joint" type="fixed"><parent link="palm"/><child link="tip"/>
    <origin xyz="3 0 0" rpy="0 0 1.5707963267948966"/></joint>
  {TAG}
</robot>"""


def test_links_without_mass_become_frames_of_the_body_that_carries_them() -> None:
    description = describe(URDF)
    tip = description.placement('tip')
    assert tip.body == 'hand'
    np.testing.assert_allclose(tip.position, [0.0, 3.0, 2.0], atol=ROUND_OFF)
    np.testing.assert_allclose(
        tip.rotation.as_matrix(), np.diag([-1.0, -1.0, 1.0]), atol=ROUND_OFF
    )
    assert description.root == 'base'
    assert description.placement('hand').body == 'hand'
    assert description.text == URDF


def test_the_simulator_gets_bodies_joints_and_nothing_else() -> None:
    text = describe(URDF).bodies_text
    assert 'name="hand"' in text and 'name="wrist"' in text and 'fusestatic="false"' in text
    for gone in ('palm', 'visual', 'sensor'):
        assert gone not in text


def test_an_ft_tag_gives_pose_and_sign() -> None:
    (tag,) = describe(URDF).force_torque
    assert (tag.name, tag.child_link, tag.sign) == ('wrist_ft', 'hand', 1.0)
    np.testing.assert_allclose(tag.placement.position, [0.0, 0.5, 0.0], atol=ROUND_OFF)
    turned = tag.placement.rotation.apply([1.0, 0.0, 0.0])
    np.testing.assert_allclose(turned, [0.0, 0.0, -1.0], atol=ROUND_OFF)


def test_frame_child_ignores_the_origin_and_parent_to_child_turns_the_sign() -> None:
    text = URDF.replace('<frame>sensor', '<frame>child')
    (tag,) = describe(text.replace('child_to_parent', 'parent_to_child')).force_torque
    np.testing.assert_array_equal(tag.placement.position, 0.0)
    np.testing.assert_array_equal(tag.placement.rotation.as_matrix(), np.eye(3))
    assert tag.sign == -1.0


@pytest.mark.parametrize(
    ('old', 'new', 'said'),
    [
        ('</robot>', '', 'no XML'),
        ('<frame>sensor', '<frame>parent', "'wrist_ft' has frame 'parent'"),
        ('child_to_parent', 'both_ways', "direction 'both_ways'"),
        ('<parent joint="wrist"/>', '<parent joint="elbow"/>', "joint 'elbow'"),
        ('<child link="tip"/>', '', "'tip_joint' has no <child>"),
        ('<joint name="tip_joint" type="fixed">', '<joint name="t" type="revolute">', "'tip' mov"),
        ('<link name="palm"/>', '<link name="palm"/><link name="stray"/>', "'stray'"),
    ],
)
def test_faults_are_named(old: str, new: str, said: str) -> None:
    with pytest.raises(ModelError):
        describe(URDF.replace(old, new))


def test_an_unknown_frame_is_named_with_the_closest() -> None:
    with pytest.raises(FrameNotFound):
        describe(URDF).placement('palms')
