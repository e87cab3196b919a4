# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches through joints and net wrenches of links [T 4.9, 4.23], for those that are named.

They go out at ``visualization_rate`` and only while somebody listens.
"""

from time import perf_counter

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.linalg import LinAlgError
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.building import build_internal_wrenches
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.ros.budget import Budget
from inertial_estimation.ros.conversions import NANOSECONDS
from inertial_estimation.sample import Sample
from inertial_estimation.signals.encoders import WrenchEncoder
from inertial_estimation.signals.names import topic_names


class InternalWrenchOutput:
    """The publishers of wrenches inside the robot; silent unless the node is active."""

    def __init__(
        self, node: LifecycleNode, estimator: WrenchEstimator, settings: EstimatorSettings
    ) -> None:
        self._node = node
        self._wrenches = build_internal_wrenches(settings, estimator)
        self._joints, links = settings.internal_wrench_joints, settings.net_wrench_links
        frames = self._wrenches.frames(self._joints)
        self._rows = [estimator.robot.link_names.index(link) for link in links]
        rate = settings.visualization_rate
        self._period_ns = round(NANOSECONDS / rate) if rate else 0
        self._through = self._topics('internal_wrench', self._joints, frames)
        self._net = self._topics('net_wrench', links, links)
        self._budget = Budget()
        self._shown_ns = 0

    def publish(self, sample: Sample, estimate: WrenchEstimate, duration: float) -> None:
        """
        Publish the wrenches of an estimate, if it is time and somebody listens.

        duration [s].
        """
        if not (self._through or self._net):
            return
        self._budget.earn(duration)
        # Time may have been set back since.
        due = self._period_ns and not 0 <= sample.stamp_ns - self._shown_ns < self._period_ns
        if not due or not self._budget.allows:
            return
        self._shown_ns = sample.stamp_ns
        start = perf_counter()
        try:
            self._send_wanted(sample, estimate)
        except (InertialEstimationError, LinAlgError) as error:
            self._node.get_logger().warning(
                f'no wrenches through joints or of links: {error}', throttle_duration_sec=10.0
            )
        self._budget.spend(perf_counter() - start)

    def destroy(self) -> None:
        """Give the publishers back."""
        for publisher, _ in (*self._through, *self._net):
            self._node.destroy_lifecycle_publisher(publisher)
        self._through, self._net = [], []

    def _send_wanted(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Compute and publish what somebody subscribes to."""
        if _has_listeners(self._through):
            rows = self._wrenches.of(sample, estimate, self._joints)
            _send(self._through, sample.stamp_ns, rows)
        if _has_listeners(self._net):
            rows = self._wrenches.net(sample, estimate)[self._rows]
            _send(self._net, sample.stamp_ns, rows)

    def _topics(self, topic: str, names: tuple[str, ...], frames) -> list:
        """Return publisher and encoder for each name and frame."""
        return [
            (
                self._node.create_lifecycle_publisher(
                    WrenchStamped, f'~/{topic}/{name}', QoSProfile(depth=1)
                ),
                WrenchEncoder(frame).encode,
            )
            for name, frame in zip(topic_names(names), frames)
        ]


def _has_listeners(topics: list) -> bool:
    """Tell whether somebody subscribes to one of the topics."""
    return any(publisher.get_subscription_count() for publisher, _ in topics)


def _send(topics: list, stamp_ns: int, rows: np.ndarray) -> None:
    """Publish what is known; rviz blanks a display whose message holds NaN."""
    for (publisher, encode), row in zip(topics, rows):
        if np.isfinite(row).all():
            publisher.publish(encode(stamp_ns, row))
