# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Publishers of the results: wrenches, torques, standard deviations and markers."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from numpy.linalg import LinAlgError
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import OutputSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import finding
from inertial_estimation.outputs import markers
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.markers import MARKER_ARRAY, marker_array
from inertial_estimation.outputs.table import (
    OUTPUTS,
    Encode,
    Layout,
    Output,
    Pace,
    Results,
    encoders,
    known_rows,
)
from inertial_estimation.ros.subscriptions import LATCHED, message_class
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.cdr import NANOSECONDS
from inertial_estimation.uncertainty.deviations import Deviations, LiveUncertainty

MAX_SHARE = 0.2
"""Time for deviations, and for internal wrenches, over the time of the cycles."""
LOOK_RATE = 10.0
"""Of counting the subscribers of topics [Hz]."""
MARKER_RATE, STATE_RATE = 30.0, 1.0
"""Of wrench markers, and of those that seldom change [Hz]."""
INSIDE = ('internal_wrench', 'net_wrench')
"""Outputs that take more time than the others."""
MAX_LAYOUTS = 64
"""Sets of contacts whose encoders are kept."""


class RateLimiter:
    """Lets work begin at a rate, and only when it takes a share of the cycles' time at most."""

    def __init__(self, rate: float) -> None:
        self._period_ns = round(NANOSECONDS / rate) if rate else 0
        self._last_ns = -NANOSECONDS
        self._busy = self._owed = 0.0

    def is_due(self, stamp_ns: int) -> bool:
        """Tell whether work may begin; its next time is a period later."""
        # Time may have been set back since.
        if 0 <= stamp_ns - self._last_ns < self._period_ns or self._busy < self._owed:
            return False
        self._last_ns = stamp_ns
        return True

    def earn(self, duration: float) -> None:
        """Add the time of a cycle [s]."""
        self._busy += duration

    def spend(self, duration: float) -> None:
        """Note the time of the work [s]: cycles must take `1 / MAX_SHARE` of it before more."""
        self._busy, self._owed = 0.0, duration / MAX_SHARE


class Topic(NamedTuple):
    """A publisher, and what encodes its messages."""

    publisher: Any
    encode: Encode


