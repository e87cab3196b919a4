# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate live`` as a process, beside a robot whose body is turned and loaded.

Stamps run faster than the wall clock, which the session does not look at. Not covered: the
mathematics and the instructions (`test_session`), the picture on a terminal.
"""

import os
import sys
import termios
import time
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, BenchRobot
from geometry_msgs.msg import PointStamped
from hanging_body import MASS, MATRIX, OFFSET
from rclpy.executors import SingleThreadedExecutor
from robots import nested_humanoid_urdf
from session_bench import (
    LOADS,
    RPY,
    SENSOR,
    TILTED,
    TIMEOUT,
    TOPICS,
    WORKSHOP,
    Body,
    Call,
    SessionBench,
    run_session,
    stated,
)
from test_collection import at_rest, humanoid

from inertial_estimation.calibration.body_readings import BodyReadings
from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.collection import CONTACT, KEPT
from inertial_estimation.calibration.session import Conductor, Plan, Session
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.ros import calibration_setup
from inertial_estimation.ros.calibration_feeds import RobotFeed
from inertial_estimation.ros.calibration_session import SessionNode
from inertial_estimation.ros.calibration_setup import hand_over, plan_of, set_up
from inertial_estimation.ros.calibration_terminal import Display, keys
from inertial_estimation.ros.conversions import point_to_message


@pytest.fixture
def bench(context, tmp_path):
    """Return an estimator with a calibration file."""
    robot = SessionBench(context, tmp_path / 'robot.yaml')
    yield robot
    robot.close()


def check_matrix(bench, figures):
    """Check the file, and that the estimator uses it."""
    assert figures['axes'] == 'sensor' and figures['estimator']['taken_over']
    one = read(bench.path)[1][SENSOR]
    # Six deviations: the largest of 36 errors.
    assert np.abs((one.matrix - MATRIX) / figures['deviations']).max() < 6.0
    np.testing.assert_array_equal(bench.matrix, one.matrix)
    return one


def test_session_is_stopped_continued_and_handed_over(bench, rng, tmp_path):
    body = Body(rng, bench, rotation=TILTED)
    options = [
        *TOPICS, '--calibration', bench.path, '--out', bench.path, '--session',
        tmp_path / 's.json', '--imu-rpy', *RPY, *stated(),
    ]  # fmt: skip
    call = Call(*options)
    try:
        body.move_on(lambda: call.printed("data set 1 of 3, 'nothing'"))
        call.interrupt()
        assert call.end(bench) == 130, call.lines
    finally:
        call.close()
    code, figures = run_session(bench, body, options, first=1)
    assert code == 0, figures
    one = check_matrix(bench, figures)
    # T section 5.4 reaches this.
    assert figures['body_mass'] == pytest.approx(MASS, abs=0.05)
    counts = figures['readings']['load 1']
    assert counts[CONTACT] > 0 and counts[KEPT] > 20 * 20
    np.testing.assert_array_equal(one.matrix, figures['matrix'])
    np.testing.assert_allclose(one.offset, OFFSET, atol=2.0)
    assert one.provenance[0].method == 'live: matrix from added masses, 3 data sets'


@pytest.mark.live
def test_wrong_matrix_is_held_back_until_loads_are_restated(bench, rng, tmp_path):
    session = tmp_path / 's.json'
    call = *TOPICS, '--imu-rpy', 0, 0, 0, '--out', bench.path, '--session', session
    before = bench.path.read_bytes()
    wrong = {1: LOADS[1], 2: (0.25, LOADS[2][1])}
    code, figures = run_session(bench, Body(rng, bench), (*call, *stated(wrong)))
    assert code == 1 and 'error' in {one['level'] for one in figures['findings']}
    assert figures['output'] is None and bench.path.read_bytes() == before
    np.testing.assert_array_equal(bench.matrix, WORKSHOP)
    code, figures = run_session(bench, None, (*call, *stated(), '--restate'))
    assert code == 0, figures
    check_matrix(bench, figures)


def test_robot_feeds_readings_of_its_samples(context, rng):
    robot, node, found = humanoid('head'), SessionNode(context=context), []
    settings = EstimatorSettings.from_dict(HUMANOID)
    feed = RobotFeed(node, settings, HUMANOID['robot_description'], SENSOR, '', found.append)
    bench = BenchRobot(context, make=lambda **_: node)
    try:
        sample, *_ = at_rest(robot, rng)
        for k in range(1, 4):
            stamp = 10**9 + k * 10_000_000
            for name, wrench in zip(HUMANOID['ft_sensors'], sample.ft_readings, strict=True):
                bench.send_ft(name, stamp, wrench)
            rates, proper = sample.angular_velocities[0], sample.proper_accelerations[0]
            bench.send_imu('head', stamp, rates, proper)
            contact = point_to_message(stamp, 'sole', (0, 0, 0))
            bench.publisher(PointStamped, 'contacts').publish(contact)
            bench.spin_for(0.02)
            bench.send_joints(stamp, robot.joint_names, position=sample.positions)
        bench.spin_until(lambda: len(found) == 3)
        expected = BodyReadings(robot, SENSOR).reading(sample._replace(stamp_ns=stamp))
        assert found[-1].stamp_ns == stamp and found[-1].disturbance == CONTACT
        for one, other in zip(found[-1][1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        feed.destroy()
        bench.close()


def test_session_ends_when_its_caller_is_gone(tmp_path):
    call = Call(*TOPICS, '--session', tmp_path / 's.json')
    try:
        deadline = time.monotonic() + TIMEOUT
        while not call.printed('no readings') and time.monotonic() < deadline:
            time.sleep(0.05)
        call.process.kill()
        # Both hold standard error: it ends with the last of them.
        call.reader.join(TIMEOUT)
        assert not call.reader.is_alive()
    finally:
        call.close()
    assert (tmp_path / 's.json').exists()


NONE, FAR, SIDE = ['nothing', 0.0, 0, 0, 0], ['far', 0.5, 0.3, 0, 0], ['side', 0.5, 0, 0.2, 0]
JOB = {
    'ft': SENSOR, 'loads': [NONE], 'imu': None, 'robot': None, 'calibration': None,
    'out': None, 'robot_name': '', 'moments': 40, 'directions': 12, 'spread': 0.1,
    'session': None, 'imu_rpy': None, 'direction': 1, 'config': None, 'readings': 'a',
}  # fmt: skip


def test_setup_from_the_parameters_of_the_estimator(context, tmp_path):
    saved = tmp_path / 'robot.yaml'
    config = tmp_path / 'parameters.yaml'
    more = {'calibration_file': str(saved), 'ft.arm_sensor.offset': [1.0] + 5 * [0.0]}
    node_parameters = {'wrench_estimator': {'ros__parameters': HUMANOID | more}}
    config.write_text(yaml.safe_dump(node_parameters))
    node, executor = SessionNode(context=context), SingleThreadedExecutor(context=context)

    def plan(**more):
        job = JOB | {'config': str(config)} | more
        found = set_up(node, executor, job, lambda _: None)
        found.feed.destroy()
        return found, plan_of(job, found)

    try:
        for name, direction in ((SENSOR, -1), ('leg_sensor', 1)):
            found, one = plan(ft=name)
            assert (found.output, found.robot) == (saved, 'nested_humanoid')
            assert one.direction == direction and one.axes == 'sensor' and not found.notes
            assert one.gravity.startswith("IMU 'head' through ") and len(found.complaints()) == 3
        found, _ = plan(ft='arm_sensor')
        assert found.before.offset[0] == 1.0 and len(found.notes) == 1
        turned = SensorCalibration(MATRIX, axes='accelerometer')
        write(saved, 'nested_humanoid', {SENSOR: turned})
        # A calibration that no node takes may be replaced.
        found, one = plan(loads=[NONE, FAR, SIDE])
        assert found.before.same_as(turned) and one.wrench_axes == 'sensor'
        with pytest.raises(NameNotFound):
            plan(ft='leg_sensor', calibration=str(saved))
        # Two topics: without a rotation the estimator could not use the matrix.
        write(saved, 'nested_humanoid', {SENSOR: SensorCalibration()})
        topics = {'config': None, 'out': str(saved), 'imu': 'b'}
        with pytest.raises(ConfigError):
            plan(**topics, loads=[NONE, FAR, SIDE])
        assert plan(**topics, loads=[NONE, FAR, SIDE], imu_rpy=RPY)[1].wrench_axes == 'sensor'
        assert plan(**topics)[1].wrench_axes == 'sensor'
    finally:
        executor.shutdown()
        node.destroy_node()


def test_estimator_with_another_file_is_not_asked(bench, tmp_path, monkeypatch):
    executor = SingleThreadedExecutor(context=bench.node.context)
    node = SessionNode(context=bench.node.context)
    executor.add_node(node)
    executor.add_node(bench.estimator)
    try:
        assert not hand_over(node, executor, 'wrench_estimator', tmp_path / 'other.yaml').done
        assert hand_over(node, executor, '/wrench_estimator', bench.path).done
        monkeypatch.setattr(calibration_setup, 'WAIT', 0.2)
        assert not hand_over(node, executor, 'unknown', bench.path).done
    finally:
        executor.shutdown()
        node.destroy_node()


@pytest.mark.parametrize(
    ('more', 'named', 'code'),
    [
        (('--readings', 'a', '--config', 'b.yaml'), '--readings', 2),
        (('--readings', 'a'), '--imu', 2),
        ((*TOPICS, '--loads', 'loads.yaml'), '--loads', 2),
        (('--config', 'none.yaml'), 'none.yaml', 1),
        (('--config', 'node.yaml', '--robot', 'robot.urdf'), '--ft', 1),
    ],
)
def test_errors_name_options(tmp_path, monkeypatch, capsys, more, named, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'robot.urdf').write_text(nested_humanoid_urdf())
    (tmp_path / 'node.yaml').write_text('wrench_estimator: {ros__parameters: {imus: [head]}}')
    (tmp_path / 'loads.yaml').write_text('loads: [{}, {mass: 0.5, centre: [0, 0, 0]}]')
    assert main(['calibrate', 'live', '--ft', 'foot', *more]) == code
    printed = capsys.readouterr().err
    assert printed.startswith('inertial-estimation calibrate: ') and printed.count('\n') == 1
    assert named in printed


def typed(read, expected):
    """Return the keys that come within ten seconds."""
    deadline, found = time.monotonic() + 10.0, ''
    while len(found) < expected and time.monotonic() < deadline:
        found += read()
    return found


def test_keys_of_a_terminal_and_of_a_pipe(monkeypatch):
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(fileno=lambda: theirs))
    with keys() as read_key:
        assert read_key() == ''
        os.write(ours, b'r\rq')
        assert typed(read_key, 3) == 'r\nq'
    assert termios.tcgetattr(theirs) == before
    out, into = os.pipe()
    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(fileno=lambda: out))
    with keys() as read_key:
        os.write(into, b'\n')
        assert typed(read_key, 1) == '\n'
        os.close(into)
        assert read_key() == '' and read_key() == ''
        os.close(out)
        # A closed pipe is not read again.
        assert read_key() == ''


def test_without_a_terminal_lines_are_printed_once(capsys):
    conductor = Conductor(Session(Plan('foot', 'x')))
    conductor.notes.append('a [note]')
    with Display(conductor) as display:
        display.show(0.0, ['no publisher of x'])
        display.show(0.1, [])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0] == 'a [note]' and 'no publisher of x' in lines[1]
