# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work in a process of its own: failures.

Not covered: the services that use it (`test_taring.py`, `test_calibration_updates.py`).
"""

import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from inertial_estimation.calibration.calibration_file import read
from inertial_estimation.errors import CalibrationError, OffsetsNotUnique
from inertial_estimation.ros.background import Background

TIMEOUT = 60.0
"""Long, because the machine may be busy [s]."""
NODE_THAT_IS_KILLED = """
import os, sys, time
sys.path[:] = {path}
from test_background_process import Background, Node
node = Node()
print(node.wait_for(Background(node).run(os.getpid)), flush=True)
time.sleep(60.0)
"""
REFUSE = """
from inertial_estimation.errors import OffsetsNotUnique
raise OffsetsNotUnique('two feet')
"""


class Node:
    """Calls timers back when asked."""

    executor = None

    def __init__(self):
        self.timers = []

    def create_timer(self, period, callback, clock):
        self.timers.append(SimpleNamespace(look=callback))
        return self.timers[-1]

    def destroy_timer(self, timer):
        self.timers.remove(timer)

    def wait_for(self, future):
        """Call back until something is done; return its outcome."""
        deadline = time.monotonic() + TIMEOUT
        while not future.done():
            assert time.monotonic() < deadline
            for timer in tuple(self.timers):
                timer.look()
            time.sleep(0.001)
        return future.result()


def test_errors_come_back_and_a_dead_process_is_replaced(tmp_path):
    node = Node()
    background = Background(node)
    for error, work in (
        (CalibrationError, (read, tmp_path / 'nothing.yaml')),
        (OffsetsNotUnique, (exec, REFUSE)),
        (CalibrationError, (operator.floordiv, 1, 0)),
        (CalibrationError, (os._exit, 3)),
    ):
        with pytest.raises(error):
            node.wait_for(background.run(*work))
    assert node.wait_for(background.run(operator.add, 2, 2)) == 4
    background.destroy()
    assert not node.timers


def test_process_ends_with_a_node_that_is_killed():
    code = NODE_THAT_IS_KILLED.format(path=sys.path)
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True) as node:
        worker = int(node.stdout.readline())
        os.kill(node.pid, signal.SIGKILL)
        deadline = time.monotonic() + TIMEOUT
        # A zombie that nobody waits for has no command line either.
        while (path := Path(f'/proc/{worker}/cmdline')).exists() and path.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
