# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The nodes as processes: command lines, signals, time that stands still; faults from outside.

What they compute is in test_estimator_node.py and test_identifier_node.py, messages with wrong
content are in ../test_router.py.
"""

import operator
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import bench_robot
import numpy as np
import pytest
import yaml
from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    SETTLE,
    START_NS,
    TIMEOUT,
    BenchRobot,
)
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from bench.live_robots import smooth_motion, with_readings
from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import NODE_NAME
from inertial_estimation.errors import CalibrationError, OffsetsNotUnique
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.parameter_update import ParameterUpdate, from_text
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.inertial_parameters import TOPIC, to_messages

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
from inertial_estimation.ros import executors
init = executors.init

def interrupted(*args):
    init(*args)
    Gone()

executors.init = interrupted
sys.exit(nodes.{node}())
"""
SIGNALS = pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def start(tmp_path):
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
    """Return a robot whose calls go to the process."""
    make = lambda **_: Node(NODE_NAME, context=context, namespace='beside')  # noqa: E731
    return keep(BenchRobot(context, make=make))


@SIGNALS
@pytest.mark.parametrize('stopped', [False, True])
def test_estimator_ends_on_a_signal(start, robot, number, stopped):
    process = start(**HUMANOID, **NO_FILTERS, use_sim_time=stopped)
    wrenches, stamps = robot.listen_to_wrenches(), count(START_NS, PERIOD_NS)

    def estimated():
        robot.send_joints(next(stamps), [0.0] * len(JOINTS))
        return wrenches

    robot.spin_until(estimated)
    process.send_signal(number)
    _, text = process.communicate(timeout=TIMEOUT / 2)
    assert process.returncode == 0 and 'Traceback' not in text


@SIGNALS
def test_identifier_saves_its_state_on_a_signal(start, robot, tmp_path, number):
    """A process that is killed after that begins with the state."""
    state = tmp_path / 'state.json'
    given = {
        'robot_description': HUMANOID['robot_description'], 'fixed_link': 'root',
        'use_sim_time': True, 'state_file': str(state),
    }  # fmt: skip
    process = start(node='parameter_identifier', **given)
    heard = robot.listen(Float64MultiArray, 'parameter_identifier/progress', LATCHED)
    model = Robot.from_urdf(HUMANOID['robot_description'], fixed_link='root')
    samples = with_readings(model, smooth_motion(model, 12.0), model.parameters)
    for sample in (samples[k] for k in range(len(samples))):
        robot.send_sample(model, sample)
    robot.spin_until(lambda: heard)
    assert not state.exists()
    process.send_signal(number)
    assert process.wait(timeout=TIMEOUT / 2) == 0
    saved = state.read_bytes()
    for _ in range(2):
        process = start(node='parameter_identifier', **given)
        lines = iter(process.stderr.readline, '')
        assert any(f"from '{state}'" in line for line in lines)
        process.kill()
        process.wait()
        assert state.read_bytes() == saved and list(tmp_path.glob('.state*')) == []


def test_estimator_killed_while_it_saves_has_its_state_back(
    start, robot, tmp_path, rng, monkeypatch
):
    """Files are whole, of before or after; a latched update comes again by itself."""
    # Requests to a process that is gone get lost as long as its end is not noticed.
    monkeypatch.setattr(bench_robot, 'LOST', 1.0)
    files = {key: tmp_path / key for key in ('calibration_file', 'model.file')}
    given = HUMANOID | {key: str(path) for key, path in files.items()}
    given |= {'model.publisher': 'robot'}
    settings = EstimatorSettings.from_dict(given)
    model = build_robot(settings, settings.robot_description)
    calibrations = [
        {name: SensorCalibration(offset=rng.normal(size=6)) for name in settings.ft_sensors}
        for _ in range(2)
    ]
    updates = [model.parameters * factor for factor in (1.05, 1.1)]
    latched = robot.node.create_publisher(Float64MultiArray, TOPIC, LATCHED)

    def offsets():
        sensors = read(files['calibration_file'])[1].items()
        return {name: one.offset.tolist() for name, one in sensors}

    def parameters():
        return from_text(model, files['model.file'].read_text())

    def call(service):
        answer = robot.call(service)
        assert answer.success, answer.message

    write(files['calibration_file'], model.name, calibrations[0])
    latched.publish(to_messages(model, ParameterUpdate(updates[0]))[TOPIC])
    process, before = start(**given), offsets()
    for k, delay in enumerate((0.0, 0.002, 0.01)):
        # What is in use since the start.
        call('save')
        assert offsets() == before
        deadline = time.monotonic() + TIMEOUT
        call('save_model')
        while not np.array_equal(parameters(), updates[k % 2]):
            assert time.monotonic() < deadline
            call('save_model')
        kept = files['calibration_file'].read_bytes()
        write(files['calibration_file'], model.name, calibrations[1 - k % 2])
        changed = offsets()
        call('restore')
        files['calibration_file'].write_bytes(kept)
        latched.publish(to_messages(model, ParameterUpdate(updates[1 - k % 2]))[TOPIC])
        robot.spin_for(SETTLE)
        for service in ('save_model', 'save'):
            client = robot.node.create_client(Trigger, f'{NODE_NAME}/{service}')
            robot.spin_until(client.service_is_ready)
            client.call_async(Trigger.Request())
        robot.spin_for(delay)
        process.kill()
        process.wait()
        assert any(np.array_equal(parameters(), one) for one in updates)
        assert offsets() in (before, changed)
        before, process = offsets(), start(**given)
    call('restore_model')


