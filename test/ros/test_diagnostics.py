# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Diagnostics of the node: on their topic, and in the log.

Not covered: the statuses themselves (../test_outputs.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, PERIOD_NS, START_NS, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus

NO_FILTERS = {'joint_states.acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({}, {'imu shank'}),
        ({'imu.shank.measures': 'accelerometer'}, set()),
    ],
)
def test_an_accelerometer_alone_is_one_warning_at_most(context, rng, given, said):
    parameters = {'imus': ['head', 'shank'], 'contacts': ['sole', 'hand', 'head']}
    robot = BenchRobot(context, HUMANOID | parameters | given)
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        for k in range(12):
            stamp = START_NS + k * PERIOD_NS
            robot.send_imu('shank', stamp, [np.nan] * 3, rng.standard_normal(3))
            robot.send_all(stamp, rng)
            robot.wait_for_stamp(wrenches, stamp)
        robot.status('imu shank')
        report = robot._report.values()
        # The bench stamps its messages with a clock of its own.
        bad = {
            s.name
            for s in report
            if s.level != DiagnosticStatus.OK
            and 'clock' not in s.message
            and 'uninformed' not in s.message
        }
        assert {name.removeprefix('wrench_estimator: ') for name in bad} == said
    finally:
        robot.close()


def test_an_error_of_the_estimator_is_reported_once(context, monkeypatch, rng):
    robot = BenchRobot(context, HUMANOID | {'autostart': True})
    try:
        estimator = robot.estimator.pipeline._estimator

        def refuse(sample, contacts):
            raise np.linalg.LinAlgError('Singular matrix')

        heard = robot.listen_to_diagnostics()

        def said():
            return [status.message for message in heard for status in message.status]

        monkeypatch.setattr(estimator, 'update', refuse)
        robot.send_all(START_NS, rng)
        robot.spin_until(lambda: any('Singular matrix' in text for text in said()))
        status = robot.status('cycle')
        assert status.level == DiagnosticStatus.ERROR
        assert figure(status, 'failed cycles, total') == '1'
    finally:
        robot.close()


def test_the_time_while_inactive_is_not_missed(context, rng):
    robot = BenchRobot(context, HUMANOID | {'autostart': True})
    try:
        node, cycles = robot.estimator, robot.estimator.pipeline.cycles
        robot.listen_to_diagnostics()
        stamps = START_NS + PERIOD_NS * np.array([0, 1, 2, 500, 501, 502])
        for k, stamp in enumerate(stamps.tolist()):
            if k == 3:
                node.trigger_deactivate()
                node.trigger_activate()
            robot.send_all(stamp, rng)
            robot.spin_until(lambda k=k: len(cycles.since(0)[0]) > k)
        assert figure(robot.status('cycle'), 'missed cycles, total') == '0'
    finally:
        robot.close()


def test_nodes_of_two_namespaces_have_different_names(context):
    robot = BenchRobot(context, HUMANOID, namespace='left')
    try:
        robot.listen_to_diagnostics()
        messages = robot.heard['/diagnostics']
        robot.spin_until(lambda: messages)
        assert all(one.name.startswith('left/wrench_estimator: ') for one in messages[0].status)
    finally:
        robot.close()


def test_findings_are_logged_once(context, rng, capfd):
    robot = BenchRobot(context, HUMANOID | NO_FILTERS)
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        for k in range(3):
            robot.send_all(START_NS + k * PERIOD_NS, rng)
            robot.wait_for_stamp(wrenches, START_NS + k * PERIOD_NS)
            status = robot.next_status('dependence')
            assert figure(status, 'torque knee')
        assert capfd.readouterr().err.count('dependence: ') == 1
    finally:
        robot.close()
