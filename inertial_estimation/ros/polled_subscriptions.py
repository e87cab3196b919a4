# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subscriptions of a node that needs a few of the samples: it looks now and then."""

from collections.abc import Callable

from rclpy.node import Node

from inertial_estimation.ros.executors import PolledGroup, SteadyTimer
from inertial_estimation.ros.subscriptions import POLLED_QUEUE, subscribe, waiting
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.backlog import Backlog
from inertial_estimation.signals.router import Router

POLL_PERIOD = 0.05
"""Time between two looks at polled topics [s]; a second of messages fits into each history."""


class PolledSubscriptions:
    """Subscriptions that are looked at; the node's executor leaves its `PolledGroup` alone."""

    def __init__(
        self,
        node: Node,
        router: Router,
        assembler: SampleAssembler,
        on_sample: Callable[[Sample], None],
    ) -> None:
        self._on_sample = on_sample
        self._backlog = Backlog(router, assembler)
        group = PolledGroup()
        self._subscriptions = {
            id(one): subscribe(node, one, POLLED_QUEUE, one.handle, group)
            for one in router.sources
        }
        self._timer = SteadyTimer(node, POLL_PERIOD, self.poll)

    def destroy(self) -> None:
        """End the polling."""
        self._timer.destroy()

    def clear(self) -> None:
        """Forget the messages that wait for their sample."""
        self._backlog.clear()

    def poll(self) -> None:
        """Take all messages, and make the samples of them."""
        for sample in self._backlog.poll(lambda one: waiting(self._subscriptions[id(one)])):
            self._on_sample(sample)
