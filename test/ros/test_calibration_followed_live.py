# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The identifier beside an estimator whose FT calibration changes: the torques stay.

Its memory is in `../test_calibration_followed.py`.
"""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import LATCHED, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from free_air import smooth_motion, with_readings
from geometry_msgs.msg import WrenchStamped
from robots import nested_humanoid_urdf
from std_msgs.msg import String

from inertial_estimation.calibration.calibration_file import (
    Provenance,
    SensorCalibration,
    to_json,
)
from inertial_estimation.calibration.offset_from_model import METHOD
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.calibration_updates import TOPIC
from inertial_estimation.ros.identifier_node import IdentifierNode

OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
NOISE = 0.05
# Of answers of a minimisation that stops at a millionth of its decrease.
SMALL = 1e-4


@pytest.fixture
def bench(context):
    """Return an identifier after seven seconds of a robot that is heavier than its URDF."""
    given = {
        'robot_description': nested_humanoid_urdf(),
        'fixed_link': 'root',
        'refit.min_determined': 3,
        'calibration_file': '/nowhere/calibration.yaml',
    }
    robot = BenchRobot(context, given, IdentifierNode)
    model = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')
    robot.samples = with_readings(model, smooth_motion(model, 7.5), 1.2 * model.parameters)
    noise = np.random.default_rng(0).normal(size=robot.samples.ft_readings.shape)
    robot.samples.ft_readings[:] += OFFSET + NOISE * noise
    for k in range(len(robot.samples)):
        robot.estimator.pipeline.take(robot.samples[k])
    robot.listen_to_diagnostics()
    robot.publisher_of_calibration = robot.node.create_publisher(String, TOPIC, LATCHED)
    robot.names = tuple(sensor.name for sensor in model.ft_sensors)
    yield robot
    robot.close()


def publish(bench, sensors, robot='nested_humanoid'):
    """Publish a calibration, and wait until the identifier has read it."""
    follower = bench.estimator.pipeline._calibration
    before = follower.task().values
    bench.publisher_of_calibration.publish(String(data=to_json(robot, sensors)))
    bench.spin_until(lambda: follower.task().values != before)


def torques(bench):
    """Return the torques with the identified parameters and offsets."""
    pipeline = bench.estimator.pipeline
    refit, calibration = pipeline.refit, pipeline.identifier.calibration
    found = np.array([refit.offsets[name] for name in bench.names])
    estimator = WrenchEstimator(
        pipeline.robot.with_parameters(refit.parameters),
        calibration=calibration.with_offsets(calibration.offsets + found),
    )
    return estimator.batch(bench.samples).torques


def test_other_offsets_keep_parameters_and_torques(bench, rng, monkeypatch):
    pipeline, tares = bench.estimator.pipeline, []
    take = pipeline.identifier.set_calibration
    monkeypatch.setattr(
        pipeline.identifier,
        'set_calibration',
        lambda calibration, tared: tares.append(tared) or take(calibration, tared),
    )
    pipeline._refit()
    before, parameters = torques(bench), pipeline.refit.parameters
    assert pipeline.refit.refitted
    tared = {name: SensorCalibration(offset=OFFSET + rng.normal(size=6)) for name in bench.names}
    step = Provenance(method=f'{METHOD}, one support: foot', date='now')
    tared['foot_sensor'] = replace(tared['foot_sensor'], provenance=(step,))
    publish(bench, tared)
    assert [set(one) for one in tares] == [{'foot_sensor'}]
    np.testing.assert_allclose(pipeline.refit.parameters, parameters, atol=SMALL)
    np.testing.assert_allclose(torques(bench), before, atol=SMALL * np.abs(before).max())
    # The identifier publishes the offset that is left.
    bench.listen(WrenchStamped, 'parameter_identifier/ft_offset/foot_sensor', LATCHED)
    heard = bench.heard['parameter_identifier/ft_offset/foot_sensor']
    bench.spin_until(lambda: heard)
    left = (OFFSET - tared['foot_sensor'].offset)[0]
    assert abs(heard[-1].wrench.force.x - left) < 1.0
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.OK
    assert figure(status, 'from') == 'the estimator' and figure(status, 'changes') == '1'
    information = pipeline.identifier.memories[-1].information
    bench.publisher_of_calibration.publish(String(data=to_json('nested_humanoid', tared)))
    bench.spin_for(0.2)
    assert pipeline.identifier.memories[-1].information is information
    # A calibration of another robot is refused.
    before = pipeline.identifier.calibration
    publish(bench, {'foot_sensor': SensorCalibration()}, robot='another')
    assert pipeline.identifier.calibration is before
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and "'another'" in status.message
