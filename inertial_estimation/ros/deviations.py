# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Publishers of standard deviations, at ``deviations_rate`` and only while somebody listens.

Who watches the markers, which show them, counts as a listener. However long one evaluation takes,
all in all they take no more than a share of the cycles' time.
"""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from numpy.linalg import LinAlgError
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState, MultiDOFJointState

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import Contact, ContactSet, row_names
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.ros.budget import Budget
from inertial_estimation.ros.conversions import NANOSECONDS
from inertial_estimation.ros.markers import MarkerOutput
from inertial_estimation.sample import Array, Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.encoders import JointEffortEncoder, WrenchesEncoder
from inertial_estimation.uncertainty.deviations import Deviations
from inertial_estimation.uncertainty.live import LiveUncertainty

TOPICS = {
    'external_wrench_deviations': MultiDOFJointState,
    'joint_torque_deviations': JointState,
    'external_joint_torque_deviations': JointState,
    'residual_deviations': MultiDOFJointState,
}
NOT_KNOWN = 'the noise of a stream is not known'
NOT_YET = f'{NOT_KNOWN}: its filter has not found its rate, or cannot use it'
NEVER = f'{NOT_KNOWN}: derivative_filter is adaptive_window, whose noise cannot be stated'


class DeviationsReport(NamedTuple):
    """What was published since the report before."""

    count: int
    """Instants."""
    seconds: float
    """Time that they took [s]."""
    lack: str
    """Why the newest instant that somebody asked for was not published; empty if it was."""


class DeviationsOutput:
    """
    The publishers of standard deviations; silent unless the node is active.

    seconds [s].
    """

    def __init__(
        self,
        node: LifecycleNode,
        estimator: WrenchEstimator,
        settings: EstimatorSettings,
        assembler: SampleAssembler,
        markers: MarkerOutput,
        roots: Callable[[], Array | None],
    ) -> None:
        rate = settings.deviations_rate
        self._node, self._assembler, self._markers = node, assembler, markers
        self._roots = roots
        self._uncertainty = LiveUncertainty(estimator, settings)
        self._unknown = NEVER if _adapts(settings) else NOT_YET
        self._period_ns = round(NANOSECONDS / rate) if rate else 0
        self._last_ns = 0
        self._budget = Budget()
        self._publishers = [
            node.create_lifecycle_publisher(kind, f'~/{topic}', QoSProfile(depth=1))
            for topic, kind in (TOPICS.items() if rate else ())
        ]
        robot = estimator.robot
        self._laid_out: tuple[Contact, ...] | None = None
        self._torques = JointEffortEncoder(robot.joint_names)
        self._external = JointEffortEncoder(robot.joint_names, frame_id=robot.base_frame)
        self._residuals = WrenchesEncoder([submodel.name for submodel in robot.submodels])
        self.newest: Deviations | None = None
        self.count, self.seconds, self._lack = 0, 0.0, ''
        self._reported = 0, 0.0

    def publish(self, sample: Sample, contacts: ContactSet | None, duration: float) -> None:
        """
        Publish the standard deviations of an estimate, if it is time and somebody listens.

        duration [s].
        """
        stamp_ns = sample.stamp_ns
        self._budget.earn(duration)
        # Time may have been set back since.
        if not self._period_ns or 0 <= stamp_ns - self._last_ns < self._period_ns:
            return
        if not self._budget.allows:
            return
        self._last_ns = stamp_ns
        self._lack = ''
        if not (self._markers.is_watched or self._has_listeners()):
            return
        start = perf_counter()
        try:
            self._uncertainty.set_parameter_roots(self._roots())
            found = self._uncertainty.of(sample, contacts, self._assembler.rates)
        except (InertialEstimationError, LinAlgError) as error:
            self._lack, found = str(error), None
        else:
            self._lack = '' if found is not None else self._unknown
        self.newest = found
        if found is not None:
            self._send(found)
            self.count += 1
        cost = perf_counter() - start
        self.seconds += cost
        self._budget.spend(cost)

    def report(self) -> DeviationsReport:
        """Return what happened since the last report."""
        count, seconds = self._reported
        self._reported = self.count, self.seconds
        return DeviationsReport(self.count - count, self.seconds - seconds, self._lack)

    def destroy(self) -> None:
        """Give the publishers back."""
        for publisher in self._publishers:
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers.clear()

    def _has_listeners(self) -> bool:
        """Tell whether somebody subscribes to one of the topics."""
        return any(publisher.get_subscription_count() for publisher in self._publishers)

    def _send(self, found: Deviations) -> None:
        """Publish, with the names of the results."""
        if found.contacts is not self._laid_out:
            self._laid_out = found.contacts
            self._wrenches = WrenchesEncoder(row_names(found.contacts))
        encoders = self._wrenches, self._torques, self._external, self._residuals
        for publisher, encoder, rows in zip(self._publishers, encoders, found[2:], strict=True):
            if publisher.get_subscription_count():
                publisher.publish(encoder.encode(found.stamp_ns, rows))


def _adapts(settings: EstimatorSettings) -> bool:
    """Tell whether something is filtered over a window that adapts."""
    sources = (
        settings.velocity_source,
        settings.acceleration_source,
        settings.angular_acceleration_source,
    )
    return settings.derivative_filter == 'adaptive_window' and 'filter' in sources
