# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Publisher of /diagnostics, in a thread of its own, so that no cycle waits for it."""

import traceback
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from threading import Thread

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import QoSProfile

from inertial_estimation.findings import Level, alike, few
from inertial_estimation.outputs.diagnostics import FindingLog, Status, diagnostic_array

REPORT_PERIOD = 1.0
"""Period of the diagnostics [s]."""


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

    def report(self, make: Callable[[], Iterable[Status]], *, is_logged: bool) -> None:
        """Publish what a function returns, if anything, which is called in the other thread."""
        if self._reports.empty():
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
            # rclpy refuses another severity from the same call.
            if first.level == Level.INFO:
                self._node.get_logger().info(f'{first}{also}')
            else:
                self._node.get_logger().warning(f'{first}{also}')
