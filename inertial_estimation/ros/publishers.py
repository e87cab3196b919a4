# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Publishers of the results: wrenches, torques, standard deviations and markers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from numpy.linalg import LinAlgError
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import OutputSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import finding
from inertial_estimation.outputs import markers
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.markers import MARKER_ARRAY, marker_array
from inertial_estimation.outputs.result_checks import DependenceStatus, MomentumStatus
from inertial_estimation.outputs.topics import (
    OUTPUTS,
    Encode,
    Layout,
    Output,
    Pace,
    RateLimiter,
    Results,
    encoders,
    messages,
)
from inertial_estimation.ros.subscriptions import LATCHED, message_class
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.deviations import Deviations, LiveUncertainty

LOOK_RATE = 10.0
"""Of counting the subscribers of topics [Hz]."""
MARKER_RATE, STATE_RATE = 30.0, 1.0
"""Of wrench markers, and of those that seldom change [Hz]."""
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
        assembler: SampleAssembler,
        roots: Callable[[], Array | None],
        dependence: DependenceStatus,
        momentum: MomentumStatus,
    ) -> None:
        self._node, self._estimator, self._assembler = node, estimator, assembler
        self._roots, self._dependence, self._momentum = roots, dependence, momentum
        # This may refuse the settings, so it comes before the publishers.
        self._internal = build_internal_wrenches(settings, estimator)
        robot, given = estimator.robot, settings.outputs
        self._joints, links = given.internal_wrench_joints, given.net_wrench_links
        self._links = [robot.link_names.index(link) for link in links]
        joints = tuple(zip(self._joints, self._internal.frames(self._joints)))
        self._layout = Layout(robot, estimator.contacts, joints, links)
        self._surfaces = self._layout.surfaces
        self._topics: Topics = {
            one.topic: [
                (self._publisher(one.type, topic, one.pace is Pace.CHANGE), encode)
                for topic, encode in encoders(one, self._layout)
            ]
            for one in OUTPUTS
        }
        self._all: dict[Pace, Wanted] = {
            pace: [(one, range(len(self._topics[one.topic]))) for one in OUTPUTS
                   if one.pace is pace] for pace in Pace
        }  # fmt: skip
        self._always = self._all[Pace.CYCLE]
        self._single: Wanted = []
        self._inside: Wanted = []
        self._layouts: dict[tuple[tuple[str, str], ...], Topics] = {}
        self._contacts: tuple[Contact, ...] | None = None
        self._named: Topics = {}
        self._look = RateLimiter(LOOK_RATE)
        self.set_rates(given)
        self._uncertainty = LiveUncertainty(estimator, settings)
        self._count = 0
        """Number of deviations since the last status."""
        self._lacks: dict[str, str] = {}
        """Reasons since then why deviations or internal wrenches were not published."""
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

    def publish(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Publish the outputs of every cycle, and single wrenches."""
        stamp_ns = estimate.stamp_ns
        results = Results(
            estimate, sample=sample, robot=self._estimator.robot, surfaces=self._surfaces
        )
        self._publish(self._always, stamp_ns, results, estimate.contacts)
        if self._look.is_due(stamp_ns):
            self._single, self._inside = map(self._subscribed, (Pace.WRENCH, Pace.INSIDE))
        if self._single and self._wrenches.is_due(stamp_ns):
            self._publish(self._single, stamp_ns, results, estimate.contacts)

    def publish_beside(
        self,
        sample: Sample,
        estimate: WrenchEstimate,
        contacts: ContactSet | None,
        duration: float,
    ) -> None:
        """Publish what may be late: internal wrenches, deviations and markers; duration [s]."""
        self._inner.earn(duration)
        if self._inside and self._inner.is_due(sample.stamp_ns):
            with self._limited(self._inner, 'internal wrenches'):
                self._publish_inside(sample, estimate)
        self._deviations.earn(duration)
        if self._has_deviations and self._deviations.is_due(sample.stamp_ns):
            wanted = self._subscribed(Pace.DEVIATIONS)
            if wanted or self._markers.get_subscription_count():
                with self._limited(self._deviations, 'deviations'):
                    self._publish_deviations(wanted, sample, contacts)
        self._publish_markers(sample, estimate)

    def announce(self) -> None:
        """Publish the offsets that are subtracted, which seldom change; call it once active."""
        stamp_ns = self._node.get_clock().now().nanoseconds
        results = Results(ft_offsets=self._estimator.calibration.offsets)
        self._publish(self._all[Pace.CHANGE], stamp_ns, results)

    def status(self) -> Status:
        """Return the deviations since the last status."""
        count, self._count = self._count, 0
        lacks = [finding('suboptimal', name, what=what) for name, what in self._lacks.items()]
        self._lacks = {}
        return Status('deviations', tuple(lacks), {'count': count})

    def _publisher(self, kind: str, topic: str, is_latched: bool = False) -> Any:
        qos = LATCHED if is_latched else QoSProfile(depth=1)
        return self._node.create_lifecycle_publisher(message_class(kind), f'~/{topic}', qos)

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

    def _subscribed(self, pace: Pace) -> Wanted:
        """Return the outputs of a pace with subscribers."""
        found: Wanted = []
        for output, _ in self._all[pace]:
            topics = enumerate(self._topics[output.topic])
            rows = [k for k, (publisher, _) in topics if publisher.get_subscription_count()]
            if rows:
                found.append((output, rows))
        return found

    def _publish(
        self,
        wanted: Wanted,
        stamp_ns: int,
        results: Results,
        contacts: tuple[Contact, ...] = (),
    ) -> None:
        for output, rows in wanted:
            every = self._named_by(contacts) if output.names_contacts else self._topics
            topics = every[output.topic]
            for row, values in messages(output, results, rows):
                publisher, encode = topics[row]
                publisher.publish(encode(stamp_ns, values))

    @contextmanager
    def _limited(self, rate: RateLimiter, what: str) -> Iterator[None]:
        """Note the time of some work, and the reason why it is not possible."""
        start = perf_counter()
        try:
            yield
        except (InertialEstimationError, LinAlgError) as error:
            self._lacks[what] = str(error)
        rate.spend(perf_counter() - start)

    def _publish_inside(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Publish wrenches through joints and net wrenches of links [T 4.9, 4.23]."""
        topics, through, net = {output.topic for output, _ in self._inside}, None, None
        if 'internal_wrench' in topics:
            through = self._internal.of(sample, estimate, self._joints)
        if 'net_wrench' in topics:
            net = self._internal.net(sample, estimate)[self._links]
        results = Results(internal_wrenches=through, net_wrenches=net)
        self._publish(self._inside, sample.stamp_ns, results)

    def _publish_deviations(
        self, wanted: Wanted, sample: Sample, contacts: ContactSet | None
    ) -> None:
        """Publish standard deviations, and keep them for the markers."""
        self.newest = None
        self._uncertainty.set_parameter_roots(self._roots())
        self.newest = found = self._uncertainty.of(sample, contacts, self._assembler.rates)
        if found is None:
            raise ModelError('the noise of a stream is not known')
        self._publish(wanted, found.stamp_ns, Results(deviations=found), found.contacts)
        self._lacks.pop('deviations', None)
        self._count += 1

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
                *markers.uninformed_markers(robot, self._dependence.uninformed),
                *markers.momentum_markers(robot, self._momentum.warning),
            ]
        self._markers.publish(marker_array(stamp_ns, shown))
