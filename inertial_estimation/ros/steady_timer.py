# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Timers of what a node consists of while it is configured."""

from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node


class SteadyTimer:
    """
    Calls something again and again, by the steady clock, until it is given back.

    An executor may still call a timer that was due when it was destroyed; from this one nothing
    comes then, so what is called need not expect that it is gone.

    period [s].
    """

    def __init__(self, node: Node, period: float, callback: Callable[[], None]) -> None:
        self._node, self._callback, self._destroyed = node, callback, False
        # Steady: a simulation that stands still, or never comes, stops nothing.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(period, self._call, clock=steady)

    def destroy(self) -> None:
        """Call nothing any more."""
        self._destroyed = True
        self._node.destroy_timer(self._timer)

    def _call(self) -> None:
        """Call unless it is over."""
        if not self._destroyed:
            self._callback()
