# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The publishers of markers for rviz.

Each kind has a namespace, which rviz can switch off: ``force``, ``moment`` and ``force_deviation``
at the contacts, ``health`` of the links, ``sensors`` that are lost or used in part, ``uninformed``
joints, and what the ``momentum`` check says. Bodies of the links are on a topic of their own.
"""

from collections.abc import Callable

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import NANOSECONDS, ns_to_stamp
from inertial_estimation.ros.inertia_markers import InertiaMarkerOutput
from inertial_estimation.ros.state_markers import (
    health_balls,
    health_markers,
    momentum_markers,
    sensor_markers,
    uninformed_markers,
)
from inertial_estimation.ros.wrench_markers import WrenchMarkers
from inertial_estimation.sample import Array, Sample
from inertial_estimation.uncertainty.deviations import Deviations

STATE_PERIOD_NS = NANOSECONDS
"""Between two looks at what changes seldom [ns]."""


class MarkerOutput:
    """
    The publisher of markers; silent unless the node is active and somebody listens.

    rate [Hz].
    """

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        rate: float,
        uninformed: Callable[[WrenchEstimate], list[str]],
        momentum: Callable[[], str],
    ) -> None:
        self._node, self._robot = node, robot
        self._uninformed, self._momentum = uninformed, momentum
        self._publisher = node.create_lifecycle_publisher(
            MarkerArray, '~/markers', QoSProfile(depth=1)
        )
        self._period_ns = round(NANOSECONDS / rate) if rate else 0
        self._inertias = InertiaMarkerOutput(node, robot) if rate else None
        self._wrenches = WrenchMarkers()
        self._balls = health_balls(robot)
        self._parameters = self._weighed = robot.parameters
        self._shown_ns = self._state_ns = 0

    @property
    def is_watched(self) -> bool:
        """Whether somebody listens."""
        return bool(self._period_ns and self._publisher.get_subscription_count())

    def publish(
        self, sample: Sample, estimate: WrenchEstimate, deviations: Deviations | None
    ) -> None:
        """Publish the markers of an estimate, if it is time and somebody listens."""
        stamp_ns = sample.stamp_ns
        if self._inertias is not None:
            self._inertias.publish(stamp_ns, self._parameters)
        # Time may have been set back since.
        if not self._period_ns or 0 <= stamp_ns - self._shown_ns < self._period_ns:
            return
        self._shown_ns = stamp_ns
        if not self.is_watched:
            return
        markers = self._wrenches.of(estimate, deviations)
        if not 0 <= stamp_ns - self._state_ns < STATE_PERIOD_NS:
            self._state_ns = stamp_ns
            markers += self._state(sample, estimate)
        stamp = ns_to_stamp(stamp_ns)
        for marker in markers:
            marker.header.stamp = stamp
        self._publisher.publish(MarkerArray(markers=markers))

    def set_parameters(self, parameters: Array) -> None:
        """
        Show other inertial parameters, with the next markers of what changes seldom.

        parameters (n_links, 10).
        """
        self._parameters = parameters

    def destroy(self) -> None:
        """Give the publishers back."""
        self._node.destroy_lifecycle_publisher(self._publisher)
        if self._inertias is not None:
            self._inertias.destroy()

    def _state(self, sample: Sample, estimate: WrenchEstimate) -> list[Marker]:
        """Return what changes seldom."""
        if self._parameters is not self._weighed:
            self._weighed = self._parameters
            self._balls = health_balls(self._robot.with_parameters(self._weighed))
        return [
            *health_markers(self._balls, estimate),
            *sensor_markers(self._robot, sample),
            *uninformed_markers(self._robot, self._uninformed(estimate)),
            *momentum_markers(self._robot, self._momentum()),
        ]
