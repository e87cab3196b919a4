# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The diagnostics say how the IMUs are used; that they are used so is in test_bodies."""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.link_motion import BodyMotion
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import LinkSensorSpec
from inertial_estimation.sample import SensorState

pytest.importorskip('rclpy')
from inertial_estimation.ros.bodies import BodyWatch
from inertial_estimation.ros.diagnostics import OK, WARN


@pytest.fixture
def robot():
    acc = LinkSensorSpec('acc', 'foot', measures='accelerometer')
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'shank', acc])


def without(sample, k):
    values = sample.proper_accelerations.copy()
    values[k] = np.nan
    return sample._replace(proper_accelerations=values)


def test_each_link_is_listed_with_its_sources(robot, rng):
    watch = BodyWatch(robot, BodyMotion(robot), 'zero')
    (task,) = watch.tasks(random_sample(robot, rng))
    assert (task.name, task.level) == ('motion of links', OK)
    assert set(task.values) == {'head', 'shank', 'foot'}
    said = 'angular velocity: shank, through no joint; angular acceleration: shank, through no'
    assert task.values['foot'].startswith(said)
    assert 'angular acceleration: neglected' in task.values['head']


def test_a_change_is_warned_of(robot, rng):
    watch = BodyWatch(robot, BodyMotion(robot), 'filter')
    sample = random_sample(robot, rng)
    (task,) = watch.tasks(without(sample, 2))
    assert (task.level, task.message) == (WARN, 'without some of foot')
    assert task.values['foot'] == 'no sensor delivers'
    (task,) = watch.tasks(without(sample, 1))
    assert task.message == 'without some of shank'
    assert task.values['shank'].endswith('acceleration: foot, through no joint')
    rates = np.full_like(sample.angular_velocities, np.nan)
    (task,) = watch.tasks(sample._replace(angular_velocities=rates))
    assert task.level == WARN
    assert watch.tasks(sample)[0].level == OK


def test_a_fixed_robot_has_none(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='foot')
    assert BodyWatch(robot, BodyMotion(robot), 'filter').tasks(random_sample(robot, rng)) == []


def test_an_imu_that_delivers_a_part_is_not_warned_of_twice(robot, rng):
    """Its own task warns of it; what else is missing still shows."""
    watch = BodyWatch(robot, BodyMotion(robot), 'filter')
    sample = random_sample(robot, rng)
    rates = sample.angular_velocities.copy()
    rates[1] = np.nan
    states = np.array([SensorState.FRESH, SensorState.PARTIAL, SensorState.FRESH], dtype=np.uint8)
    sample = sample._replace(angular_velocities=rates, imu_states=states)
    (task,) = watch.tasks(sample)
    assert (task.level, task.message) == (OK, 'by what IMUs deliver, of shank a part')
    assert 'angular velocity: head' in task.values['shank']
    (task,) = watch.tasks(without(sample, 2))
    assert (task.level, task.message) == (WARN, 'without some of foot')