@pytest.mark.parametrize('name', ['wrench_estimator', 'parameter_identifier'])
@SIGNALS
@pytest.mark.parametrize('code', [ON_IMPORT, ON_START], ids=['import', 'start'])
def test_signal_while_it_starts_ends_it(name, number, code):
    code = (INTERRUPTED + code).format(name=number.name, node=name)
    done = subprocess.run([sys.executable, '-c', code], timeout=TIMEOUT, check=False)
    assert done.returncode == (-number if 'Finder' in code else 0)


@pytest.mark.parametrize(
    ('words', 'expected', 'named'),
    [
        ('--help', 0, 'usage: '),
        ('--params-file file.yaml', 1, '--params-file'),
        ('--ros-args -p contact_timeout:=1', 1, 'contact_timeout'),
        ('--ros-args --params-file file.yaml', 1, 'file.yaml'),
        ('--ros-args --params-file file.yaml', 1, 'filter.windo'),
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
    # rcl may write in a line of its own that something is wrong, but not what.
    (line,) = (x for x in (done.stdout + done.stderr).splitlines() if 'FATAL' in x or 'usage' in x)
    assert done.returncode == expected and named in line


# Faults from outside


@pytest.mark.parametrize('kind', [EstimatorNode, IdentifierNode])
def test_only_regular_files_are_read_and_never_quoted(bench, tmp_path, capfd, kind):
    secret, pipe = tmp_path / 'secret', tmp_path / 'pipe'
    secret.write_text('password: [hunter2\n')
    os.mkfifo(pipe)
    for path in (secret, pipe, '/dev/zero', tmp_path / 'no_folder' / 'file'):
        for given in (
            {'robot_description': '', 'robot_description_file': str(path)},
            {'calibration_file': str(path)},
        ):
            assert bench(kind, **given).estimator.pipeline is None
            logged = capfd.readouterr().err
            assert str(path) in logged and 'hunter2' not in logged


def test_foreign_files_are_left_alone(bench, tmp_path):
    """A calibration is read at the start, so the files appear while the node runs."""
    files = {name: tmp_path / name for name in ('model.file', 'calibration_file')}
    robot = bench(**{name: str(path) for name, path in files.items()})
    paths = [*files.values(), tmp_path / 'state']
    for make in (lambda path: path.write_text('{"version": 3}'), os.mkfifo):
        for path in paths:
            path.unlink(missing_ok=True)
            make(path)
        for service in ('save_model', 'save'):
            assert not robot.call(service).success
        assert bench(IdentifierNode, state_file=str(paths[-1])).estimator.pipeline is None
        assert sorted(tmp_path.iterdir()) == sorted(paths)
        assert all(path.is_fifo() or path.read_text() == '{"version": 3}' for path in paths)
    assert all(path.is_fifo() for path in paths)


# Work in a process of its own

NODE_THAT_IS_KILLED = """
import os, time, rclpy
from inertial_estimation.ros.background import Background
rclpy.init()
node = rclpy.create_node('killed')
future = Background(node).run(os.getpid)
rclpy.spin_until_future_complete(node, future)
print(future.result(), flush=True)
time.sleep(60.0)
"""
REFUSE = """
from inertial_estimation.errors import OffsetsNotUnique
raise OffsetsNotUnique('two feet')
"""


def test_errors_come_back_and_a_dead_process_is_replaced(robot, tmp_path):
    background = Background(robot.estimator)

    def outcome(*work):
        future = background.run(*work)
        robot.spin_until(future.done, TIMEOUT)
        return future.result()

    for error, work in (
        (CalibrationError, (read, tmp_path / 'nothing.yaml')),
        (OffsetsNotUnique, (exec, REFUSE)),
        (CalibrationError, (operator.floordiv, 1, 0)),
        (CalibrationError, (os._exit, 3)),
    ):
        with pytest.raises(error):
            outcome(*work)
    # Between two pieces of work as well.
    os.kill(outcome(os.getpid), signal.SIGKILL)
    robot.spin_until(lambda: background._pool._broken)
    assert outcome(operator.add, 2, 2) == 4
    background.destroy()
    assert not list(robot.estimator.timers)


def test_process_ends_with_a_node_that_is_killed():
    command = [sys.executable, '-c', NODE_THAT_IS_KILLED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        worker = int(node.stdout.readline())
        os.kill(node.pid, signal.SIGKILL)
        deadline = time.monotonic() + TIMEOUT
        # A zombie that nobody waits for has no command line either.
        while (path := Path(f'/proc/{worker}/cmdline')).exists() and path.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
