# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Timers of parts of a node: nothing comes from one that was given back."""

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from rclpy.clock import ClockType

from inertial_estimation.ros.steady_timer import SteadyTimer


class LateNode:
    """Keeps what its timers call, as an executor does that has found them due."""

    def create_timer(self, period, callback, clock):
        self.due, self.clock = callback, clock
        return 'timer'

    def destroy_timer(self, timer):
        self.destroyed = timer


def test_what_was_due_when_it_was_given_back_is_not_called():
    node, calls = LateNode(), []
    timer = SteadyTimer(node, 0.05, lambda: calls.append(1))
    assert node.clock.clock_type == ClockType.STEADY_TIME
    node.due()
    timer.destroy()
    node.due()
    assert (calls, node.destroyed) == ([1], 'timer')
