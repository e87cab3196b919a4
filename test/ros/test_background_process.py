# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work in a process of its own: failures.

Not covered: the services that use it (`test_taring.py`, `test_calibration_updates.py`).
"""

import operator
import os
import pickle
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from inertial_estimation.calibration.calibration_file import read
from inertial_estimation.errors import CalibrationError, OffsetsNotUnique
from inertial_estimation.ros.background import PROCESS, Background

TIMEOUT = 60.0
"""Long, because the machine may be busy [s]."""
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


@pytest.fixture(scope='module')
def node():
    return Node()


@pytest.fixture(scope='module')
def background(node):
    made = Background(node)
    yield made
    made.destroy()
    assert not node.timers


def test_errors_come_back_and_a_dead_process_is_replaced(node, background, tmp_path):
    for error, work in (
        (CalibrationError, (read, tmp_path / 'nothing.yaml')),
        (OffsetsNotUnique, (exec, REFUSE)),
        (CalibrationError, (operator.floordiv, 1, 0)),
        (CalibrationError, (os._exit, 3)),
    ):
        with pytest.raises(error):
            node.wait_for(background.run(*work))
    assert node.wait_for(background.run(operator.add, 2, 2)) == 4


@pytest.mark.parametrize('sent', [0, 400, None])
def test_a_node_that_is_gone_leaves_no_traceback(sent):
    work = pickle.dumps((operator.add, (np.arange(1000), 1)))
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, 'wb') as closed:
        ended = subprocess.run(
            [sys.executable, '-m', *PROCESS], input=work[:sent], check=False, timeout=TIMEOUT,
            stdout=closed, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b'')
