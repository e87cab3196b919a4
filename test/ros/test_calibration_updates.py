# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The FT calibration of a running node: changed between cycles, published, saved, restored.

The oracle is the library with the same calibration.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

import rclpy
from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    START_NS,
    BenchRobot,
    figure,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.context import Context
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import String
from std_srvs.srv import Trigger

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
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.conversions import ns_to_stamp

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
# The same readings are used again and again.
LASTING = {
    f'{kind}.{name}.{limit}': value
    for kind, names in (('ft', HUMANOID['ft_sensors']), ('imu', HUMANOID['imus']))
    for name in names
    for limit, value in (('max_age', 10.0), ('frozen_after', 0.0))
}
ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
NAMES = tuple(HUMANOID['ft_sensors'])
OTHER = 'other_sensor'
ONE = SensorCalibration(
    1.1 * np.eye(6),
    np.arange(1.0, 7.0),
    provenance=(Provenance('by hand', '2026-11-22', n_samples=7),),
)


class CalibrationBench(BenchRobot):
    """Sends the same readings at each stamp, and keeps the sample and the torques."""

    def __init__(self, context, **parameters):
        super().__init__(context, HUMANOID | NO_FILTERS | LASTING | parameters)
        self.pipeline = self.estimator.pipeline
        self.heard_torques = self.heard['wrench_estimator/joint_torques']
        self.listen(JointState, 'wrench_estimator/joint_torques', 1000)
        self.listen_to_diagnostics()
        self.stamp_ns = START_NS
        rng = np.random.default_rng(5)
        self.wrenches = {name: rng.normal(size=6) for name in HUMANOID['ft_sensors']}
        self.positions = 0.3 * rng.normal(size=len(JOINTS))
        estimator = self.pipeline._estimator

        def update(sample, contacts):
            self.sample = sample
            return WrenchEstimator.update(estimator, sample, contacts)

        estimator.update = update

    def torques(self):
        """Send the readings with the next stamp; return their torques."""
        self._report = None
        self.stamp_ns += PERIOD_NS
        for name, wrench in self.wrenches.items():
            self.send_ft(name, self.stamp_ns, wrench)
        self.send_imu('head', self.stamp_ns, (0.0, 0.0, 0.0), (1.0, 2.0, 9.0))
        self.spin_for(0.03)
        self.send_joints(self.stamp_ns, position=self.positions, velocity=np.zeros(len(JOINTS)))
        return np.array(self.wait_for_stamp(self.heard_torques, self.stamp_ns).effort)

    def call(self, name):
        """Call a service; return its answer."""
        self._report = None
        return super().call(Trigger, name)


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    """Return one node for all tests, with a file that does not exist yet."""
    context = Context()
    rclpy.init(context=context)
    path = tmp_path_factory.mktemp('calibration') / 'robot.yaml'
    robot = CalibrationBench(context, calibration_file=str(path))
    robot.path = path
    yield robot
    robot.close()
    context.try_shutdown()


@pytest.fixture(autouse=True)
def afresh(bench):
    """Begin every test without a file, as configured."""
    bench.path.unlink(missing_ok=True)
    bench.pipeline._calibration._in_use.untared = bench.pipeline._calibration._in_use.start
    bench.call('clear_tare')


def check(bench, **changed):
    """Compare the torques of the node with those of the library."""
    torques = bench.torques()
    sensors = dict.fromkeys(NAMES, SensorCalibration()) | changed
    estimator = build_estimator(SETTINGS, ROBOT, stack_calibrations(sensors.values()))
    assert np.isfinite(torques).all()
    np.testing.assert_array_equal(torques, estimator.update(bench.sample).torques)


def test_missing_file_is_reported_and_written(bench):
    check(bench)
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and str(bench.path) in status.message
    assert not bench.call('restore').success
    assert bench.call('save').success and set(read(bench.path)[1]) == set(NAMES)
    assert bench.next_status('ft_calibration').level == DiagnosticStatus.OK


def test_restored_file_is_used_and_published(bench):
    bench.listen(WrenchStamped, 'wrench_estimator/ft_offset/leg_sensor', LATCHED)
    bench.listen(String, 'ft_calibration', LATCHED)
    offsets = bench.heard['wrench_estimator/ft_offset/leg_sensor']
    texts = bench.heard['ft_calibration']
    bench.pipeline._calibration.take({'arm_sensor': ONE})
    write(bench.path, ROBOT.name, {'leg_sensor': ONE, OTHER: ONE})
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


def test_file_of_another_robot_is_refused(bench):
    write(bench.path, 'another', {'leg_sensor': ONE})
    answer = bench.call('restore')
    assert not answer.success and 'another' in answer.message
    check(bench)


def test_saving_keeps_other_sensors_of_the_file(bench):
    write(bench.path, ROBOT.name, {OTHER: ONE, 'leg_sensor': SensorCalibration()})
    bench.pipeline._calibration.take({'leg_sensor': ONE})
    assert figure(bench.status('ft_calibration'), 'saved') == 'False'
    assert bench.call('save').success
    saved = read(bench.path)[1]
    assert set(saved) == {OTHER, *NAMES} and saved['leg_sensor'].same_as(ONE)
    # A tare is cleared back to the file that was restored.
    assert bench.call('restore').success
    bench.pipeline._calibration.take({'leg_sensor': SensorCalibration()})
    check(bench)
    assert bench.call('clear_tare').success
    check(bench, leg_sensor=ONE)


def test_temperature_of_a_sensor_is_used(context, tmp_path):
    thermal = SensorCalibration(
        offset=np.ones(6), temperature_coefficients=np.arange(1.0, 7.0), reference_temperature=21.0
    )
    path = tmp_path / 'calibration.yaml'
    write(path, ROBOT.name, {'leg_sensor': thermal})
    given = {'calibration_file': str(path), 'ft.leg_sensor.temperature_topic': 'leg/temperature'}
    bench = CalibrationBench(context, **given)
    try:
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
    finally:
        bench.close()
