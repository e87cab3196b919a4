# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The demo as a user runs it: it ends by itself, and no process or file is left.

Not covered: ages and cycle times, which are those of the machine; the look on a terminal.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from rclpy.node import Node
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.live

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main())'
SEED = 3
"""Not the one that the filter's window was chosen on."""
TIMEOUT = 120.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""
N_PROCESSES = 4
"""Robot, recorder, and two estimators."""


@pytest.fixture
def start():
    """Return a function that starts the demo as a process."""
    made = []

    def launch(*arguments):
        made.append(subprocess.Popen(
            [sys.executable, '-c', MAIN, 'demo', '--duration', '10', *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ))  # fmt: skip
        return made[-1]

    yield launch
    for demo in made:
        demo.terminate()
        demo.communicate(timeout=TIMEOUT)


def children_of(demo):
    """Return the command lines of its processes by their ids, once all run."""
    deadline, found = time.monotonic() + TIMEOUT, ()
    while len(found) < N_PROCESSES:
        assert demo.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
        found = Path(f'/proc/{demo.pid}/task/{demo.pid}/children').read_text().split()
    return {int(one): Path(f'/proc/{one}/cmdline').read_text() for one in found}


def end(demo, code, children=()):
    """Check how it ends, and that no child runs any more; return its output."""
    printed, errors = demo.communicate(timeout=TIMEOUT)
    assert demo.returncode == code and 'Traceback' not in errors, errors
    for pid in children:
        path = Path(f'/proc/{pid}/stat')
        assert not path.exists() or path.read_text().rpartition(')')[2].split()[0] == 'Z'
    return printed, errors


def test_demo_reaches_its_goals_and_leaves_nothing(start, tmp_path):
    demo = start('--json', tmp_path / 'out.json', '--seed', SEED, '--duration', 29)
    printed, _ = end(demo, 0, children_of(demo))
    assert [path.name for path in tmp_path.iterdir()] == ['out.json']
    data = json.loads((tmp_path / 'out.json').read_text())
    assert data['seed'] == SEED
    figures = data['figures']
    for scene in ('pole', 'standing'):
        for one in figures[scene].values():
            assert one['force_n'] > 0.0 and 0.0 < one['torque_nm'] < 0.2
            assert one['age_p50_s'] <= one['age_p99_s'] <= one['age_max_s']
    assert figures['load']['updates'] > 0
    assert printed.count('met') + printed.count('MISSED') >= len(data['goals'])
    missed = [goal['name'] for goal in data['goals'] if not goal['reached']]
    if missed and data['busy']:
        pytest.skip(f'too busy a machine: missed {missed}')
    assert missed == []


# While processes are being imported, and when all run: one handler is for all signals.
@pytest.mark.parametrize(('number', 'after'), [(signal.SIGINT, 0.0), (signal.SIGTERM, 3.0)])
def test_interrupt_ends_everything(start, number, after, tmp_path):
    demo = start('--json', tmp_path / 'out.json')
    children = children_of(demo)
    time.sleep(after)
    demo.send_signal(number)
    end(demo, 130, children)
    assert not list(tmp_path.iterdir())


def test_dead_process_ends_everything_and_is_named(start):
    demo = start()
    children = children_of(demo)
    victim = next(pid for pid, command in children.items() if ':=several_imus\0' in command)
    os.kill(victim, signal.SIGKILL)
    _, errors = end(demo, 1, children)
    assert 'several_imus' in errors and 'SIGKILL' in errors


def test_another_robot_on_the_domain_is_refused(start, context):
    node = Node('other_robot', context=context)
    node.create_publisher(JointState, 'joint_states', 10)
    _, errors = end(start(), 1)
    node.destroy_node()
    assert 'joint_states' in errors
