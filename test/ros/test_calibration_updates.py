# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The FT calibration of a running node: changed between cycles, published, saved, restored.

The oracle is the library with the same calibration.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, LATCHED, START_NS, RepeatingRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Temperature
from std_msgs.msg import String

from inertial_estimation.calibration.calibration_file import (
    Provenance,
    SensorCalibration,
    from_text,
    read,
    stack_calibrations,
    write,
)
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.conversions import ns_to_stamp

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
NAMES = tuple(HUMANOID['ft_sensors'])
OTHER = 'other_sensor'
ONE = SensorCalibration(
    1.1 * np.eye(6),
    np.arange(1.0, 7.0),
    provenance=(Provenance('by hand', '2026-11-22', samples=7),),
)


@pytest.fixture
def path(tmp_path):
    """Return a calibration file that does not exist yet."""
    return tmp_path / 'robot.yaml'


def check(bench, **changed):
    """Compare the torques of the node with those of the library."""
    torques = bench.torques()
    sensors = dict.fromkeys(NAMES, SensorCalibration()) | changed
    estimator = build_estimator(SETTINGS, ROBOT, stack_calibrations(sensors.values()))
    assert np.isfinite(torques).all()
    np.testing.assert_array_equal(torques, estimator.update(bench.sample).torques)


def test_file_is_written_restored_and_published(context, keep, path):
    bench = keep(RepeatingRobot(context, calibration_file=str(path)))
    check(bench)
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and str(path) in status.message
    assert not bench.call('restore').success
    assert bench.call('save').success and set(read(path)[1]) == set(NAMES)
    assert bench.next_status('ft_calibration').level == DiagnosticStatus.OK
    bench.listen(WrenchStamped, 'wrench_estimator/ft_offset/leg_sensor', LATCHED)
    bench.listen(String, 'ft_calibration', LATCHED)
    offsets = bench.heard['wrench_estimator/ft_offset/leg_sensor']
    texts = bench.heard['ft_calibration']
    bench.estimator.pipeline._calibration.take({'arm_sensor': ONE})
    write(path, ROBOT.name, {'leg_sensor': ONE, OTHER: ONE})
    answer = bench.call('restore')
    assert answer.success and 'arm_sensor' in answer.message and OTHER in answer.message
    check(bench, leg_sensor=ONE)
    status = bench.next_status('ft_calibration')
    assert figure(status, 'leg_sensor: method') == 'by hand'
    assert figure(status, 'leg_sensor: offset [N], [Nm]') == '3.742, 8.7750'
    assert figure(status, 'arm_sensor: method') == 'parameters'
    bench.spin_until(lambda: offsets and offsets[-1].wrench.torque.z == ONE.offset[5])
    bench.spin_until(lambda: '1.1' in texts[-1].data)
    robot, sensors = from_text(texts[-1].data, 'topic')
    assert robot == ROBOT.name and tuple(sensors) == NAMES
    assert sensors['leg_sensor'].same_as(ONE)
    assert sensors['leg_sensor'].provenance[0].method == 'by hand'
    # Saving keeps other sensors of the file.
    bench.estimator.pipeline._calibration.take({'arm_sensor': ONE})
    assert figure(bench.next_status('ft_calibration'), 'saved') == 'False'
    assert bench.call('save').success
    saved = read(path)[1]
    assert set(saved) == {OTHER, *NAMES} and saved['arm_sensor'].same_as(ONE)
    # A tare is cleared back to the file that was restored.
    assert bench.call('restore').success
    bench.estimator.pipeline._calibration.take({'leg_sensor': SensorCalibration()})
    check(bench, arm_sensor=ONE)
    assert bench.call('clear_tare').success
    check(bench, arm_sensor=ONE, leg_sensor=ONE)


def test_temperature_of_a_sensor_is_used(context, keep, path):
    thermal = SensorCalibration(
        offset=np.ones(6), temperature_coefficients=np.arange(1.0, 7.0), reference_temperature=21.0
    )
    write(path, ROBOT.name, {'leg_sensor': thermal})
    given = {'calibration_file': str(path), 'ft.leg_sensor.temperature_topic': 'leg/temperature'}
    bench = keep(RepeatingRobot(context, **given))
    check(bench, leg_sensor=thermal)
    assert np.isnan(bench.sample.ft_temperatures).all()
    status = bench.status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and 'leg_sensor' in status.message
    assert bench.status('temperature leg_sensor').level == DiagnosticStatus.ERROR
    message = Temperature(temperature=31.0)
    message.header.stamp = ns_to_stamp(START_NS)
    bench.publisher(Temperature, 'leg/temperature').publish(message)
    check(bench, leg_sensor=thermal)
    np.testing.assert_array_equal(bench.sample.ft_temperatures, [np.nan, 31.0, np.nan])
    assert bench.status('ft_calibration').level == DiagnosticStatus.OK
