# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A node that writes lines of JSON; the last one, written when it is interrupted, counts."""

import json
import os
import sys
from abc import abstractmethod
from collections.abc import Callable
from time import time_ns

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from inertial_estimation.ros.executors import LONG, hand_over, make_executor, note_signals

PERIOD = 0.5
"""Time between two lines [s]."""


class Reporter(Node):
    """Writes a line now and then."""

    def __init__(self, name: str, write: Callable[[str], object]) -> None:
        super().__init__(name)
        self.done = Future()
        self._write = write
        self._stopped = False
        self._written_ns = time_ns()
        # Signals are seen between two of these only.
        self.create_timer(0.1 * PERIOD, self._tick)

    @abstractmethod
    def report(self) -> dict:
        """Return what is found so far, for JSON."""

    def stop(self, *_) -> None:
        """Write the result and end; fit for a signal handler."""
        self._stopped = True

    def _tick(self) -> None:
        """Write a line if it is time."""
        now_ns = time_ns()
        # A signal in the middle of this must bring one more line: this one may be read already.
        last = self._stopped
        waits = now_ns - self._written_ns < PERIOD * 1e9 and not last
        if waits or self.done.done():
            return
        self._written_ns = now_ns
        if self.count_publishers('joint_states') > 1:
            domain = os.environ.get('ROS_DOMAIN_ID', '0')
            self.done.set_result(
                f'another robot is on ROS domain {domain}: set ROS_DOMAIN_ID to one of your own'
            )
            return
        self._write(json.dumps(self.report(), allow_nan=True) + '\n')
        if last:
            self.done.set_result('')


def run(make: Callable[[], Reporter]) -> int:
    """Run a process with one node until it is interrupted."""
    # The handlers of rclpy would interrupt callbacks anywhere; the timer looks after ours.
    signals = note_signals()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = make()
    hand_over(signals, node.stop)
    executor = make_executor('events')
    executor.add_node(node)
    # A signal may wake the executor before its handler has run.
    while not node.done.done():
        executor.spin_until_future_complete(node.done, timeout_sec=LONG)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()
    if node.done.result():
        sys.stderr.write(node.done.result() + '\n')
        return 1
    return 0


def write_line(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line)
    sys.stdout.flush()
