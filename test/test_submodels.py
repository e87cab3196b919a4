# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The tree cut at its FT sensors.

Not covered: what is summed over a submodel (test_balance.py).
"""

from itertools import combinations

import brute_force
import pytest

from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose


def names(robot, links):
    return {robot.link_names[k] for k in links}


def test_nested_sensors(nested_humanoid):
    robot = nested_humanoid
    found = {sm.name: names(robot, sm.links) for sm in robot.submodels}
    assert found == {
        'root': {'root', 'chest', 'head', 'shoulder', 'hip'},
        'upper_arm': {'upper_arm', 'hand'},
        'thigh': {'thigh', 'shank'},
        'foot': {'foot'},
    }
    assert robot.submodels[0].name == 'root'
    sensors = [sensor.name for sensor in robot.ft_sensors]
    by_name = {sm.name: sm for sm in robot.submodels}
    arm, leg, foot = (sensors.index(f'{name}_sensor') for name in ('arm', 'leg', 'foot'))
    assert by_name['root'].root_sensor == -1
    assert set(by_name['root'].child_sensors) == {arm, leg}
    assert (by_name['upper_arm'].root_sensor, by_name['upper_arm'].child_sensors) == (arm, ())
    assert (by_name['thigh'].root_sensor, by_name['thigh'].child_sensors) == (leg, (foot,))
    assert (by_name['foot'].root_sensor, by_name['foot'].child_sensors) == (foot, ())


def test_a_robot_without_sensors_is_one_submodel(two_link):
    (submodel,) = two_link.submodels
    assert submodel.links == (0, 1)
    assert (submodel.root, submodel.root_sensor, submodel.child_sensors) == (0, -1, ())


def every_cut(n_sensors):
    return [cut for size in range(n_sensors + 1) for cut in combinations(range(n_sensors), size)]


@pytest.mark.parametrize('cut', every_cut(3))
def test_any_set_of_cuts(nested_humanoid, cut):
    assert_cut(nested_humanoid, cut)


def test_the_cuts_of_a_real_robot(shared_models):
    robot = Robot.from_urdf(shared_models / 'ergocub_sn001.urdf')
    assert len(robot.submodels) == 9
    for cut in every_cut(8)[::7]:
        assert_cut(robot, cut)


def assert_cut(robot, cut):
    """Compare with the oracle and check that everything is listed exactly once."""
    submodels = decompose(robot.links, robot.ft_sensors, cut)
    assert len(submodels) == len(cut) + 1
    roots = brute_force.submodel_roots(robot, cut)
    for submodel in submodels:
        assert list(submodel.links) == [k for k, r in enumerate(roots) if r == submodel.root]
        assert submodel.name == robot.link_names[submodel.root]
    above = [sm.root_sensor for sm in submodels if sm.root_sensor >= 0]
    below = [k for sm in submodels for k in sm.child_sensors]
    assert sorted(above) == sorted(below) == list(cut)
