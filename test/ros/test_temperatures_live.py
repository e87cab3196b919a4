# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A node whose FT sensors need their temperature: the same as a replay of the same messages."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')
pytest.importorskip('rosbags', reason='needs rosbags')

from bag_messages import (
    IMU,
    JOINT_STATE,
    TEMPERATURE,
    WRENCH,
    imu,
    joint_state,
    temperature,
    wrench,
    write_bag,
)
from bench_robot import HUMANOID, JOINTS, PERIOD_NS, START_NS
from calibration_bench import LASTING, STILL, CalibrationBench
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import Temperature

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.conversions import ns_to_stamp

COLD, WARM = 21.0, 31.0
THERMAL = SensorCalibration(
    offset=np.ones(6), temperature_coefficients=np.arange(1.0, 7.0), reference_temperature=COLD
)


def recorded(bench):
    """Yield the messages of a bench."""
    still = np.zeros(len(JOINTS))
    for k in (1, 2):
        stamp = START_NS + k * PERIOD_NS
        if k == 2:
            data = temperature(START_NS, '', WARM)
            yield '/leg/temperature', TEMPERATURE, stamp, data
        for name, values in bench.wrenches.items():
            yield f'/ft/{name}', WRENCH, stamp, wrench(stamp, name, values)
        yield '/imu/head', IMU, stamp, imu(stamp, 'head', (0.0, 0.0, 0.0), (1.0, 2.0, 9.0))
        data = joint_state(stamp, list(JOINTS), bench.positions, still)
        yield '/joint_states', JOINT_STATE, stamp, data


def test_node_uses_temperatures_as_a_replay_does(context, tmp_path):
    path = tmp_path / 'calibration.yaml'
    given = {'calibration_file': str(path), 'ft.leg_sensor.temperature_topic': 'leg/temperature'}
    settings = EstimatorSettings.from_dict(HUMANOID | STILL | LASTING | given)
    robot = build_robot(settings, settings.robot_description)
    write(path, robot.name, {'leg_sensor': THERMAL})
    bench = CalibrationBench(context, **given)
    try:
        without = bench.torques()
        status = bench.status('ft_calibration')
        assert status.level == DiagnosticStatus.WARN and 'leg_sensor' in status.message
        assert bench.status('temperature leg_sensor').level == DiagnosticStatus.ERROR
        message = Temperature(temperature=WARM)
        message.header.stamp = ns_to_stamp(START_NS)
        bench.publisher(Temperature, 'leg/temperature').publish(message)
        torques = bench.torques()
        assert bench.status('ft_calibration').level == DiagnosticStatus.OK
        np.testing.assert_array_equal(bench.sample.ft_temperatures, [np.nan, WARM, np.nan])
        replayed = open_log(write_bag(tmp_path / 'bag', recorded(bench)), robot, settings)
    finally:
        bench.close()
    expected = build_estimator(settings, robot).batch(replayed.samples).torques
    np.testing.assert_allclose(expected, [without, torques], rtol=1e-12, atol=1e-12)
    assert np.abs(torques - without).max() > 1.0
