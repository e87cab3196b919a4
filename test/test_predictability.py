# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What sensors make predictable: the theorems of chapter 7 as answers to a user.

Not covered: the subspaces themselves, see `test_identifiable`.
"""

import pytest

from inertial_estimation.errors import FrameNotFound, NameNotFound
from inertial_estimation.model.predictability import predictability
from inertial_estimation.model.robot import Robot


def test_ft_sensors_of_a_floating_robot_tell_all(nested_humanoid):
    found = predictability(nested_humanoid)
    joints = len(nested_humanoid.joint_names)
    assert found.rank == 10 * len(nested_humanoid.submodels) + 7 * joints
    for lacking in (found.torques, found.torques_without_fts, found.wrenches):
        assert set(lacking.values()) == {0}
    assert tuple(found.torques) == nested_humanoid.joint_names


def test_fewer_sensors_tell_less_and_predict_what_is_left(nested_humanoid):
    few = predictability(nested_humanoid, ft_sensors=['arm_sensor'])
    assert few.rank == 10 * 2 + 7 * len(nested_humanoid.joint_names)
    assert set(few.wrenches) == {'root', 'upper_arm'}
    assert set(few.torques.values()) == {0}


def test_a_bolted_base_needs_efforts_or_a_force_plate(arm_with_wrist_sensor):
    wrist_only = predictability(arm_with_wrist_sensor)
    assert all(lacking > 0 for lacking in wrist_only.torques.values())
    assert wrist_only.wrenches['tool'] == 0 < wrist_only.wrenches['base']
    efforts = predictability(arm_with_wrist_sensor, efforts=arm_with_wrist_sensor.joint_names)
    assert set(efforts.torques.values()) == {0}
    assert efforts.wrenches['base'] > 0
    plate = predictability(arm_with_wrist_sensor, base_wrench=True)
    assert set(plate.torques.values()) == set(plate.wrenches.values()) == {0}
    assert wrist_only.rank < efforts.rank < plate.rank


def test_one_effort_tells_of_the_joints_beyond(arm_with_wrist_sensor):
    found = predictability(arm_with_wrist_sensor, efforts=['elbow'])
    assert found.torques['elbow'] == 0
    assert found.torques['shoulder'] > 0


def test_what_is_touched_all_the_time_tells_nothing(nested_humanoid):
    free = predictability(nested_humanoid)
    whole = nested_humanoid.submodels[-1]
    frame = nested_humanoid.link_names[whole.links[-1]]
    touched = predictability(nested_humanoid, contacts=[frame])
    joints = sum(nested_humanoid.links[k].joint >= 0 for k in whole.links)
    assert touched.rank == free.rank - 10 - 7 * joints
    assert touched.wrenches[whole.name] > 0
    with pytest.raises(FrameNotFound, match='nowhere'):
        predictability(nested_humanoid, contacts=['nowhere'])


def test_without_wrenches_only_efforts_tell(arm_with_wrist_sensor):
    joints = arm_with_wrist_sensor.joint_names
    both = predictability(arm_with_wrist_sensor, efforts=joints)
    efforts = predictability(arm_with_wrist_sensor, efforts=joints, wrenches=())
    assert efforts.rank < both.rank
    assert efforts.wrenches['tool'] > 0 == both.wrenches['tool']


def test_the_table_says_it_in_words(arm_with_wrist_sensor):
    found = predictability(arm_with_wrist_sensor, efforts=['elbow'])
    table = found.table()
    assert str(found.rank) in table.title
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows['torque of elbow'] == ('yes', 'yes')
    assert rows['wrench on tool'] == ('yes', '')
    assert rows['torque of shoulder'][0] == f'{found.torques["shoulder"]} lacking'


def test_unknown_names_are_named(nested_humanoid):
    with pytest.raises(NameNotFound, match='arm_sensor'):
        predictability(nested_humanoid, ft_sensors=['arm_sensr'])
    with pytest.raises(NameNotFound, match='knee'):
        predictability(nested_humanoid, efforts=['kne'])


def test_short_levers_hide_nothing(arm_with_wrist_sensor):
    """The elbow a tenth of a millimetre off the shoulder: small effects are no round-off."""
    urdf = arm_with_wrist_sensor.urdf
    long, short = (
        predictability(
            Robot.from_urdf(urdf.replace('xyz="0.3 0 0"', f'xyz="{x} 0 0"'), fixed_link='base'),
            efforts=['elbow'],
        )
        for x in (0.3, 1e-4)
    )
    assert short == long
