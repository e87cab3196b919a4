# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work in a process of its own: what comes back, in which order, and what a failure costs.

Not covered: how it is used by services (`test_taring.py`, `test_calibration_updates.py`).
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


def test_one_thing_after_the_other(node, background):
    first, second = background.run(operator.add, 1, 2), background.run(np.sqrt, 9.0)
    assert len(node.timers) == 1
    assert node.wait_for(second) == 3.0 and first.done() and first.result() == 3
    assert not node.timers


def test_refusals_come_back_with_their_words(node, background, tmp_path):
    with pytest.raises(CalibrationError):
        node.wait_for(background.run(read, tmp_path / 'nothing.yaml'))
    with pytest.raises(OffsetsNotUnique):
        node.wait_for(background.run(exec, REFUSE))


def test_a_fault_of_the_program_says_where(node, background):
    with pytest.raises(CalibrationError):
        node.wait_for(background.run(operator.floordiv, 1, 0))


def test_what_is_printed_spoils_nothing(node, background):
    assert node.wait_for(background.run(print, 'said by a library')) is None


def test_a_process_that_dies_is_replaced(node, background):
    with pytest.raises(CalibrationError):
        node.wait_for(background.run(os._exit, 3))
    assert node.wait_for(background.run(operator.add, 2, 2)) == 4


@pytest.mark.parametrize('sent', [0, 20, 400])
def test_a_node_that_ends_while_it_sends_leaves_no_traceback(sent):
    work = pickle.dumps((operator.add, (np.arange(1000), 1)))
    ended = subprocess.run(
        [sys.executable, '-m', *PROCESS], input=work[:sent], capture_output=True, check=False,
        timeout=TIMEOUT,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b'', b'')


def test_a_node_that_is_gone_when_the_answer_comes_leaves_no_traceback():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, 'wb') as nobody:
        ended = subprocess.run(
            [sys.executable, '-m', *PROCESS], input=pickle.dumps((operator.add, (1, 1))),
            stdout=nobody, stderr=subprocess.PIPE, check=False, timeout=TIMEOUT,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b'')


def test_what_is_being_done_can_be_ended(node):
    ended = Background(node)
    future = ended.run(time.sleep, 100.0)
    waiting = ended.run(operator.add, 1, 1)
    ended.destroy()
    assert not node.timers and not future.done() and not waiting.done()
    ended.destroy()
