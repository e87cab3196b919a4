# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of a node that needs a few of the samples."""

from collections.abc import Callable

from rclpy.node import Node

from inertial_estimation.ros.executors import PolledGroup, SteadyTimer
from inertial_estimation.ros.subscriptions import POLLED_QUEUE, Inputs, subscribe, waiting
from inertial_estimation.sample import Sample
from inertial_estimation.signals.polling import poll

POLL_PERIOD = 0.05
"""Time between two looks at the topics [s]."""


class PolledInputs:
    """Inputs of a node that needs a few of the samples, and looks for them now and then."""

    def __init__(self, node: Node, inputs: Inputs, on_sample: Callable[[Sample], None]) -> None:
        self._router, self._on_sample, group = inputs.router, on_sample, PolledGroup()
        self._subscriptions = {
            id(one): subscribe(node, one, POLLED_QUEUE, one.handle, group)
            for one in inputs.router.sources
        }
        self._timer = SteadyTimer(node, POLL_PERIOD, self.poll)

    def destroy(self) -> None:
        """End the polling."""
        self._timer.destroy()

    def poll(self) -> None:
        """Take all messages, and make the samples of them."""
        taken = lambda one: list(waiting(self._subscriptions[id(one)]))  # noqa: E731
        for sample in poll(self._router, taken):
            self._on_sample(sample)
