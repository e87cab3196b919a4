# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The demo as a user runs it: it ends by itself, and it leaves nothing behind.

Not covered: ages and cycle times, which are those of the machine; the look on a terminal.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')
pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')
pytest.importorskip('rich', reason='the tables of the demo')
pytest.importorskip('yaml', reason='reads parameter files')

from inertial_estimation.demo.carrying import NEEDED, carry
from inertial_estimation.demo.display import Display
from inertial_estimation.demo.load_results import IDENTIFIER, NOT_UPDATED, UPDATED
from inertial_estimation.demo.results import ACCELERATION_GOAL, FORCE_GOAL, GAIN_GOAL, LATE

from inertial_estimation.demo.run import find_config
from inertial_estimation.simulation.scenario import carrying

pytestmark = pytest.mark.live

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main())'
DURATION = 10.0
SEED = 3
"""Not the one that the filter's window was chosen on."""
TIMEOUT = 120.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""
N_PROCESSES = 6
"""Robot, watcher, and four estimators."""


@pytest.fixture
def start():
    """Return a function that starts the demo."""
    processes = []

    def launch(*arguments):
        processes.append(
            subprocess.Popen(
                [sys.executable, '-c', MAIN, 'demo', '--duration', f'{DURATION}', *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return processes[-1]

    yield launch
    for process in processes:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=TIMEOUT)


def children_of(process):
    """Return the processes that a process has started, and their command lines."""
    pids = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()
    return {int(pid): Path(f'/proc/{pid}/cmdline').read_text() for pid in pids}


def is_alive(pid):
    """Tell whether a process runs."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def wait_for_children(process):
    """Return the processes of the demo once all run."""
    deadline = time.monotonic() + TIMEOUT
    while len(children := children_of(process)) < N_PROCESSES:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    return children


def test_a_short_demo_from_start_to_end(start, tmp_path):
    process = start('--json', str(tmp_path / 'out.json'), '--seed', str(SEED))
    children = wait_for_children(process)
    said, wrong = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, wrong
    assert not wrong
    assert not any(map(is_alive, children))
    assert [path.name for path in tmp_path.iterdir()] == ['out.json']
    data = json.loads((tmp_path / 'out.json').read_text())
    assert data['seed'] == SEED
    assert {(s['name'], s['imus'] > 1) for s in data['scenes']} == {
        (name, several) for name in ('pole', 'standing') for several in (False, True)
    }
    for scene in data['scenes']:
        assert scene['samples'] > 100
        assert 0.0 < scene['force_rms_n'] <= FORCE_GOAL
        assert 0.0 < scene['torque_rms_nm'] < 0.2
        assert scene['force_rms_n'] > scene['noise_free_ft']['force_rms_n']
        assert scene['joint_acceleration_rms_rad_s2'] >= ACCELERATION_GOAL
    for name in ('pole', 'standing'):
        one, several = (
            next(
                s['noise_free_ft']['force_rms_n']
                for s in data['scenes']
                if s['name'] == name and (s['imus'] > 1) == many
            )
            for many in (False, True)
        )
        assert several <= (1.0 - GAIN_GOAL) * one
    for figures in (data['cycle_time_us'], data['age_ms']):
        assert set(figures) == {'p50', 'p99', 'max'}
        assert np.all(np.diff([figures['p50'], figures['p99'], figures['max']]) >= 0.0)
    assert data['missed_cycles'] >= 0
    assert said.count('met  ') == len(data['goals']) == 4
    assert 'l_upper_leg' in said and 'root_link' in said, 'the tables of both scenes'
    assert data['carrying'] is None
    assert "scene 'carrying' left out" in said


def test_a_load_is_identified(capsys):
    scenario = carrying(NEEDED, SEED)
    with Display([]) as display:
        carried = carry(scenario, find_config(), NEEDED, display)
    assert carried.report['updates'] > 0 == carried.report['inconsistent_updates']
    missed = [text for text, met in carried.goals() if not met]
    if missed and carried.age > LATE:
        pytest.skip(f'too busy a machine: estimates are {carried.age:.0f} ms old; {missed}')
    assert missed == []
    # Updates once a second, warm-up and start left out.
    assert carried.report['updates'] > 5
    assert carried.force(UPDATED, 'before') < FORCE_GOAL
    assert carried.force(NOT_UPDATED, 'at_last') > 5.0
    assert set(carried.cpu_percent) == {
        'watcher', UPDATED, NOT_UPDATED, IDENTIFIER, 'embedded_robot'
    }  # fmt: skip
    assert "scene 'carrying'" in capsys.readouterr().out


# While processes are being imported, and when all run: one handler is for all signals.
@pytest.mark.parametrize(('number', 'after'), [(signal.SIGINT, 0.0), (signal.SIGTERM, 3.0)])
def test_an_interrupt_ends_everything(start, number, after, tmp_path):
    process = start('--json', str(tmp_path / 'out.json'))
    children = wait_for_children(process)
    time.sleep(after)
    process.send_signal(number)
    _, wrong = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    assert 'Traceback' not in wrong
    assert not any(map(is_alive, children))
    assert not list(tmp_path.iterdir())


def test_a_dead_process_ends_everything_and_is_named(start):
    process = start()
    children = wait_for_children(process)
    victim = next(pid for pid, command in children.items() if ':=several_imus\0' in command)
    os.kill(victim, signal.SIGKILL)
    _, wrong = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert 'several_imus ended with signal SIGKILL' in wrong
    assert 'Traceback' not in wrong
    assert not any(map(is_alive, children))


def test_another_robot_on_the_domain_is_noticed(start, context):
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    node = Node('other_robot', context=context)
    node.create_publisher(JointState, 'joint_states', 10)
    process = start()
    _, wrong = process.communicate(timeout=TIMEOUT)
    node.destroy_node()
    assert process.returncode == 1
    assert 'another robot is on ROS domain' in wrong
