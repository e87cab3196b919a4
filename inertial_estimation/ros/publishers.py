# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Publishers of the results: those of every cycle, and what others publish on their topics."""

from collections.abc import Sequence
from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import OutputSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.outputs.encoders import Encode, encoders
from inertial_estimation.outputs.topics import (
    OUTPUTS,
    Layout,
    Output,
    Pace,
    RateLimiter,
    Results,
    messages,
)
from inertial_estimation.ros.subscriptions import LATCHED, message_class
from inertial_estimation.sample import Sample

LOOK_RATE = 10.0
"""Of counting the subscribers of topics [Hz]."""
MAX_LAYOUTS = 64
"""Sets of contacts whose encoders are kept."""
Topics = dict[str, list[tuple[Any, Encode]]]
"""Publishers of outputs, and what encodes their messages."""
Wanted = list[tuple[Output, Sequence[int]]]
"""Outputs to be published, and those of their topics."""


class Publishers:
    """Lifecycle publishers of all results; those without subscribers cost nothing."""

    def __init__(
        self,
        node: LifecycleNode,
        estimator: WrenchEstimator,
        settings: EstimatorSettings,
        internal: InternalWrenches,
    ) -> None:
        self._node, self._estimator = node, estimator
        robot, given = estimator.robot, settings.outputs
        names = given.internal_wrench_joints
        joints = tuple(zip(names, internal.frames(names)))
        self._layout = Layout(robot, estimator.contacts, joints, given.net_wrench_links)
        self._surfaces = self._layout.surfaces
        self._topics: Topics = {
            one.topic: [
                (self.create(one.type, topic, one.pace is Pace.CHANGE), encode)
                for topic, encode in encoders(one, self._layout)
            ]
            for one in OUTPUTS
        }
        self._all: dict[Pace, Wanted] = {
            pace: [(one, range(len(self._topics[one.topic]))) for one in OUTPUTS
                   if one.pace is pace] for pace in Pace
        }  # fmt: skip
        self._always: Wanted = []
        self._single: Wanted = []
        self._layouts: dict[tuple[tuple[str, str], ...], Topics] = {}
        self._contacts: tuple[Contact, ...] | None = None
        self._named: Topics = {}
        self._look = RateLimiter(LOOK_RATE)
        self.set_rates(given)

    def set_rates(self, given: OutputSettings) -> None:
        """Take over rates."""
        self._wrenches = RateLimiter(given.wrench_rate)

    def create(self, kind: str, topic: str, is_latched: bool = False) -> Any:
        """Return a new publisher of a type of message."""
        qos = LATCHED if is_latched else QoSProfile(depth=1)
        return self._node.create_lifecycle_publisher(message_class(kind), f'~/{topic}', qos)

    def publish(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Publish the outputs of every cycle, and single wrenches."""
        stamp_ns = estimate.stamp_ns
        results = Results(
            estimate, sample=sample, robot=self._estimator.robot, surfaces=self._surfaces
        )
        if self._look.is_due(stamp_ns):
            self._always, self._single = map(self.subscribed, (Pace.CYCLE, Pace.WRENCH))
        self.send(self._always, stamp_ns, results, estimate.contacts)
        if self._single and self._wrenches.is_due(stamp_ns):
            self.send(self._single, stamp_ns, results, estimate.contacts)

    def announce(self) -> None:
        """Publish the offsets that are subtracted, which seldom change; call it once active."""
        stamp_ns = self._node.get_clock().now().nanoseconds
        results = Results(ft_offsets=self._estimator.calibration.offsets)
        self.send(self._all[Pace.CHANGE], stamp_ns, results)

    def subscribed(self, pace: Pace) -> Wanted:
        """Return the outputs of a pace with subscribers."""
        found: Wanted = []
        for output, _ in self._all[pace]:
            topics = enumerate(self._topics[output.topic])
            rows = [k for k, (publisher, _) in topics if publisher.get_subscription_count()]
            if rows:
                found.append((output, rows))
        return found

    def send(
        self,
        wanted: Wanted,
        stamp_ns: int,
        results: Results,
        contacts: tuple[Contact, ...] = (),
    ) -> None:
        """Publish some outputs."""
        for output, rows in wanted:
            every = self._named_by(contacts) if output.names_contacts else self._topics
            topics = every[output.topic]
            for row, values in messages(output, results, rows):
                publisher, encode = topics[row]
                # `publish` would look at its arguments for as long as it takes to encode them.
                if publisher.is_activated:
                    publisher.handle.publish_raw(encode(stamp_ns, values))

    def _named_by(self, contacts: tuple[Contact, ...]) -> Topics:
        """Return the topics whose messages name contacts; touches come and go."""
        if contacts is not self._contacts:
            key = tuple((contact.name, contact.frame) for contact in contacts)
            if key not in self._layouts:
                if len(self._layouts) >= MAX_LAYOUTS:
                    self._layouts.clear()
                layout = self._layout._replace(contacts=contacts)
                self._layouts[key] = {
                    one.topic: [
                        (publisher, encode)
                        for (publisher, _), (_, encode) in zip(
                            self._topics[one.topic], encoders(one, layout), strict=True
                        )
                    ]
                    for one in OUTPUTS if one.names_contacts
                }  # fmt: skip
            self._contacts, self._named = contacts, self._layouts[key]
        return self._named