class Publishers:
    """Lifecycle publishers of all results; those without subscribers cost nothing."""

    def __init__(
        self,
        node: LifecycleNode,
        estimator: WrenchEstimator,
        settings: EstimatorSettings,
        assembler: SampleAssembler,
        roots: Callable[[], Array | None],
        uninformed: Callable[[WrenchEstimate], list[str]],
        momentum: Callable[[], str],
    ) -> None:
        self._node, self._estimator, self._assembler = node, estimator, assembler
        self._roots, self._uninformed, self._momentum = roots, uninformed, momentum
        # This may refuse the settings, so it comes before the publishers.
        self._internal = build_internal_wrenches(settings, estimator)
        robot, given = estimator.robot, settings.outputs
        self._joints, links = given.internal_wrench_joints, given.net_wrench_links
        self._links = [robot.link_names.index(link) for link in links]
        joints = tuple(zip(self._joints, self._internal.frames(self._joints)))
        self._layout = Layout(robot, estimator.contacts, joints, links)
        self._publishers: list[Any] = []
        self._topics: dict[str, list[Topic]] = {}
        self._of: dict[Pace, list[Output]] = {pace: [] for pace in Pace}
        for one in OUTPUTS:
            self._of[one.pace].append(one)
            self._topics[one.topic] = [
                Topic(self._publisher(one.type, topic, one.pace is Pace.CHANGE), encode)
                for topic, encode in encoders(one, self._layout)
            ]
        self._layouts: dict[tuple[tuple[str, str], ...], dict[str, Encode]] = {}
        self._contacts: tuple[Contact, ...] | None = None
        self._named: dict[str, Encode] = {}
        self._wanted: list[tuple[Output, list[int]]] = []
        self._look = RateLimiter(LOOK_RATE)
        self.set_rates(given)
        self._uncertainty = LiveUncertainty(estimator, settings)
        self.count, self.seconds, self._lack, self._reported = 0, 0.0, '', (0, 0.0)
        self._markers = self._publisher(MARKER_ARRAY, 'markers')
        self._inertias = self._publisher(MARKER_ARRAY, 'inertia_markers', True)
        self._marker_rate, self._state_rate = RateLimiter(MARKER_RATE), RateLimiter(STATE_RATE)
        self._inertia_rate = RateLimiter(STATE_RATE)
        self._shown: Array | None = None
        self._ball_parameters: Array | None = None
        self._balls: list[list[markers.Marker]] = []

    def set_rates(self, given: OutputSettings) -> None:
        """Take over rates."""
        self._wrenches, self._inner, self._deviations = map(
            RateLimiter, (given.wrench_rate, given.wrench_rate, given.deviations_rate)
        )
        self._has_deviations = given.deviations_rate > 0.0
        self.newest: Deviations | None = None

    def destroy(self) -> None:
        """Destroy the publishers."""
        while self._publishers:
            self._node.destroy_lifecycle_publisher(self._publishers.pop())

    def publish(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Publish the outputs of every cycle, and single wrenches."""
        stamp_ns = estimate.stamp_ns
        results = Results(estimate, sample=sample, robot=self._estimator.robot)
        self._publish_whole(self._of[Pace.CYCLE], estimate.contacts, stamp_ns, results)
        if self._look.is_due(stamp_ns):
            self._wanted = self._subscribed(Pace.WRENCH)
        if self._wanted and self._wrenches.is_due(stamp_ns):
            self._publish_rows(self._wanted, stamp_ns, results)

    def publish_beside(
        self,
        sample: Sample,
        estimate: WrenchEstimate,
        contacts: ContactSet | None,
        duration: float,
    ) -> None:
        """Publish what may be late: internal wrenches, deviations and markers; duration [s]."""
        self._publish_internal(sample, estimate, duration)
        if self._has_deviations:
            self._publish_deviations(sample, contacts, duration)
        self._publish_markers(sample, estimate)

    def announce(self) -> None:
        """Publish the offsets that are subtracted, which seldom change; call it once active."""
        stamp_ns = self._node.get_clock().now().nanoseconds
        offsets = self._estimator.calibration.offsets
        for topic, row in zip(self._topics['ft_offset'], offsets):
            topic.publisher.publish(topic.encode(stamp_ns, row))

    def status(self) -> Status:
        """Return the deviations since the last status."""
        count, seconds = self.count - self._reported[0], self.seconds - self._reported[1]
        self._reported = self.count, self.seconds
        lack = self._lack and not count and finding('suboptimal', 'deviations', what=self._lack)
        figures = {'count': count, 'time each [us]': f'{1e6 * seconds / max(count, 1):.0f}'}
        return Status('deviations', (lack,) if lack else (), figures)

    def _publisher(self, kind: str, topic: str, is_latched: bool = False) -> Any:
        qos = LATCHED if is_latched else QoSProfile(depth=1)
        publisher = self._node.create_lifecycle_publisher(message_class(kind), f'~/{topic}', qos)
        self._publishers.append(publisher)
        return publisher

    def _named_by(self, contacts: tuple[Contact, ...]) -> dict[str, Encode]:
        """Return the encoders of the messages that name contacts; touches come and go."""
        if contacts is not self._contacts:
            key = tuple((contact.name, contact.frame) for contact in contacts)
            if key not in self._layouts:
                if len(self._layouts) >= MAX_LAYOUTS:
                    self._layouts.clear()
                layout = self._layout._replace(contacts=contacts)
                self._layouts[key] = {
                    one.topic: encoders(one, layout)[0][1] for one in OUTPUTS if one.names_contacts
                }
            self._contacts, self._named = contacts, self._layouts[key]
        return self._named

    def _subscribed(self, pace: Pace) -> list[tuple[Output, list[int]]]:
        """Return the outputs of a pace with subscribers, and their rows."""
        found = []
        for output in self._of[pace]:
            topics = self._topics[output.topic]
            rows = [k for k, t in enumerate(topics) if t.publisher.get_subscription_count()]
            if rows:
                found.append((output, rows))
        return found

    def _publish_whole(
        self, outputs: list[Output], contacts: tuple[Contact, ...], stamp_ns: int, results: Results
    ) -> None:
        """Publish outputs of one message each."""
        named = self._named_by(contacts)
        for output in outputs:
            topic = self._topics[output.topic][0]
            encode = named[output.topic] if output.names_contacts else topic.encode
            topic.publisher.publish(encode(stamp_ns, output.values(results)))

    def _publish_rows(
        self, wanted: list[tuple[Output, list[int]]], stamp_ns: int, results: Results
    ) -> None:
        """Publish rows of outputs, where they are known."""
        for output, rows in wanted:
            if (values := output.values(results)) is not None:
                known, topics = known_rows(values), self._topics[output.topic]
                for row in rows:
                    if row in known:
                        topics[row].publisher.publish(topics[row].encode(stamp_ns, values[row]))

    def _publish_internal(self, sample: Sample, estimate: WrenchEstimate, duration: float) -> None:
        """Publish wrenches through joints and net wrenches of links [T 4.9, 4.23]."""
        self._inner.earn(duration)
        inside = [one for one in self._wanted if one[0].topic in INSIDE]
        if not inside or not self._inner.is_due(sample.stamp_ns):
            return
        start, topics = perf_counter(), [output.topic for output, _ in inside]
        try:
            through = net = None
            if 'internal_wrench' in topics:
                through = self._internal.of(sample, estimate, self._joints)
            if 'net_wrench' in topics:
                net = self._internal.net(sample, estimate)[self._links]
            results = Results(internal_wrenches=through, net_wrenches=net)
            self._publish_rows(inside, sample.stamp_ns, results)
        except (InertialEstimationError, LinAlgError) as error:
            self._node.get_logger().warning(
                f'no internal wrenches: {error}', throttle_duration_sec=10.0
            )
        self._inner.spend(perf_counter() - start)

    def _publish_deviations(
        self, sample: Sample, contacts: ContactSet | None, duration: float
    ) -> None:
        self._deviations.earn(duration)
        if not self._deviations.is_due(sample.stamp_ns):
            return
        self._lack = ''
        wanted = self._subscribed(Pace.DEVIATIONS)
        if not wanted and not self._markers.get_subscription_count():
            return
        start, found = perf_counter(), None
        try:
            self._uncertainty.set_parameter_roots(self._roots())
            found = self._uncertainty.of(sample, contacts, self._assembler.rates)
            self._lack = '' if found is not None else 'the noise of a stream is not known'
        except (InertialEstimationError, LinAlgError) as error:
            self._lack = str(error)
        self.newest = found
        if found is not None:
            outputs, results = [output for output, _ in wanted], Results(deviations=found)
            self._publish_whole(outputs, found.contacts, found.stamp_ns, results)
            self.count += 1
        cost = perf_counter() - start
        self.seconds += cost
        self._deviations.spend(cost)

    def _publish_markers(self, sample: Sample, estimate: WrenchEstimate) -> None:
        stamp_ns, robot = sample.stamp_ns, self._layout.robot
        parameters = self._estimator.robot.parameters
        has_changed = parameters is not self._shown and self._inertia_rate.is_due(stamp_ns)
        if has_changed and self._inertias.get_subscription_count():
            self._shown = parameters
            shown = markers.inertia_markers(robot, parameters)
            self._inertias.publish(marker_array(stamp_ns, shown))
        if not self._marker_rate.is_due(stamp_ns) or not self._markers.get_subscription_count():
            return
        shown = markers.wrench_markers(estimate, self.newest)
        if self._state_rate.is_due(stamp_ns):
            if parameters is not self._ball_parameters:
                self._ball_parameters = parameters
                self._balls = markers.link_balls(robot.with_parameters(parameters))
            shown += [
                *markers.health_markers(self._balls, estimate),
                *markers.sensor_markers(robot, sample),
                *markers.uninformed_markers(robot, self._uninformed(estimate)),
                *markers.momentum_markers(robot, self._momentum()),
            ]
        self._markers.publish(marker_array(stamp_ns, shown))
