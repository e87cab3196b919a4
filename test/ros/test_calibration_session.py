# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate live`` as a process, beside a robot whose body is turned and loaded.

Stamps run faster than the clock on the wall, which the session does not look at. Not covered: the
mathematics (`test_session`), what is asked for next (`test_conductor`), the picture on a terminal.
"""

import json
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, BenchRobot
from geometry_msgs.msg import PointStamped
from hanging_body import MASS, MATRIX, OFFSET
from rclpy.executors import SingleThreadedExecutor
from session_bench import (
    ACCELEROMETER,
    READINGS,
    RPY,
    SENSOR,
    TILTED,
    TIMEOUT,
    Body,
    Call,
    SessionBench,
    stated,
)
from test_body_readings import at_rest, humanoid

from inertial_estimation.calibration.body_readings import BodyReadings
from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.collection import CONTACT, KEPT
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import NameNotFound
from inertial_estimation.ros import calibration_handover
from inertial_estimation.ros.calibration_feeds import RobotFeed
from inertial_estimation.ros.calibration_handover import hand_over
from inertial_estimation.ros.calibration_session import SessionNode
from inertial_estimation.ros.calibration_setup import plan_of, set_up
from inertial_estimation.ros.conversions import point_to_message


@pytest.fixture
def bench(context, tmp_path):
    """Return an estimator with a calibration file."""
    robot = SessionBench(context, tmp_path / 'robot.yaml')
    yield robot
    robot.close()


def test_a_session_is_stopped_gone_on_with_and_handed_over(bench, rng, tmp_path):
    body = Body(rng, bench, rotation=TILTED)
    out, session = tmp_path / 'out.json', tmp_path / 's.json'
    options = [
        '--ft', SENSOR, '--readings', READINGS, '--imu', ACCELEROMETER,
        '--calibration', bench.path, '--out', bench.path, '--session', session,
        '--unattended', '1', '--json', out, '--imu-rpy', *RPY, *stated(),
    ]  # fmt: skip
    first = Call('live', *map(str, options))
    try:
        body.move_on(lambda: first.has_said("data set 1 of 3, 'nothing'"))
        first.interrupt()
        code, said = first.end()
    finally:
        first.close()
    assert code == 130, first.said
    assert json.loads(out.read_text())['stopped']
    second = Call('live', *map(str, options))
    try:
        for k in (1, 2):
            bench.spin_until(lambda k=k: second.has_said(f"mount load 'load {k}'"))
            body.load(k)
            body.move_on(lambda k=k: second.has_said(f"data set {k + 1} of 3, 'load {k}'"))
        while second.process.poll() is None:
            bench.spin_for(0.05)
        code, said = second.end()
    finally:
        second.close()
    assert code == 0, second.said
    check_result(bench, json.loads(out.read_text()), said)


def check_result(bench, found, said):
    """Check file, figures, and what the estimator goes on with."""
    assert found['axes'] == 'sensor'
    errors = (np.array(found['matrix']) - MATRIX) / found['deviations']
    assert np.abs(errors).max() < 6.0
    # T section 5.4 reaches this.
    assert found['body_mass'] == pytest.approx(MASS, abs=0.05)
    counts = found['readings']['load 1']
    assert counts[CONTACT] > 0 and counts[KEPT] > 40 * 20
    robot, sensors = read(bench.path)
    one = sensors[SENSOR]
    assert robot == 'nested_humanoid'
    np.testing.assert_array_equal(one.matrix, found['matrix'])
    np.testing.assert_allclose(one.offset, OFFSET, atol=2.0)
    assert one.provenance[0].method == 'live: matrix from added masses, 3 data sets'
    assert one.axes == 'sensor'
    assert found['estimator']['taken_over'], found['estimator']
    assert SENSOR in found['estimator']['answer']
    np.testing.assert_array_equal(bench.matrix, one.matrix)


def test_a_robot_feeds_what_its_samples_say(context, rng):
    settings = EstimatorSettings.from_dict(HUMANOID)
    robot = humanoid('head')
    node, bench, found = SessionNode(context=context), None, []
    feed = RobotFeed(node, settings, HUMANOID['robot_description'], SENSOR, '', found.append)
    try:
        bench = BenchRobot(context, make=lambda **_: node)
        sample, *_ = at_rest(robot, rng)
        stamp = 1_000_000_000
        for _ in range(3):
            stamp += 10_000_000
            for name, wrench in zip(HUMANOID['ft_sensors'], sample.ft_readings, strict=True):
                bench.send_ft(name, stamp, wrench)
            bench.send_imu(
                'head', stamp, sample.angular_velocities[0], sample.proper_accelerations[0]
            )
            bench.publisher(PointStamped, 'contacts').publish(
                point_to_message(stamp, 'sole', (0, 0, 0))
            )
            bench.spin_for(0.02)
            bench.send_joints(stamp, robot.joint_names, position=sample.positions)
        bench.spin_until(lambda: len(found) == 3)
        expected = BodyReadings(robot, SENSOR).reading(sample._replace(stamp_ns=stamp))
        assert found[-1].stamp_ns == stamp and found[-1].disturbance == CONTACT
        for one, other in zip(found[-1][1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(one, other)
        assert np.isnan(feed.temperature) and feed.gravity.startswith("IMU 'head' through")
    finally:
        feed.destroy()
        if bench is not None:
            bench.close()


def test_a_session_ends_when_its_caller_is_gone(tmp_path):
    session = tmp_path / 's.json'
    call = Call(
        'live', '--ft', SENSOR, '--readings', READINGS, '--imu', ACCELEROMETER,
        '--session', str(session),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + TIMEOUT
        while not call.has_said('no readings') and time.monotonic() < deadline:
            time.sleep(0.05)
        call.process.kill()
        # Both hold standard error: it ends with the last of them.
        call._reader.join(TIMEOUT)
        assert not call._reader.is_alive()
    finally:
        call.close()
    assert session.exists()


JOB = {
    'sensor': SENSOR, 'loads': [['nothing', 0.0, 0.0, 0.0, 0.0]], 'imu': None, 'robot': None,
    'calibration': None, 'output': None, 'robot_name': '', 'moments': 40, 'directions': 12,
    'spread': 0.1, 'session': None, 'rotation': None, 'direction': 1,
}  # fmt: skip


def test_the_parameters_of_the_estimator_say_the_rest(context, tmp_path):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    saved, config = tmp_path / 'robot.yaml', tmp_path / 'parameters.yaml'
    given = HUMANOID | {'calibration_file': str(saved), 'ft.arm_sensor.offset': [1.0] + 5 * [0.0]}
    config.write_text(yaml.safe_dump({'wrench_estimator': {'ros__parameters': given}}))
    node, executor = SessionNode(context=context), SingleThreadedExecutor(context=context)
    try:
        job = JOB | {'config': str(config)}
        for name, direction in ((SENSOR, -1), ('leg_sensor', 1)):
            found = set_up(node, executor, job | {'sensor': name}, lambda _: None)
            plan = plan_of(job | {'sensor': name}, found)
            found.feed.destroy()
            assert (found.output, found.robot) == (saved, 'nested_humanoid')
            assert plan.direction == direction and plan.axes == 'sensor' and not found.notes
            assert plan.gravity.startswith("IMU 'head' through ")
            assert len(found.complaints()) == 3
        found = set_up(node, executor, job | {'sensor': 'arm_sensor'}, lambda _: None)
        found.feed.destroy()
        assert found.before.offset[0] == 1.0
        assert len(found.notes) == 1
        write(saved, 'nested_humanoid', {SENSOR: SensorCalibration(MATRIX)})
        found = set_up(node, executor, job, lambda _: None)
        found.feed.destroy()
        np.testing.assert_array_equal(found.before.matrix, MATRIX)
        # One that no node takes may be calibrated anew.
        saved.unlink()
        turned = SensorCalibration(MATRIX, axes='accelerometer')
        write(saved, 'nested_humanoid', {SENSOR: turned})
        found = set_up(node, executor, job, lambda _: None)
        found.feed.destroy()
        assert found.before.axes == 'accelerometer'
        loads = [['nothing', 0, 0, 0, 0], ['a', 1, 1, 0, 0], ['b', 1, 0, 1, 0]]
        assert plan_of(job | {'loads': loads}, found).wrench_axes == 'sensor'
        with pytest.raises(NameNotFound):
            set_up(
                node, executor, job | {'sensor': 'leg_sensor', 'calibration': str(saved)},
                lambda _: None,
            )  # fmt: skip
    finally:
        executor.shutdown()
        node.destroy_node()


def test_an_estimator_that_reads_another_file_is_not_asked(bench, tmp_path, monkeypatch):
    executor = SingleThreadedExecutor(context=bench.node.context)
    node = SessionNode(context=bench.node.context)
    executor.add_node(node)
    executor.add_node(bench.estimator)
    try:
        told = hand_over(node, executor, 'wrench_estimator', tmp_path / 'other.yaml')
        assert not told.done
        told = hand_over(node, executor, '/wrench_estimator', bench.path)
        assert told.done
        # Nobody comes, however long one waits.
        monkeypatch.setattr(calibration_handover, 'THERE', 0.2)
        told = hand_over(node, executor, 'nobody', bench.path)
        assert not told.done
    finally:
        executor.shutdown()
        node.destroy_node()


WRONG = {
    'both': ('--readings', 'a', '--config', 'b.yaml'),
    'one topic': ('--readings', 'a'),
    'loads': ('--readings', 'a', '--imu', 'b', '--load', '1', '0', '0', '0', '--loads',
              'c.yaml'),
    'spread': ('--readings', 'a', '--imu', 'b', '--spread', '2'),
}  # fmt: skip


@pytest.mark.parametrize('case', WRONG)
def test_options_that_do_not_go_together_are_refused(case, capsys):
    from inertial_estimation.cli import main

    assert main(['calibrate', 'live', '--ft', 'foot', *WRONG[case]]) == 2
    assert capsys.readouterr().err
