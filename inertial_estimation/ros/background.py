# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work that no cycle waits for: diagnostics in a thread, and what takes longer in a process.

Cycles would wait for a thread that computes, as one at a time runs Python. The process starts with
the first work, runs without ROS, and ends with the node.
"""

import ctypes
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future as Answer
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future

from inertial_estimation.errors import CalibrationError, InertialEstimationError, OffsetsNotUnique
from inertial_estimation.findings import Level, alike, few
from inertial_estimation.outputs.diagnostics import FindingLog, Status, diagnostic_array
from inertial_estimation.ros.executors import SteadyTimer

REPORT_PERIOD = 1.0
"""Period of the diagnostics [s]."""
LOOK = 0.02
"""Time between two looks whether the work is done [s]."""
NICENESS = 10
"""Below the processes that run cycles."""
LAST_LINES = 3
"""Of a traceback."""
PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when the one that started it ends."""


class Diagnostics:
    """Publishes reports, and logs each finding when it appears and when it has ended."""

    def __init__(self, node: Node, robot: str) -> None:
        self._node, self._robot = node, robot
        # With its namespace, which distinguishes the nodes of two robots.
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=1)
        )
        self._log = FindingLog()
        self._reports: SimpleQueue[tuple[Callable[[], Iterable[Status]], bool] | None] = (
            SimpleQueue()
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def report(
        self, make: Callable[[], Iterable[Status]], *, is_logged: bool, limit: int = 2
    ) -> None:
        """Publish what a function returns in the other thread, unless so many reports wait."""
        if self._reports.qsize() < limit:
            self._reports.put((make, is_logged))

    def destroy(self) -> None:
        """End the thread."""
        self._reports.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (found := self._reports.get()) is not None:
            try:
                self._publish(*found)
            except Exception:
                self._node.get_logger().error(traceback.format_exc())

    def _publish(self, make: Callable[[], Iterable[Status]], is_logged: bool) -> None:
        statuses = list(make())
        if not statuses:
            return
        now_ns = self._node.get_clock().now().nanoseconds
        data = diagnostic_array(now_ns, self._name, self._robot, statuses)
        self._publisher.publish(data)
        if not is_logged:
            return
        begun, ended = self._log.update(one for status in statuses for one in status.findings)
        if ended:
            self._node.get_logger().info(f'ended: {"; ".join(ended)}')
        for first, others in alike(begun):
            also = f' (also {few(others)})' if others else ''
            # rclpy refuses two severities from one line.
            if first.level == Level.INFO:
                self._node.get_logger().info(f'{first}{also}')
            else:
                self._node.get_logger().warning(f'{first}{also}')


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
