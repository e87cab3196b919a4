# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work that takes longer than a cycle, in a process of its own.

Cycles would wait for a thread, as one at a time runs Python. The process starts with the first
work, runs without ROS, and ends with the node.
"""

import ctypes
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as Answer
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from inertial_estimation.errors import CalibrationError, InertialEstimationError, OffsetsNotUnique
from inertial_estimation.ros.executors import SteadyTimer

LOOK = 0.02
"""Time between two looks whether the work is done [s]."""
NICENESS = 10
"""Below the processes that run cycles."""
LAST_LINES = 3
"""Of a traceback."""
PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when the one that started it ends."""


class Background:
    """Does work in its order."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pool: ProcessPoolExecutor | None = None
        self._open: deque[tuple[Answer, Future]] = deque()
        self._timer: SteadyTimer | None = None

    def run(self, work: Callable, *arguments: Any) -> Future:
        """Do some work after all that waits; return its future."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, get_context('spawn'), _begin)
        future = Future(executor=self._node.executor)
        try:
            self._open.append((self._pool.submit(_outcome, work, arguments), future))
        except BrokenProcessPool:
            # It has ended since the last work.
            self._pool = None
            return self.run(work, *arguments)
        self._timer = self._timer or SteadyTimer(self._node, LOOK, self._look)
        return future

    def destroy(self) -> None:
        """End the work and the process; the futures stay open."""
        self._open.clear()
        self._look()
        if self._pool is not None:
            for process in self._pool._processes.values():
                process.kill()
            self._pool.shutdown(cancel_futures=True)

    def _look(self) -> None:
        while self._open and self._open[0][0].done():
            answer, future = self._open.popleft()
            try:
                result, error = answer.result()
            except BrokenProcessPool as failure:
                error, self._pool = CalibrationError(f'the process has ended: {failure}'), None
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if not self._open and self._timer is not None:
            self._timer.destroy()
            self._timer = None


def _begin() -> None:
    """Prepare the process: the node decides when it is over, and ctrl-c reaches both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Take back the real-time priority and the processors of the node.
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    os.nice(NICENESS)


def _outcome(work: Callable, arguments: tuple) -> tuple[Any, CalibrationError | None]:
    """Return the result of some work and no error, or no result and its error."""
    try:
        return work(*arguments), None
    except OffsetsNotUnique as error:
        return None, error
    except InertialEstimationError as error:
        # Others need not survive a pickle.
        return None, CalibrationError(str(error), about=error.about)
    except Exception:
        last = ' '.join(traceback.format_exc().strip().splitlines()[-LAST_LINES:])
        return None, CalibrationError(f'unexpected error: {last}')
