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
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from inertial_estimation.errors import CalibrationError, InertialEstimationError, OffsetsNotUnique
from inertial_estimation.ros.background_process import DONE
from inertial_estimation.ros.executors import SteadyTimer

PROCESS = 'inertial_estimation_nodes', 'inertial_estimation.ros.background_process'
LOOK = 0.02
"""Time between two looks whether the work is done [s]."""
LAST_LINES = 3
"""Of a traceback."""


class Background:
    """Does work in its order."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: deque[tuple[Callable, tuple, Future]] = deque()
        self._process: subprocess.Popen | None = None
        self._running: _Running | None = None
        self._timer: Any = None

    def run(self, work: Callable, *arguments: Any) -> Future:
        """Do some work after all that waits; return its future."""
        future = Future(executor=self._node.executor)
        self._waiting.append((work, arguments, future))
        if self._running is None:
            self._begin()
        return future

    def destroy(self) -> None:
        """End the work and the process; the futures stay open."""
        self._waiting.clear()
        if self._process is not None:
            self._process.kill()
        if self._running is not None:
            self._end()
        self._kill()

    def _begin(self) -> None:
        """Start the first work that waits."""
        work, arguments, _ = self._waiting[0]
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, '-m', *PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        self._running = _Running(self._process, work, arguments)
        self._running.start()
        self._timer = SteadyTimer(self._node, LOOK, self._look)

    def _look(self) -> None:
        """Set the outcome once it is there, and start the next work."""
        running = self._running
        if running is None or running.is_alive():
            return
        self._end()
        if running.has_failed:
            self._kill()
        *_, future = self._waiting.popleft()
        if self._waiting:
            self._begin()
        try:
            future.set_result(running.result())
        except InertialEstimationError as error:
            future.set_exception(error)

    def _end(self) -> None:
        """End thread and timer."""
        assert self._running is not None
        self._running.join()
        self._running = None
        self._timer.destroy()

    def _kill(self) -> None:
        """End the process; the next work starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()
            self._process = None


class _Running(threading.Thread):
    """Gives work to a process and waits for it."""

    def __init__(self, process: subprocess.Popen, work: Callable, arguments: tuple) -> None:
        super().__init__(daemon=True)
        self._process, self._work = process, (work, arguments)
        self._outcome: tuple[str, Any] = '', ''
        self.has_failed = False

    def run(self) -> None:
        """Send the work, wait for the outcome."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump(self._work, self._process.stdin)
            self._process.stdin.flush()
            self._outcome = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.PickleError) as error:
            self.has_failed = True
            text = f'the process that computes has ended ({error!r})'
            self._outcome = CalibrationError.__name__, (text, ())

    def result(self) -> Any:
        """Return the result, or raise."""
        kind, found = self._outcome
        if kind == DONE:
            return found
        if kind == OffsetsNotUnique.__name__:
            raise OffsetsNotUnique(found[0])
        if kind:
            text, about = found
            raise CalibrationError(text, about=about)
        last = ' '.join(found.strip().splitlines()[-LAST_LINES:])
        raise CalibrationError(f'unexpected error: {last}')
