# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work that takes longer than a cycle, in a process of its own.

Cycles would wait for a thread, as one at a time runs Python. The process starts with the first
work, and ends with the node.
"""

import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as Answer
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from inertial_estimation.errors import CalibrationError
from inertial_estimation.ros.executors import SteadyTimer

PROCESS = 'inertial_estimation_nodes', 'inertial_estimation.ros.background_process'
LOOK = 0.02
"""Time between two looks whether the work is done [s]."""


class Background:
    """Does work in its order."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # A thread that waits for the process.
        self._thread = ThreadPoolExecutor(1)
        self._process: subprocess.Popen | None = None
        self._open: deque[tuple[Answer, Future]] = deque()
        self._timer: SteadyTimer | None = None

    def run(self, work: Callable, *arguments: Any) -> Future:
        """Do some work after all that waits; return its future."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, '-m', *PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        future = Future(executor=self._node.executor)
        self._open.append((self._thread.submit(_ask, self._process, work, arguments), future))
        self._timer = self._timer or SteadyTimer(self._node, LOOK, self._look)
        return future

    def destroy(self) -> None:
        """End the work and the process; the futures stay open."""
        self._open.clear()
        self._look()
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown()
        if self._process is not None:
            _end(self._process)

    def _look(self) -> None:
        """Set the outcomes that are there."""
        while self._open and self._open[0][0].done():
            answer, future = self._open.popleft()
            if (error := answer.exception()) is None:
                future.set_result(answer.result())
            else:
                future.set_exception(error)
        if not self._open and self._timer is not None:
            self._timer.destroy()
            self._timer = None


def _ask(process: subprocess.Popen, work: Callable, arguments: tuple) -> Any:
    """Give work to a process; return its result, or raise its error."""
    assert process.stdin is not None and process.stdout is not None
    try:
        pickle.dump((work, arguments), process.stdin)
        process.stdin.flush()
        result, error = pickle.load(process.stdout)
    except (EOFError, OSError, ValueError, pickle.PickleError) as failure:
        process.kill()
        _end(process)
        text = f'the process that computes has ended ({failure!r})'
        raise CalibrationError(text) from failure
    if error is not None:
        raise error
    return result


def _end(process: subprocess.Popen) -> None:
    """Wait for a process that was killed, and close its pipes."""
    with suppress(OSError), process:
        pass
