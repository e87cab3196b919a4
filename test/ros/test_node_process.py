# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The nodes as processes: command lines, signals, simulated time that stands still.

What they compute is in test_estimator_node.py and test_identifier_node.py.
"""

import signal
import subprocess
import sys
from itertools import count

import pytest
import yaml

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    START_NS,
    TIMEOUT,
    BenchRobot,
)
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from bench.live_robots import smooth_motion, with_readings
from inertial_estimation.config.settings import NODE_NAME
from inertial_estimation.model.robot import Robot

MAIN = 'import sys, inertial_estimation_nodes as nodes; sys.exit(nodes.{}())'
# An exception that a signal handler raises in __del__ is printed and forgotten.
INTERRUPTED = """
import signal, sys
import inertial_estimation_nodes as nodes

class Gone:
    def __del__(self):
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
NODES = pytest.mark.parametrize('name', ['wrench_estimator', 'parameter_identifier'])
SIGNALS = pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a node with some parameters."""
    processes = []

    def launch(*arguments, node=NODE_NAME, **parameters):
        path = tmp_path / 'parameters.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        command = [sys.executable, '-c', MAIN.format(node), '--ros-args', '--params-file', path]
        processes.append(
            subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
        )
        return processes[-1]

    yield launch
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def robot(context, keep):
    """Return a robot beside the nodes of the package."""
    return keep(BenchRobot(context, make=lambda **_: Node('beside', context=context)))


@SIGNALS
@pytest.mark.parametrize('stopped', [False, True])
def test_estimator_ends_on_a_signal(start, robot, number, stopped):
    process = start(**HUMANOID, **NO_FILTERS, use_sim_time=stopped)
    wrenches, stamps = robot.listen_to_wrenches(), count(START_NS, PERIOD_NS)

    def estimated():
        robot.send_joints(next(stamps), position=[0.0] * len(JOINTS))
        return wrenches

    robot.spin_until(estimated)
    process.send_signal(number)
    _, text = process.communicate(timeout=TIMEOUT / 2)
    assert process.returncode == 0 and 'Traceback' not in text


@SIGNALS
def test_identifier_saves_its_state_on_a_signal(start, robot, tmp_path, number):
    state, topic = tmp_path / 'state.json', 'parameter_identifier/progress'
    process = start(
        node='parameter_identifier', robot_description=HUMANOID['robot_description'],
        fixed_link='root', use_sim_time=True, state_file=str(state),
    )  # fmt: skip
    robot.listen(Float64MultiArray, topic, LATCHED)
    model = Robot.from_urdf(HUMANOID['robot_description'], fixed_link='root')
    samples = with_readings(model, smooth_motion(model, 12.0), model.parameters)
    for sample in (samples[k] for k in range(len(samples))):
        for sensor, wrench in zip(model.ft_sensors, sample.ft_readings):
            robot.send_ft(sensor.name, sample.stamp_ns, wrench)
        values = {'position': sample.positions, 'velocity': sample.velocities}
        robot.send_joints(sample.stamp_ns, model.joint_names, **values)
        robot.spin_briefly(3)
    robot.spin_until(lambda: robot.heard[topic])
    assert not state.exists()
    process.send_signal(number)
    assert process.wait(timeout=TIMEOUT / 2) == 0
    assert state.exists()


@NODES
@SIGNALS
@pytest.mark.parametrize('code', [ON_IMPORT, ON_START], ids=['import', 'start'])
def test_signal_while_it_starts_ends_it(name, number, code):
    code = (INTERRUPTED + code).format(name=number.name, node=name)
    done = subprocess.run([sys.executable, '-c', code], timeout=TIMEOUT, check=False)
    assert done.returncode == (-number if 'Finder' in code else 0)


FILE = '--ros-args --params-file file.yaml'


@pytest.mark.parametrize(
    ('words', 'expected', 'named'),
    [
        ('--help', 0, 'usage: '),
        ('--params-file file.yaml', 1, '--params-file'),
        ('--ros-args -p contact_timeout:=1', 1, 'contact_timeout'),
        (FILE, 1, 'file.yaml'),
        (FILE, 1, 'filter.windo'),
    ],
)
def test_command_line_and_parameter_file(tmp_path, words, expected, named):
    text = '/**: {ros__parameters: {filter: {windo: 0.1}}}' if 'windo' in named else 'a: [1\n b: 2'
    (tmp_path / 'file.yaml').write_text(text)
    command = [sys.executable, '-c', MAIN.format(NODE_NAME), *words.split()]
    done = subprocess.run(
        command, timeout=TIMEOUT, check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert 'Traceback' not in done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    if words == FILE:
        # rcl may write in a line of its own that something is wrong, but not what.
        (line,) = (line for line in lines if 'FATAL' in line)
        lines = [line]
    assert done.returncode == expected and any(named in line for line in lines)
