# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Faults from outside: a clock that stands still, damaged messages, paths that are no files of ours.

Not covered: readings that are wrong (`test_estimator_node`).
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, LATCHED, SETTLE, START_NS, TIMEOUT, BenchRobot, problems
from diagnostic_msgs.msg import DiagnosticStatus
from free_air import smooth_motion, with_readings
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from robots import nested_humanoid_urdf
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import ns_to_stamp, wrench_to_message
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode

MAIN = 'import sys, inertial_estimation_nodes as nodes; sys.exit(nodes.{}())'
FIXED = {'robot_description': nested_humanoid_urdf(), 'fixed_link': 'root'}
SHORT = b'\x00\x01\x00\x00'
"""The encapsulation of a message, and nothing after it."""
NODES = pytest.mark.parametrize('make', [EstimatorNode, IdentifierNode])
SIGNALS = pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a node as a process."""
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    processes = []

    def launch(name, **parameters):
        path = tmp_path / 'parameters.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        command = [sys.executable, '-c', MAIN.format(name), '--ros-args', '--params-file', path]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield launch
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def bench(context):
    """Return a function that puts a node with some parameters on the bench."""
    made = []

    def make(kind, **parameters):
        made.append(BenchRobot(context, HUMANOID | parameters, kind))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def publish_motion(context, process, topic, message_type):
    """Publish a moving robot until a message of a topic comes."""
    node, heard = Node('robot', context=context), []
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    node.create_subscription(message_type, topic, heard.append, LATCHED)
    robot = Robot.from_urdf(FIXED['robot_description'], fixed_link='root')
    samples = with_readings(robot, smooth_motion(robot, 12.0), robot.parameters)
    names = [sensor.name for sensor in robot.ft_sensors]
    fts = [node.create_publisher(WrenchStamped, f'ft/{name}', 100) for name in names]
    joints = node.create_publisher(JointState, 'joint_states', 100)
    deadline = time.monotonic() + TIMEOUT
    while not joints.get_subscription_count() and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.05)
    for k in range(len(samples)):
        stamp_ns = int(samples.stamp_ns[k])
        for publisher, name, wrench in zip(fts, names, samples.ft_readings[k]):
            publisher.publish(wrench_to_message(stamp_ns, name, wrench))
        state = JointState(name=list(robot.joint_names), position=samples.positions[k].tolist())
        state.velocity = samples.velocities[k].tolist()
        state.header.stamp = ns_to_stamp(stamp_ns)
        joints.publish(state)
        executor.spin_once(timeout_sec=0.003)
    while not heard and time.monotonic() < deadline and process.poll() is None:
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    node.destroy_node()
    assert heard


@SIGNALS
def test_estimator_ends_when_simulated_time_stands_still(start, context, number):
    process = start(
        'wrench_estimator',
        **HUMANOID,
        use_sim_time=True,
        **{'joint_states.acceleration_source': 'zero'},
    )
    node = Node('robot', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    heard = []
    node.create_subscription(
        MultiDOFJointState, 'wrench_estimator/external_wrenches', heard.append, 10
    )
    joints = node.create_publisher(JointState, 'joint_states', 10)
    state = JointState(name=list(JOINTS), position=[0.0] * len(JOINTS))
    deadline, stamp_ns = time.monotonic() + TIMEOUT, START_NS
    while not heard and time.monotonic() < deadline:
        stamp_ns += 10**7
        state.header.stamp = ns_to_stamp(stamp_ns)
        joints.publish(state)
        executor.spin_once(timeout_sec=0.02)
    executor.shutdown()
    node.destroy_node()
    assert heard
    process.send_signal(number)
    assert process.wait(timeout=TIMEOUT / 2) == 0


@SIGNALS
def test_identifier_saves_when_simulated_time_stands_still(start, context, tmp_path, number):
    state = tmp_path / 'state.json'
    given = {'use_sim_time': True, 'state_file': str(state), 'refit.min_determined': 3}
    process = start('parameter_identifier', **FIXED, **given)
    publish_motion(context, process, 'parameter_identifier/progress', Float64MultiArray)
    assert not state.exists()
    process.send_signal(number)
    assert process.wait(timeout=TIMEOUT / 2) == 0
    assert state.exists()


@NODES
def test_messages_of_any_bytes_end_no_node(bench, make):
    robot, rng = bench(make), np.random.default_rng(0)
    robot.listen_to_diagnostics()
    topics = {
        'joint_states': JointState, 'ft/leg_sensor': WrenchStamped, 'imu/head': Imu,
        'contacts': PointStamped,
    }  # fmt: skip
    for topic, kind in topics.items():
        publisher = robot.publisher(kind, topic)
        for size in range(0, 40):
            publisher.publish((SHORT + rng.bytes(size))[: max(4, size)])
            robot.spin_briefly(4)
    assert problems(robot.status('ft leg_sensor'))
    for k in range(1, 30):
        robot.send_all(START_NS + k * 10**7, rng)
    status = robot.next_status('ft leg_sensor')
    assert status.level != DiagnosticStatus.STALE


def test_nested_text_on_ft_calibration_is_refused(bench):
    robot = bench(IdentifierNode)
    robot.listen_to_diagnostics()
    publisher = robot.node.create_publisher(String, 'ft_calibration', LATCHED)
    publisher.publish(String(data='[' * 100_000))
    robot.spin_until(lambda: robot.next_status('ft_calibration').level == DiagnosticStatus.WARN)


@NODES
@pytest.mark.parametrize('kind', ['urdf', 'device', 'pipe'])
def test_text_of_a_topic_is_no_path(bench, tmp_path, make, kind):
    path = '/dev/zero' if kind == 'device' else tmp_path / kind
    if kind == 'urdf':
        path.write_text(HUMANOID['robot_description'])
    elif kind == 'pipe':
        os.mkfifo(path)
    robot = bench(make, robot_description='')
    publisher = robot.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=str(path)))
    robot.spin_until(lambda: robot.estimator._received_urdf)
    assert robot.estimator.pipeline is None
    publisher.publish(String(data=HUMANOID['robot_description']))
    robot.spin_until(lambda: robot.estimator.pipeline is not None)


@NODES
@pytest.mark.parametrize('parameter', ['robot_description_file', 'calibration_file'])
def test_content_of_a_file_is_not_logged(bench, tmp_path, capfd, make, parameter):
    path = tmp_path / 'secret'
    path.write_text('password: [hunter2\n')
    given = {'robot_description': ''} if parameter == 'robot_description_file' else {}
    robot = bench(make, **given, **{parameter: str(path)})
    assert robot.estimator.pipeline is None
    said = capfd.readouterr().err
    assert 'secret' in said
    assert 'hunter2' not in said


@NODES
@pytest.mark.parametrize('path', ['/dev/zero', 'pipe'])
@pytest.mark.parametrize('parameter', ['robot_description_file', 'calibration_file'])
def test_only_regular_files_are_read(bench, tmp_path, make, parameter, path):
    if path == 'pipe':
        path = str(tmp_path / 'pipe')
        os.mkfifo(path)
    given = {'robot_description': ''} if parameter == 'robot_description_file' else {}
    robot = bench(make, **given, **{parameter: path})
    assert robot.estimator.pipeline is None


def foreign(folder, kind):
    """Return a path that holds something of others, and what it holds."""
    path, target = folder / 'file', folder / 'target'
    if kind == 'text':
        path.write_text('{"version": 3}')
    elif kind == 'link':
        target.write_text('of others')
        path.symlink_to(target)
    elif kind == 'device link':
        # A terminal: in its folder no file could replace it, should this ever fail.
        path.symlink_to(os.ttyname(os.openpty()[1]))
    elif kind == 'pipe':
        os.mkfifo(path)
    else:
        path.mkdir()
    return path


def held(path):
    return (os.lstat(path).st_mode, path.read_text() if path.is_file() else None)


FOREIGN = pytest.mark.parametrize('kind', ['text', 'link', 'device link', 'pipe', 'folder'])


def call(robot, service):
    client = robot.node.create_client(Trigger, f'{robot.estimator.get_name()}/{service}')
    robot.spin_until(client.service_is_ready)
    future = client.call_async(Trigger.Request())
    robot.spin_until(future.done)
    robot.node.destroy_client(client)
    return future.result()


@FOREIGN
@pytest.mark.parametrize(
    ('parameter', 'service'), [('model_file', 'save_model'), ('calibration_file', 'save')]
)
def test_estimator_replaces_no_foreign_file(bench, tmp_path, kind, parameter, service):
    path = foreign(tmp_path, kind)
    before = held(path)
    # A calibration is read at the start, so it appears when the node runs.
    if parameter == 'calibration_file':
        aside = path.rename(tmp_path / 'aside')
    robot = bench(EstimatorNode, **{parameter: str(path)})
    if parameter == 'calibration_file':
        aside.rename(path)
    assert not call(robot, service).success
    assert held(path) == before
    robot.spin_for(SETTLE)


@FOREIGN
def test_identifier_leaves_foreign_files_alone(bench, tmp_path, kind):
    path = foreign(tmp_path, kind)
    before, names = held(path), sorted(tmp_path.iterdir())
    robot = bench(IdentifierNode, state_file=str(path))
    assert robot.estimator.pipeline is None
    assert held(path) == before
    assert sorted(tmp_path.iterdir()) == names


def test_a_saved_model_keeps_mode_and_link(bench, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    robot = bench(EstimatorNode, **{'model.file': '~/link'})
    path = tmp_path / 'model'
    (tmp_path / 'link').symlink_to(path)
    assert call(robot, 'save_model').success
    path.chmod(0o600)
    assert call(robot, 'save_model').success
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / 'link').is_symlink()
    assert call(robot, 'restore_model').success
