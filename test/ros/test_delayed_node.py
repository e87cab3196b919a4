# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The node with a filter delay: the stamps and values of what it publishes.

Not covered: what a delayed sample is made of (test_streams.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, PERIOD_NS, START_NS, BenchRobot

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.conversions import NANOSECONDS
from inertial_estimation.signals.assembler import SampleAssembler

N_SAMPLES = 30


@pytest.mark.parametrize('smooth', [False, True])
def test_results_are_those_of_the_library_with_the_stamps_of_the_instants(context, rng, smooth):
    delay = 0.04
    parameters = HUMANOID | {
        'filter.delay': delay,
        'filter.smooth_readings': smooth,
        'filter.window': 0.2,
    }
    robot = BenchRobot(context, parameters)
    try:
        wrenches = robot.listen_to_wrenches()
        stamps = [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)]
        sent = {stamp: robot.send_all(stamp, rng) for stamp in stamps}
        wanted = dict(library(sent, parameters))
        late = round(delay * NANOSECONDS)
        assert list(wanted) == [stamp for stamp in stamps if stamp <= stamps[-1] - late]
        for stamp, expected in wanted.items():
            message = robot.wait_for_stamp(wrenches, stamp)
            found = [
                [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
                for w in message.wrench
            ]
            np.testing.assert_array_equal(found, expected)
        assert np.isfinite(expected).all()
        assert len(wrenches) == len(wanted)
    finally:
        robot.close()


def library(sent, parameters):
    """Yield stamps and wrenches that the library makes of the same readings."""
    settings = EstimatorSettings.from_dict(parameters)
    robot = build_robot(settings, settings.robot_description)
    assembler, estimator = SampleAssembler(robot, settings), build_estimator(settings, robot)
    for stamp_ns, (q, v, wrenches, rates, acceleration) in sent.items():
        for k, wrench in enumerate(wrenches.values()):
            assembler.push_ft(k, stamp_ns, wrench)
        assembler.push_imu(0, stamp_ns, rates, acceleration)
        sample = assembler.push_joints(0, stamp_ns, JOINTS, q, v, np.empty(0))
        if sample is not None:
            yield sample.stamp_ns, estimator.update(sample).wrenches
