# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Faults from outside: any bytes, paths that are no files of this package, text that is no path.

Not covered: messages with wrong content (test_estimator_node.py).
"""

import os

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, LATCHED, START_NS, problems
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode

NODES = pytest.mark.parametrize('kind', [EstimatorNode, IdentifierNode])


@NODES
def test_messages_of_any_bytes_end_no_node(bench, rng, kind):
    robot = bench(kind)
    robot.listen_to_diagnostics()
    topics = {
        'joint_states': JointState, 'ft/leg_sensor': WrenchStamped, 'imu/head': Imu,
        'contacts': PointStamped,
    }  # fmt: skip
    for topic, message_type in topics.items():
        for size in range(40):
            # An encapsulation, and nothing of sense after it.
            data = (b'\x00\x01\x00\x00' + rng.bytes(size))[: max(4, size)]
            robot.publisher(message_type, topic).publish(data)
            robot.spin_briefly(4)
    assert problems(robot.status('ft leg_sensor'))
    for k in range(1, 30):
        robot.send_all(START_NS + k * 10**7, rng)
    assert robot.next_status('ft leg_sensor').level != DiagnosticStatus.STALE


@NODES
def test_text_of_a_topic_is_no_path(bench, tmp_path, kind):
    path = tmp_path / 'urdf'
    path.write_text(HUMANOID['robot_description'])
    robot = bench(kind, robot_description='')
    publisher = robot.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=str(path)))
    robot.spin_until(lambda: robot.estimator._received_urdf)
    assert robot.estimator.pipeline is None
    publisher.publish(String(data=HUMANOID['robot_description']))
    robot.spin_until(lambda: robot.estimator.pipeline is not None)


@NODES
@pytest.mark.parametrize('parameter', ['robot_description_file', 'calibration_file'])
@pytest.mark.parametrize('what', ['secret', 'device', 'pipe'])
def test_only_regular_files_are_read_and_never_quoted(
    bench, tmp_path, capfd, kind, parameter, what
):
    path = '/dev/zero' if what == 'device' else tmp_path / what
    if what == 'secret':
        path.write_text('password: [hunter2\n')
    elif what == 'pipe':
        os.mkfifo(path)
    given = {'robot_description': ''} if parameter == 'robot_description_file' else {}
    robot = bench(kind, **given, **{parameter: str(path)})
    assert robot.estimator.pipeline is None
    logged = capfd.readouterr().err
    assert str(path) in logged and 'hunter2' not in logged


@pytest.mark.parametrize('what', ['text', 'link', 'pipe'])
def test_foreign_files_are_left_alone(bench, tmp_path, what):
    robot = bench(**{
        name: str(tmp_path / name) for name in ('model.file', 'calibration_file')
    })  # fmt: skip
    paths = [tmp_path / name for name in ('model.file', 'calibration_file', 'state')]
    (tmp_path / 'target').write_text('of others')
    for path in paths:
        # A calibration is read at the start, so it appears while the node runs.
        if what == 'text':
            path.write_text('{"version": 3}')
        elif what == 'link':
            path.symlink_to(tmp_path / 'target')
        else:
            os.mkfifo(path)

    def held():
        return {
            path: (os.lstat(path).st_mode, path.read_text() if path.is_file() else None)
            for path in tmp_path.iterdir()
        }

    before = held()
    for service in ('save_model', 'save'):
        assert not robot.call(Trigger, service).success
    assert bench(IdentifierNode, state_file=str(paths[2])).estimator.pipeline is None
    assert held() == before
