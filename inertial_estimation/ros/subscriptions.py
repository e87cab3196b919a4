# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subscriptions: what the topics of a router receive is handed to it."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any

from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.validate_topic_name import validate_topic_name

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import SourceStatus, Status, known_joints_status
from inertial_estimation.ros.executors import PolledGroup
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.cdr import END_NS
from inertial_estimation.signals.messages import stamp_of
from inertial_estimation.signals.router import Router, Source
from inertial_estimation.signals.sources import sources_of

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
QUEUE_DEPTH = 50
"""Joint states that wait while the processors are busy; longer queues make results late."""
POLLED_QUEUE = 1000
"""Messages of a topic that wait until they are polled: a second at 1 kHz."""
MAX_LAG_NS, MAX_STALL_NS, RECOVERY = 5_000_000, 20_000_000, 0.04
"""
Time between joint states that wait and are all estimated, in a node that is behind and after a
stall [ns]; time since none waited in which it makes up for the stall [s].
"""


@cache
def message_class(name: str) -> Any:
    """Return the class of a message type such as 'geometry_msgs/msg/WrenchStamped'."""
    package, _, kind = name.split('/')
    return getattr(import_module(f'{package}.msg'), kind)


def deserialize(data: bytes, name: str) -> Any:
    """Return the object of a serialized message."""
    return deserialize_message(data, message_class(name))


class Inputs:
    """Router of a node, and the sample assembler and contacts that it fills."""

    def __init__(self, node: Node, settings: EstimatorSettings, robot: Robot) -> None:
        self._node, self._robot, clock = node, robot, node.get_clock()
        self.assembler = SampleAssembler(robot, settings)
        self.contacts = ContactStream(robot, settings)
        self.router = Router(
            sources_of(settings, robot, deserialize, now_ns=lambda: clock.now().nanoseconds),
            self.assembler,
            self.contacts.push,
        )
        self.polled: list[tuple[Subscription, Source]] = []
        """Subscriptions of sensors, whose messages wait for a joint state."""
        self.idle = 0.0
        """Last arrival of a joint state behind which none waited, of `perf_counter` [s]."""
        self._status = SourceStatus(robot, settings.contact_timeout)
        for source in self.router.sources:
            try:
                validate_topic_name(source.topic)
            except NameValidationException as error:
                raise ConfigError(f"topic of {source.kind} '{source.name}': {error}") from error

    def change(self, settings: EstimatorSettings) -> None:
        """Take over timeouts."""
        self.assembler.set_max_ages(settings)
        self.contacts.set_timeout(settings.contact_timeout)
        self._status.timeout = settings.contact_timeout

    def poll(self) -> None:
        """Hand over the messages that wait in `polled` subscriptions."""
        for subscription, source in self.polled:
            source.hand_over(list(waiting(subscription)))

    def reset(self) -> None:
        """Empty filters and buffers."""
        self.poll()
        self.assembler.reset()
        self.contacts.reset()

    @property
    def mixed(self) -> frozenset[tuple[str, str]]:
        """Names and kinds of the sources that had too many publishers by the last statuses."""
        return self._status.mixed

    def statuses(self, sample: Sample | None) -> Callable[[], Iterator[Status]]:
        """Return a function that makes the statuses of joints, topics and contacts."""
        self.poll()
        contacts, sources = self.contacts, self.router.sources
        statistics, counts = self.assembler.statistics(), contacts.statistics()
        problems = dict(contacts.problems)
        slow = () if sample is None else contacts.senders.slow_now(sample.stamp_ns)

        def make() -> Iterator[Status]:
            yield known_joints_status(self._robot, sample, statistics)
            count, resolve = self._node.count_publishers, self._node.resolve_topic_name
            publishers = {one.topic: count(resolve(one.topic)) for one in sources}
            given = sources, statistics, sample, counts, problems, slow, publishers
            yield from self._status.statuses(*given)
            for source in sources:
                # What is silent by the next report has none then.
                source.skew, source.skew_due = None, True

        return make


def subscribe(
    node: Node, source: Source, depth: int, callback: Callable, group: PolledGroup | None
) -> Subscription:
    """Return the best-effort subscription of a source; in a group, the owner polls it."""
    qos = QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT
    )
    return node.create_subscription(
        message_class(source.type),
        source.topic,
        callback,
        qos,
        callback_group=group,
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        raw=True,
    )


def waiting(subscription: Subscription) -> Iterator[bytes]:
    """Take every message that waits in a subscription."""
    take, kind = subscription.handle.take_message, subscription.msg_type
    while (found := take(kind, True)) is not None:
        yield found[0]


def subscribe_all(node: Node, inputs: Inputs, on_sample: Callable[[Sample, float], None]) -> None:
    """
    Make a sample of each joint state as it comes; its arrival [s] is one of `perf_counter`.

    Messages of sensors wait until then: to wake up for each would cost more than to take it.
    If joint states wait that span too long a time, only the last makes a sample; filters take all.
    """
    *others, leading = inputs.router.sources
    group = PolledGroup()
    inputs.polled = [
        (subscribe(node, one, POLLED_QUEUE, one.handle, group), one) for one in others
    ]

    def on_joints(data: bytes) -> None:
        arrival, newer = perf_counter(), list(waiting(joints))
        inputs.poll()
        messages, is_behind = (data, *newer), False
        if newer:
            has_stalled = arrival - inputs.idle < RECOVERY
            most_ns = MAX_STALL_NS if has_stalled else MAX_LAG_NS
            is_behind = stamp_of(newer[-1]) - stamp_of(data) > most_ns
        else:
            inputs.idle = arrival
        for message in messages:
            only_filtered = is_behind and message is not messages[-1]
            inputs.assembler.wanted_ns = END_NS if only_filtered else 0
            sample = leading.handle(message)
            if sample is not None:
                on_sample(sample, arrival)

    joints = subscribe(node, leading, QUEUE_DEPTH, on_joints, None)
