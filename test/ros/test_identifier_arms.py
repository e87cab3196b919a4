# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs of real arms that report efforts, given to the node of the identifier sample by sample.

It has its parameter file as it is. Not covered: its process (test_launch.py), pushes, recursive
against batch (`../test_recursion_arms.py`).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import BenchRobot
from recorded_arms import PANDA, UR10E
from std_msgs.msg import Float64MultiArray
from test_identifier_node import heard, parameters_of, table

from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.identifier_outputs import PROGRESS

START_NS = 1_000_000_000_000


@pytest.mark.parametrize('arm', [UR10E, PANDA], ids=['ur10e', 'panda'])
def test_parameters_of_a_real_arm_are_published(context, arm):
    log, _ = arm.read().between(arm.first, arm.last), arm.description()
    arguments = [
        '--ros-args', '--params-file', str(arm.config),
        '-p', f'robot_description_file:={arm.urdf}',
    ]  # fmt: skip
    robot = BenchRobot(context, {}, IdentifierNode, cli_args=arguments)
    pipeline, tables = robot.estimator.pipeline, robot.heard['parameter_identifier/progress']
    robot.listen(Float64MultiArray, 'parameter_identifier/progress')
    for k, time in enumerate(log.times - log.times[0]):
        sample = pipeline._inputs.assembler.push_joints(
            0, START_NS + round(1e9 * time), log.joints,
            log.positions[k], log.velocities[k], log.efforts[k],
        )  # fmt: skip
        if sample is not None:
            pipeline.take(sample)
        robot.spin_until(lambda: len(tables) == pipeline.report.refits)
    found = dict(zip(PROGRESS, np.array([message.data for message in tables]).T, strict=True))
    needed = pipeline._settings.refit.min_determined
    assert found['rank'][-1] == found['base_parameters'][-1]
    if arm is PANDA:
        # 43 base parameters, as published of this log, and three terms of friction a joint.
        assert found['rank'][-1] == 43 + 3 * 7
    assert found['determined'][-1] >= needed
    # Of equations that were not used before.
    errors = (np.array(found[f'effort_{when}']) for when in ('before', 'after'))
    before, after = (np.sqrt(np.nanmean(np.square(one))) for one in errors)
    assert after < 0.5 * before
    assert consistency_margin(parameters_of(robot)).min() > 0.0
    # The combinations are named once, and those of the newest update are determined.
    names, _, values = table(robot, 'base_parameters')
    assert len(names) == len(set(names)) == len(values) == found['base_parameters'][-1]
    assert all(f'{pipeline.robot.submodels[0].name}: ' in name for name in names)
    assert np.isfinite(values[:, 1]).sum() >= needed
    assert heard(robot, Float64MultiArray, 'inertial_parameters_uncertainty')
    robot.close()
