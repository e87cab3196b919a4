# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What may be late: internal wrenches, standard deviations and markers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from numpy.linalg import LinAlgError

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import OutputSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import finding
from inertial_estimation.outputs import markers
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.markers import MARKER_ARRAY, marker_array
from inertial_estimation.outputs.result_checks import DependenceStatus, MomentumStatus
from inertial_estimation.outputs.topics import Pace, RateLimiter, Results
from inertial_estimation.ros.publishers import LOOK_RATE, Publishers, Wanted
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.deviations import Deviations, LiveUncertainty

MARKER_RATE, STATE_RATE = 30.0, 1.0
"""Of wrench markers, and of those that seldom change [Hz]."""


class LateOutputs:
    """Published after the results of a cycle, in the time that is left."""

    def __init__(
        self,
        publishers: Publishers,
        estimator: WrenchEstimator,
        settings: EstimatorSettings,
        internal: InternalWrenches,
        assembler: SampleAssembler,
        roots: Callable[[], Array | None],
        dependence: DependenceStatus,
        momentum: MomentumStatus,
    ) -> None:
        self._publishers, self._estimator, self._assembler = publishers, estimator, assembler
        self._internal, self._roots = internal, roots
        self._dependence, self._momentum = dependence, momentum
        self._robot, given = estimator.robot, settings.outputs
        self._joints = given.internal_wrench_joints
        self._links = [self._robot.link_names.index(link) for link in given.net_wrench_links]
        self._inside: Wanted = []
        self._look = RateLimiter(LOOK_RATE)
        self.set_rates(given)
        self._uncertainty = LiveUncertainty(estimator, settings)
        self._count = 0
        """Number of deviations since the last status."""
        self._lacks: dict[str, str] = {}
        """Reasons since then why deviations or internal wrenches were not published."""
        self._markers = publishers.create(MARKER_ARRAY, 'markers')
        self._inertias = publishers.create(MARKER_ARRAY, 'inertia_markers', True)
        self._marker_rate, self._state_rate = RateLimiter(MARKER_RATE), RateLimiter(STATE_RATE)
        self._inertia_rate = RateLimiter(STATE_RATE)
        self._shown: Array | None = None
        self._ball_parameters: Array | None = None
        self._balls: list[list[markers.Marker]] = []

    def set_rates(self, given: OutputSettings) -> None:
        """Take over rates."""
        self._inner = RateLimiter(given.wrench_rate)
        self._deviations = RateLimiter(given.deviations_rate)
        self._has_deviations = given.deviations_rate > 0.0
        self.newest: Deviations | None = None

    def publish(
        self,
        sample: Sample,
        estimate: WrenchEstimate,
        contacts: ContactSet | None,
        duration: float,
    ) -> None:
        """Publish what is due and has subscribers; duration of the cycle before [s]."""
        stamp_ns = estimate.stamp_ns
        if self._look.is_due(stamp_ns):
            self._inside = self._publishers.subscribed(Pace.INSIDE)
        self._inner.earn(duration)
        if self._inside and self._inner.is_due(stamp_ns):
            with self._limited(self._inner, 'internal wrenches'):
                self._publish_inside(sample, estimate)
        self._deviations.earn(duration)
        if self._has_deviations and self._deviations.is_due(stamp_ns):
            wanted = self._publishers.subscribed(Pace.DEVIATIONS)
            if wanted or self._markers.get_subscription_count():
                with self._limited(self._deviations, 'deviations'):
                    self._publish_deviations(wanted, sample, contacts)
        self._publish_markers(sample, estimate)

    def status(self) -> Status:
        """Return the deviations since the last status."""
        count, self._count = self._count, 0
        lacks = [finding('suboptimal', name, what=what) for name, what in self._lacks.items()]
        self._lacks = {}
        return Status('deviations', tuple(lacks), {'count': count})

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
        self._publishers.send(self._inside, sample.stamp_ns, results)

    def _publish_deviations(
        self, wanted: Wanted, sample: Sample, contacts: ContactSet | None
    ) -> None:
        """Publish standard deviations, and keep them for the markers."""
        self.newest = None
        self._uncertainty.set_parameter_roots(self._roots())
        self.newest = found = self._uncertainty.of(sample, contacts, self._assembler.rates)
        if found is None:
            raise ModelError('the noise of a stream is not known')
        results = Results(deviations=found)
        self._publishers.send(wanted, found.stamp_ns, results, found.contacts)
        self._lacks.pop('deviations', None)
        self._count += 1

    def _publish_markers(self, sample: Sample, estimate: WrenchEstimate) -> None:
        stamp_ns, robot = sample.stamp_ns, self._robot
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
