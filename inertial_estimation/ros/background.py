# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Work that takes longer than a cycle, beside the cycles: in a thread that lets them go first.

Only one thread runs Python at a time, and one that is busy gives way after a switch interval,
5 ms unless told otherwise, many cycles long. While something is done here it is far shorter.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future

GIVE_WAY = 1e-4
"""Time after which the work lets a cycle go on [s]."""
LOOK = 0.02
"""Time between two looks whether the work is done [s]."""


class Background:
    """
    Does one thing after the other.

    Parameters
    ----------
    node : Node
        Its executor calls back.

    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: deque[tuple[Callable[[], Any], Future]] = deque()
        self._thread: threading.Thread | None = None
        self._outcome: tuple[Any, BaseException | None] = None, None
        self._usual = sys.getswitchinterval()
        self._timer: Any = None

    def run(self, work: Callable[[], Any]) -> Future:
        """
        Do something once all that was asked for before is done.

        Parameters
        ----------
        work : callable
            Without arguments; it must touch nothing that a cycle uses.

        Returns
        -------
        Future
            Has its result, or raises what it raised; set by the executor of the node.

        """
        future = Future(executor=self._node.executor)
        self._waiting.append((work, future))
        if self._thread is None:
            self._begin()
        return future

    def destroy(self) -> None:
        """Wait until nothing is being done any more; nobody is told of it."""
        self._waiting.clear()
        if self._thread is not None:
            self._end()

    def _begin(self) -> None:
        """Begin with what waits longest."""
        self._usual = sys.getswitchinterval()
        sys.setswitchinterval(GIVE_WAY)
        self._thread = threading.Thread(target=self._work, args=(self._waiting[0][0],))
        self._thread.start()
        self._timer = self._node.create_timer(
            LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def _work(self, work: Callable[[], Any]) -> None:
        """Do it, in the thread."""
        try:
            self._outcome = work(), None
        except BaseException as error:
            self._outcome = None, error

    def _look(self) -> None:
        """Hand the outcome over once it is there, and go on."""
        if self._thread is None or self._thread.is_alive():
            return
        self._end()
        _, future = self._waiting.popleft()
        result, error = self._outcome
        if self._waiting:
            self._begin()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _end(self) -> None:
        """Give the thread and the timer back."""
        self._thread.join()
        self._thread = None
        sys.setswitchinterval(self._usual)
        self._node.destroy_timer(self._timer)
