# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The FT calibration of a running node: taken over between cycles, told, saved, restored.

The oracle is the library with the same calibration. Not covered: taring (`test_taring.py`), and
what the identifier makes of a change (`test_calibration_followed.py`).
"""

import json

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

import rclpy
from bench_robot import HUMANOID, LATCHED, BenchRobot, figure
from calibration_bench import SETTINGS, CalibrationBench
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.context import Context
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
from inertial_estimation.model.configured_robot import build_robot

ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
NAMES = tuple(HUMANOID['ft_sensors'])
OTHER = 'other_sensor'
ONE = SensorCalibration(
    1.1 * np.eye(6),
    np.arange(1.0, 7.0),
    provenance=(Provenance('by hand', '2026-11-22', n_samples=7),),
)


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


def expected(bench, **changed):
    """Return the torques that the library makes of the newest readings."""
    sensors = dict.fromkeys(NAMES, SensorCalibration()) | changed
    estimator = build_estimator(SETTINGS, ROBOT, stack_calibrations(sensors.values()))
    return estimator.update(bench.sample).torques


def check(bench, **changed):
    """Compare the torques of the node with those of the library."""
    torques = bench.torques()
    assert np.isfinite(torques).all()
    np.testing.assert_array_equal(torques, expected(bench, **changed))


def test_a_file_that_does_not_exist_yet_is_said(bench):
    check(bench)
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN
    assert f"'{bench.path}' does not exist yet: ~/save writes it" in status.message
    assert not bench.call('restore').success
    assert bench.call('save').success
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.OK
    assert set(read(bench.path)[1]) == set(NAMES)


def test_a_file_is_taken_over_between_two_cycles(bench):
    check(bench)
    write(bench.path, ROBOT.name, {'leg_sensor': ONE, OTHER: ONE})
    answer = bench.call('restore')
    assert answer.success, answer.message
    assert 'changed leg_sensor; not in the file, so as the parameters' in answer.message
    assert answer.message.endswith(f'; not in use: {OTHER}')
    check(bench, leg_sensor=ONE)
    status = bench.next_status('ft_calibration')
    assert figure(status, 'leg_sensor: method') == 'by hand'
    assert figure(status, 'leg_sensor: date') == '2026-11-22'
    assert figure(status, 'leg_sensor: offset [N], [Nm]') == '3.742, 8.7750'
    assert figure(status, 'arm_sensor: method') == 'parameters'


def test_others_are_told(bench):
    bench.listen(WrenchStamped, 'wrench_estimator/ft_offset/leg_sensor', LATCHED)
    bench.listen(String, 'ft_calibration', LATCHED)
    offsets = bench.heard['wrench_estimator/ft_offset/leg_sensor']
    texts = bench.heard['ft_calibration']
    bench.spin_until(lambda: offsets and texts)
    write(bench.path, ROBOT.name, {'leg_sensor': ONE})
    assert bench.call('restore').success
    bench.spin_until(lambda: offsets[-1].wrench.torque.z == ONE.offset[5])
    bench.spin_until(lambda: '1.1' in texts[-1].data)
    robot, sensors = from_text(texts[-1].data, 'topic')
    assert robot == ROBOT.name and tuple(sensors) == NAMES
    np.testing.assert_array_equal(sensors['leg_sensor'].matrix, ONE.matrix)
    assert sensors['leg_sensor'].provenance[0].method == 'by hand'
    assert json.loads(texts[-1].data)


SINGULAR = SensorCalibration(np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]))
REFUSED = {
    'robot': ('another', {'leg_sensor': ONE}, "it is of robot 'another'"),
    'sensors': (ROBOT.name, {OTHER: ONE}, f'it is of {OTHER}; FT sensors in use are arm_sensor'),
    'matrix': (ROBOT.name, {'leg_sensor': SINGULAR}, "the matrix of 'leg_sensor' has a condition"),
}


@pytest.mark.parametrize('case', REFUSED)
def test_what_cannot_be_used_is_refused_and_changes_nothing(bench, case):
    robot, sensors, reason = REFUSED[case]
    write(bench.path, robot, sensors)
    answer = bench.call('restore')
    assert not answer.success
    assert answer.message.startswith(f"nothing was restored: '{bench.path}': {reason}")
    check(bench)


def test_what_is_no_calibration_is_refused(bench):
    bench.path.write_text('ft_calibration: {version: 1, sensors: {leg_sensor: {offset: [.nan]}}}')
    answer = bench.call('restore')
    assert not answer.success and 'leg_sensor' in answer.message
    bench.path.write_text('nonsense')
    answer = bench.call('restore')
    assert not answer.success and answer.message.count(str(bench.path)) == 1
    check(bench)


def test_sensors_that_a_file_lacks_are_named_with_what_they_fall_back_to(bench):
    bench.pipeline._calibration.take({'arm_sensor': ONE})
    write(bench.path, ROBOT.name, {'leg_sensor': ONE})
    answer = bench.call('restore')
    assert 'changed leg_sensor, arm_sensor' in answer.message or (
        'changed arm_sensor, leg_sensor' in answer.message
    )
    back = answer.message.partition('so as the parameters say again: ')[2]
    assert 'arm_sensor (offset zero)' in back and 'leg_sensor' not in back


def test_saving_keeps_other_sensors_of_the_file(bench):
    write(bench.path, ROBOT.name, {OTHER: ONE, 'leg_sensor': SensorCalibration()})
    bench.pipeline._calibration.take({'leg_sensor': ONE})
    assert figure(bench.status('ft_calibration'), 'saved') == 'False'
    assert bench.call('save').success
    _, saved = read(bench.path)
    assert set(saved) == {OTHER, *NAMES}
    np.testing.assert_array_equal(saved['leg_sensor'].offset, ONE.offset)
    bench.call('clear_tare')
    check(bench)
    assert bench.call('restore').success
    check(bench, leg_sensor=ONE)


def test_a_tare_is_cleared_back_to_what_was_restored(bench):
    write(bench.path, ROBOT.name, {'leg_sensor': ONE})
    assert bench.call('restore').success
    bench.pipeline._calibration.take({'leg_sensor': SensorCalibration()})
    check(bench)
    answer = bench.call('clear_tare')
    assert answer.message.endswith('changed leg_sensor')
    check(bench, leg_sensor=ONE)


def test_without_a_file_nothing_is_saved(context):
    bench = BenchRobot(context, HUMANOID)
    try:
        for name in ('save', 'restore'):
            answer = CalibrationBench.call(bench, name)
            assert not answer.success and "'calibration_file' is empty" in answer.message
    finally:
        bench.close()


@pytest.mark.parametrize('service', ['clear_tare', 'restore'])
def test_what_nobody_expected_is_answered_and_ends_nothing(bench, monkeypatch, service):
    write(bench.path, ROBOT.name, {'leg_sensor': ONE})

    def fail(*_):
        raise ZeroDivisionError('of a kind that nobody thought of')

    with monkeypatch.context() as patched:
        patched.setattr(bench.pipeline._calibration._in_use, service, fail)
        answer = bench.call(service)
    assert not answer.success
    assert answer.message.startswith('ZeroDivisionError: of a kind that nobody thought of')
    check(bench)
