# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate live`` as a process, beside a robot whose body is turned.

Stamps run faster than the wall clock, which the session does not look at. Not covered: the
mathematics and the instructions (`test_session`).
"""

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest
from bag_messages import imu, wrench
from bench_robot import HUMANOID, BenchRobot
from geometry_msgs.msg import WrenchStamped
from hanging_body import GRAVITY, MATRIX, OFFSET
from sensor_msgs.msg import Imu
from std_srvs.srv import Trigger
from test_session import TurnedBody, at_rest, humanoid

from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.session import DIRECTIONS, BodyReadings
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.ros import calibration_session
from inertial_estimation.ros.calibration_session import RobotFeed, SessionNode, hand_over

# A job in the background of a shell ignores SIGINT, and so do its processes.
MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from inertial_estimation.cli import main
sys.exit(main(sys.argv[1:]))
"""
TIMEOUT = 200.0
"""For a busy machine; nothing waits for it to pass [s]."""
READINGS, ACCELEROMETER, SENSOR = 'foot/raw', 'foot/imu', 'foot_sensor'
TOPICS = '--readings', READINGS, '--imu', ACCELEROMETER
WORKSHOP = 1.02 * MATRIX
"""Matrix that the estimator begins with."""


@pytest.fixture
def robot(context, keep, tmp_path):
    """Return an estimator with a calibration file that holds the workshop's matrix."""
    path = tmp_path / 'robot.yaml'
    write(path, 'nested_humanoid', {SENSOR: SensorCalibration(WORKSHOP)})
    found = keep(BenchRobot(context, HUMANOID | {'calibration_file': str(path)}))
    found.path = path
    return found


class Call:
    """The command as a process, its standard error, and a body that publishes itself."""

    def __init__(self, robot, body, folder, *options):
        self.robot, self.body, self.errors = robot, body, folder / 'errors'
        self.fts = robot.node.create_publisher(WrenchStamped, READINGS, 1000)
        self.imus = robot.node.create_publisher(Imu, ACCELEROMETER, 1000)
        command = [sys.executable, '-c', MAIN, 'calibrate', 'live', '--ft', SENSOR, *TOPICS]
        with self.errors.open('w') as errors:
            self.process = subprocess.Popen(
                [*command, *map(str, options)], stdin=subprocess.PIPE, stderr=errors
            )

    def turn(self):
        """Go from pose to pose until the command ends."""
        deadline, k = time.monotonic() + TIMEOUT, 0
        self.robot.spin_until(
            lambda: self.fts.get_subscription_count() and self.imus.get_subscription_count(),
            TIMEOUT,
        )
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.errors.read_text()
            # A tilt at once jumps; after settling two poses are still, unless they are touched.
            self.body.stamp_ns += 10**9
            self.body.touch = np.array([6.0, 0.0, 0.0, 0.0, 0.6, 0.0]) * (k % 7 == 6)
            for stamp, raw, a, w, *_ in self.body.still(GRAVITY * DIRECTIONS[k % 26], 76):
                self.imus.publish(imu(stamp, '', w, a))
                self.fts.publish(wrench(stamp, 'foot', raw))
            self.robot.spin_for(0.06)
            k += 1

    def end(self):
        """Wait for the end, with a node that may have to answer; return the exit code."""
        self.robot.spin_until(lambda: self.process.poll() is not None, TIMEOUT)
        return self.process.returncode


@pytest.fixture
def start(robot, rng, tmp_path):
    """Return a function that starts the command with some options; it is killed afterwards."""
    with ExitStack() as stack:

        def call(*options):
            found = Call(robot, TurnedBody(rng), tmp_path, *options)
            stack.callback(found.process.kill)
            return found

        yield call


def test_session_hands_its_offset_to_the_estimator(robot, start, tmp_path):
    out = tmp_path / 'out.json'
    call = start('--calibration', robot.path, '--out', robot.path, '--json', out)
    call.turn()
    assert call.end() == 0, call.errors.read_text()
    figures, one = json.loads(out.read_text())['sensors'][SENSOR], read(robot.path)[1][SENSOR]
    np.testing.assert_array_equal(one.matrix, WORKSHOP)
    np.testing.assert_array_equal(one.offset, figures['offset'])
    np.testing.assert_allclose(one.offset, 1.02 * OFFSET, atol=2.0)
    assert one.provenance[0].method == 'offset without a model'
    assert 'live' in one.provenance[0].notes[0]
    k = HUMANOID['ft_sensors'].index(SENSOR)
    in_use = robot.estimator.pipeline._estimator.calibration
    np.testing.assert_array_equal(in_use.offsets[k], one.offset)


def test_session_is_interrupted(robot, start, tmp_path):
    call = start('--out', tmp_path / 'foot.yaml')
    robot.spin_until(lambda: 'no readings' in call.errors.read_text(), TIMEOUT)
    call.process.send_signal(signal.SIGINT)
    assert call.end() == 130 and not (tmp_path / 'foot.yaml').exists()


def test_service_stands_for_enter_and_another_file_is_not_handed_over(
    context, robot, tmp_path, monkeypatch
):
    node = SessionNode(context=context)
    node._executor.add_node(robot.estimator)
    node._executor.add_node(robot.node)
    client = robot.node.create_client(Trigger, '/ft_calibration/proceed')
    future = client.call_async(Trigger.Request())
    assert node.spin_until(future.done, TIMEOUT) and node.is_asked
    assert not hand_over(node, 'wrench_estimator', tmp_path / 'other.yaml')[0]
    assert hand_over(node, '/wrench_estimator', robot.path)[0]
    monkeypatch.setattr(calibration_session, 'WAIT', 0.2)
    assert not hand_over(node, 'unknown', robot.path)[0]
    node.destroy_node()


def test_robot_feeds_readings_of_its_samples(context, rng):
    robot, node = humanoid('head'), SessionNode(context=context)
    settings = EstimatorSettings.from_dict(HUMANOID)
    feed = RobotFeed(node, settings, HUMANOID['robot_description'], SENSOR, '')
    bench = BenchRobot(context, make=lambda **_: node)
    try:
        sample, *_ = at_rest(robot, rng)
        for k in range(1, 4):
            stamp = 10**9 + k * 10_000_000
            bench.send_contact(stamp, 'sole')
            bench.send_sample(robot, sample._replace(stamp_ns=stamp))
        bench.spin_until(lambda: len(feed._readings) == 3)
        *_, found = feed.readings()
        expected = BodyReadings(robot, SENSOR).reading(sample._replace(stamp_ns=stamp))
        assert found.stamp_ns == stamp and found.touched and not feed.readings()
        for one, other in zip(found[1:5], expected[1:5], strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        feed.destroy()
        bench.close()


def test_file_of_another_robot_is_refused_before_the_session(tmp_path, capsys):
    out = tmp_path / 'other.yaml'
    write(out, 'other', {'hand': SensorCalibration()})
    more = '--out', str(out), '--robot-name', 'a'
    assert main(['calibrate', 'live', '--ft', 'foot', *TOPICS, *more]) == 1
    assert 'other.yaml' in capsys.readouterr().err
