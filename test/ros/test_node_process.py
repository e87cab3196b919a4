# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The node as a process: it works, and ends on a signal.

What it computes is in test_estimator_node.py.
"""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, START_NS, TIMEOUT
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState, MultiDOFJointState

from inertial_estimation.config.settings import NODE_NAME
from inertial_estimation.errors import ConfigError
from inertial_estimation.ros.conversions import ns_to_stamp, stamp_to_ns
from inertial_estimation.ros.parameters import empty_lists

ANSWER = 2.0
"""How long the answer of a service is waited for [s]."""
MAIN = 'import sys; from inertial_estimation.ros.estimator_node import main; sys.exit(main())'
FORGETTING = """
import signal, sys
import inertial_estimation_nodes as nodes

class Gone:
    def __del__(self):
        # An exception that a handler raises here is printed and forgotten.
        signal.raise_signal(signal.{name})
"""
ON_IMPORT = """
class Finder:
    def find_spec(self, name, *_):
        if name == 'inertial_estimation.ros.configured_node':
            Gone()

sys.meta_path.insert(0, Finder())
sys.exit(nodes.{node}())
"""
ON_START = """
from inertial_estimation.ros import configured_node
init = configured_node.init

def interrupted(*args):
    init(*args)
    Gone()

configured_node.init = interrupted
sys.exit(nodes.{node}())
"""
TOPIC = 'wrench_estimator/external_wrenches'


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the node with some parameters."""
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    processes = []

    def launch(**parameters):
        path = tmp_path / 'parameters.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': HUMANOID | parameters}}))
        command = [sys.executable, '-c', MAIN, '--ros-args', '--params-file', str(path)]
        processes.append(
            subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        return processes[-1]

    yield launch
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def node(context):
    """Return a node that publishes joint states, and the executor to spin it."""
    node = Node('robot', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    yield node, executor
    executor.shutdown()
    node.destroy_node()


def wait_for_estimate(process, node, executor):
    """Publish joint states until an estimate of one of them comes; return its stamp."""
    stamps = []
    node.create_subscription(
        MultiDOFJointState, TOPIC, lambda m: stamps.append(stamp_to_ns(m.header.stamp)), 10
    )
    publisher = node.create_publisher(JointState, 'joint_states', 10)
    message = JointState(name=list(JOINTS), position=np.zeros(len(JOINTS)).tolist())
    deadline, stamp = time.monotonic() + TIMEOUT, START_NS
    while not stamps and time.monotonic() < deadline and process.poll() is None:
        stamp += 10**7
        message.header.stamp = ns_to_stamp(stamp)
        publisher.publish(message)
        executor.spin_once(timeout_sec=0.02)
    if not stamps:
        process.send_signal(signal.SIGINT)
        pytest.fail(f'no estimate; the node said: {process.communicate(timeout=TIMEOUT)}')
    return stamps[0]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_runs_and_ends_cleanly(start, node, number):
    process = start()
    assert wait_for_estimate(process, *node) > START_NS
    process.send_signal(number)
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert 'Traceback' not in said


def test_a_word_that_ros_does_not_hear_is_refused():
    # Without --ros-args the file would not be read, and no word said.
    command = [sys.executable, '-c', MAIN, '--params-file', 'robot.yaml']
    done = subprocess.run(command, timeout=TIMEOUT, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert '--params-file' in done.stderr and '--ros-args' in done.stderr


@pytest.mark.parametrize('word', ['-h', '--help'])
def test_help_runs_no_node(word):
    code = 'import sys, inertial_estimation_nodes as nodes; sys.exit(nodes.wrench_estimator())'
    done = subprocess.run(
        [sys.executable, '-c', code, word],
        timeout=TIMEOUT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith('usage: ') and 'ros2 param describe' in done.stdout


NODES = pytest.mark.parametrize('node', ['wrench_estimator', 'parameter_identifier'])
SIGNALS = pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])


def run_interrupted(code, node, number):
    """Run a node that gets a signal where an exception would be lost; return its exit code."""
    code = (FORGETTING + code).format(name=number.name, node=node)
    return subprocess.run([sys.executable, '-c', code], timeout=TIMEOUT, check=False).returncode


@NODES
@SIGNALS
def test_a_signal_in_the_middle_of_an_import_ends_it(node, number):
    assert run_interrupted(ON_IMPORT, node, number) == -number


@NODES
@SIGNALS
def test_a_signal_before_it_has_started_ends_it(node, number):
    assert run_interrupted(ON_START, node, number) == 0


def test_a_lifecycle_manager_can_start_it(start, node):
    process = start(autostart=False)
    node, spinner = node
    client = node.create_client(ChangeState, 'wrench_estimator/change_state')
    for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        request = ChangeState.Request(transition=Transition(id=transition))
        deadline = time.monotonic() + TIMEOUT
        # While the two are still finding each other, a request or an answer may get lost.
        answered = False
        while not answered and time.monotonic() < deadline:
            future = client.call_async(request)
            spinner.spin_until_future_complete(future, timeout_sec=ANSWER)
            answered = future.done()
        assert answered
    assert wait_for_estimate(process, node, spinner) > START_NS


def test_says_in_one_line_what_is_wrong_with_a_parameter(start):
    process = start(length_scale=1)
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert "'length_scale'" in said
    assert 'Traceback' not in said


def run_with(*ros_args):
    """Run the node with a command line that is wrong; return what it said."""
    command = [sys.executable, '-c', MAIN, '--ros-args', *ros_args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    # rcl may say in a line of its own that something is wrong, but not what.
    (fatal,) = (line for line in done.stderr.splitlines() if 'FATAL' in line)
    return fatal


def test_a_parameter_file_that_does_not_exist_is_named(tmp_path):
    path = str(tmp_path / 'nowhere.yaml')
    assert path in run_with('--params-file', path)
    assert str(tmp_path) in run_with('--params-file', str(tmp_path))


@pytest.mark.parametrize(
    'content',
    [b'a: [1\n b: 2', b'wrench_estimator: {length_scale: 1.0}', bytes(range(256))],
    ids=['malformed', 'without sections', 'binary'],
)
def test_a_parameter_file_that_is_none_is_named(tmp_path, content):
    path = tmp_path / 'parameters.yaml'
    path.write_bytes(content)
    assert str(path) in run_with('--params-file', str(path))


@pytest.mark.parametrize('argument', ['-p use_sim_time:=maybe', '-r a:=b:=c', '--nonsense'])
def test_other_mistakes_of_the_command_line_take_one_line(argument):
    assert argument.split(':=')[0].split()[-1] in run_with(*argument.split())


def said_of(*ros_args):
    """Return the lists that a command line empties, as the node would."""
    return {p.name: p.value for p in empty_lists(['node', '--ros-args', *ros_args], NODE_NAME)}


def test_an_empty_list_is_the_last_word_where_it_stands_last(tmp_path):
    full, empty = tmp_path / 'full.yaml', tmp_path / 'empty.yaml'
    full.write_text('/**: {ros__parameters: {imus: [chest], ft: {leg: {offset: [1.0]}}}}')
    empty.write_text(
        f'{NODE_NAME}: {{ros__parameters: {{imus: [], ft: {{leg: {{offset: []}}}}}}}}'
    )
    both = {'imus': [], 'ft.leg.offset': []}
    files = '--params-file', str(full), '--params-file', str(empty)
    assert said_of(*files) == both
    assert said_of(*files, '-p', 'imus:=[chest]') == {'ft.leg.offset': []}
    assert said_of(*files[2:], *files[:2]) == {}
    assert said_of('--params-file', str(full), '-p', 'imus:=[ ]') == {'imus': []}
    assert said_of('-p', f'{NODE_NAME}:imus:=[]', '-p', 'other:contacts:=[]') == {'imus': []}
    assert said_of(*files, '-r', '__node:=another') == {}
    # What is no list, and what is not for ROS, is not its business.
    assert said_of('-p', 'gravity_:=[]', '-p', 'fixed_link:=[]', '--', '-p', 'imus:=[]') == {}


def test_a_name_that_is_there_twice_in_a_parameter_file_is_refused(tmp_path):
    path = tmp_path / 'twice.yaml'
    path.write_text('/**:\n  ros__parameters:\n    autostart: true\n    autostart: false\n')
    with pytest.raises(ConfigError, match='autostart'):
        said_of('--params-file', str(path))


def test_an_empty_list_on_top_of_a_file_empties_the_list(tmp_path):
    path = tmp_path / 'parameters.yaml'
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    path.write_text(yaml.safe_dump({'/**': {'ros__parameters': HUMANOID}}))
    command = [sys.executable, '-c', MAIN, '--ros-args', '--params-file', str(path)]
    process = subprocess.Popen(
        [*command, '-p', 'imus:=[]'], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        said = ''
        while 'stays unconfigured' not in said and (line := process.stderr.readline()):
            said += line
    finally:
        # It may still be starting, and is to say something, not to stop.
        process.kill()
        process.communicate(timeout=TIMEOUT)
    assert 'IMU' in said
