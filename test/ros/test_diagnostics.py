# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sentences of the diagnostics that need no running node.

Not covered: the rest of them, which test_estimator_node.py reads from the topic.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.streams import SampleAssembler
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import ERROR, known_joints_task
from inertial_estimation.sample import SensorState


def test_missing_velocities_come_with_the_remedy(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    assembler = SampleAssembler(robot.joint_names, [], ['head'], EstimatorSettings())
    fresh = np.full(len(robot.joint_names), SensorState.FRESH, dtype=np.uint8)
    sample = random_sample(robot, rng)._replace(joint_states=fresh)
    assert known_joints_task(robot, sample, assembler.statistics()).message == 'all fresh'
    sample.velocities[0] = np.nan
    task = known_joints_task(robot, sample, assembler.statistics())
    assert task.level == ERROR
    assert f'no velocities of {robot.joint_names[0]}: ' in task.message
    assert 'velocity_source: filter' in task.message
