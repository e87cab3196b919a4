# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Outputs that may be late: internal wrenches, standard deviations and markers, piece by piece."""

from collections.abc import Callable, Iterator
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
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.markers import (
    MARKER_ARRAY,
    Marker,
    health_markers,
    inertia_markers,
    link_balls,
    marker_array,
    momentum_markers,
    sensor_markers,
    uninformed_markers,
    wrench_markers,
)
from inertial_estimation.outputs.result_checks import DependenceStatus, MomentumStatus
from inertial_estimation.outputs.topics import Pace, RateLimiter, Results
from inertial_estimation.ros.publishers import LOOK_RATE, Publishers, Wanted
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.deviations import Deviations, LiveUncertainty

MARKER_RATE, STATE_RATE = 30.0, 1.0
"""Of wrench markers, and of those that seldom change [Hz]."""
MAX_SHARE = 0.2
"""Time for all of this over the time between cycles."""


class LateOutputs:
    """
    Published after the results of a cycle, in a share of the time until the next one.

    Work that is due is done in pieces, in turn; each begins with the newest estimate.
    """

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
        self._uncertainty = LiveUncertainty(estimator, settings)
        self._count = 0
        """Number of deviations since the last status."""
        self._lacks: dict[str, str] = {}
        """Reasons since then why deviations or internal wrenches were not published."""
        self._markers = publishers.create(MARKER_ARRAY, 'markers')
        self._inertias = publishers.create(MARKER_ARRAY, 'inertia_markers', True)
        self._state_rate = RateLimiter(STATE_RATE)
        self._shown: Array | None = None
        self._ball_parameters: Array | None = None
        self._balls: list[list[Marker]] = []
        self._inner: Wanted = []
        self._look = RateLimiter(LOOK_RATE)
        self._work = {
            'internal wrenches': self._inside, 'deviations': self._deviate,
            'markers': self._show, 'inertias': self._show_inertias,
        }  # fmt: skip
        self._open: dict[str, Iterator[None]] = {}
        """Work that has begun, in its turn."""
        self._published = self._credit = 0.0
        self.set_rates(given)

    def set_rates(self, given: OutputSettings) -> None:
        """Take over rates."""
        rates = {'internal wrenches': given.wrench_rate, 'markers': MARKER_RATE,
                 'inertias': STATE_RATE}  # fmt: skip
        if given.deviations_rate:
            rates = {'deviations': given.deviations_rate, **rates}
        self._rates = {name: RateLimiter(rate) for name, rate in rates.items()}
        self.newest: Deviations | None = None

    def publish(
        self,
        sample: Sample,
        estimate: WrenchEstimate,
        contacts: ContactSet | None,
        published: float,
    ) -> None:
        """Go on with what is due and has subscribers; `perf_counter` behind the results [s]."""
        self._sample, self._estimate, self._contacts = sample, estimate, contacts
        stamp_ns = estimate.stamp_ns
        if self._look.is_due(stamp_ns):
            self._inner = self._publishers.subscribed(Pace.INSIDE)
        for name, rate in self._rates.items():
            if name == 'internal wrenches' and not self._inner:
                continue
            if name not in self._open and rate.is_due(stamp_ns):
                self._open[name] = self._work[name]()
        self._credit = min(self._credit, 0.0) + MAX_SHARE * (published - self._published)
        self._published = start = published
        while self._open and self._credit >= 0.0:
            name, work = next(iter(self._open.items()))
            del self._open[name]
            try:
                if next(work, self) is not self:
                    self._open[name] = work
            except (InertialEstimationError, LinAlgError) as error:
                self._lacks[name] = str(error)
            end = perf_counter()
            self._credit, start = self._credit - (end - start), end

    def status(self) -> Status:
        """Return the deviations since the last status."""
        count, self._count = self._count, 0
        lacks = [finding('suboptimal', name, what=what) for name, what in self._lacks.items()]
        self._lacks = {}
        return Status('deviations', tuple(lacks), {'count': count})

    def _inside(self) -> Iterator[None]:
        """Publish wrenches through joints and net wrenches of links [T 4.9, 4.23]."""
        sample, estimate, wanted = self._sample, self._estimate, self._inner
        topics, through, net = {output.topic for output, _ in wanted}, None, None
        if 'internal_wrench' in topics:
            through = self._internal.of(sample, estimate, self._joints)
        if 'net_wrench' in topics:
            net = self._internal.net(sample, estimate)[self._links]
        results = Results(estimate, None, through, net, sample=sample, robot=self._estimator.robot)
        self._publishers.send(wanted, sample.stamp_ns, results)
        yield from ()

    def _deviate(self) -> Iterator[None]:
        """Publish standard deviations, and keep them for the markers."""
        wanted = self._publishers.subscribed(Pace.DEVIATIONS)
        if not wanted and not self._markers.get_subscription_count():
            return
        self.newest = None
        self._uncertainty.set_parameter_roots(self._roots())
        found = self._uncertainty.of(self._sample, self._contacts, self._assembler.rates)
        if found is None:
            raise ModelError('the noise of a stream is not known')
        self.newest = found
        results = Results(deviations=found)
        self._publishers.send(wanted, found.stamp_ns, results, found.contacts)
        self._lacks.pop('deviations', None)
        self._count += 1
        yield from ()

    def _show(self) -> Iterator[None]:
        """Publish markers."""
        if not self._markers.get_subscription_count():
            return
        sample, estimate, robot = self._sample, self._estimate, self._robot
        shown = wrench_markers(estimate, self.newest)
        yield
        if self._state_rate.is_due(sample.stamp_ns):
            parameters = self._estimator.robot.parameters
            if parameters is not self._ball_parameters:
                self._ball_parameters = parameters
                self._balls = link_balls(robot.with_parameters(parameters))
                yield
            shown += [
                *health_markers(self._balls, estimate),
                *sensor_markers(robot, sample),
                *uninformed_markers(robot, self._dependence.uninformed),
                *momentum_markers(robot, self._momentum.warning),
            ]
            yield
        self._markers.publish(marker_array(sample.stamp_ns, shown))

    def _show_inertias(self) -> Iterator[None]:
        """Publish markers of the inertial parameters when they change."""
        parameters = self._estimator.robot.parameters
        if parameters is self._shown or not self._inertias.get_subscription_count():
            return
        stamp_ns, self._shown = self._sample.stamp_ns, parameters
        shown = inertia_markers(self._robot, parameters)
        yield
        self._inertias.publish(marker_array(stamp_ns, shown))
