# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Publishers of the estimate.

What goes out every cycle is laid out once and patched. What is for people goes out at
``visualization_rate``, and only while somebody listens.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState, MultiDOFJointState

from inertial_estimation.estimation.contacts import Contact, row_names
from inertial_estimation.estimation.estimate import WrenchEstimate, result_names
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import NANOSECONDS, wrench_to_message
from inertial_estimation.signals.encoders import JointEffortEncoder, WrenchEncoder, WrenchesEncoder
from inertial_estimation.signals.names import topic_names

RELIABLE = QoSProfile(depth=1)
MAX_LAYOUTS = 64
"""Different sets of contacts whose messages are kept."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ContactEncoders(NamedTuple):
    """The messages that name contacts."""

    wrenches: Callable[[int, np.ndarray], bytes]
    quality: Callable[[int, np.ndarray], bytes]


class Outputs:
    """
    The publishers of the estimator; silent unless the node is active.

    visualization_rate [Hz].
    """

    def __init__(
        self, node: LifecycleNode, estimator: WrenchEstimator, visualization_rate: float
    ) -> None:
        self._node, self._estimator = node, estimator
        robot, contacts = estimator.robot, estimator.contacts
        self._publishers = []
        self._wrenches = self._publisher(MultiDOFJointState, '~/external_wrenches')
        self._torques = self._publisher(JointState, '~/joint_torques')
        self._external_torques = self._publisher(JointState, '~/external_joint_torques')
        self._robot = robot
        self._encoders: dict[tuple[tuple[str, str], ...], ContactEncoders] = {}
        self._laid_out: tuple[Contact, ...] | None = None
        # Torques are about no frame, but many an rviz draws nothing of a message without one.
        root = robot.links[0].name
        self._encode_torques = JointEffortEncoder(robot.joint_names, frame_id=root).encode
        self._encode_external = JointEffortEncoder(
            robot.joint_names, frame_id=robot.base_frame
        ).encode
        self._quality = self._publisher(JointState, '~/quality')
        self._offsets = self._latched_offsets(robot)
        self._decimated = [
            self._wrench_topics(
                'external_wrench', [(contact.name, contact.frame) for contact in contacts]
            ),
            self._wrench_topics('residual', [(sm.name, sm.name) for sm in robot.submodels]),
        ]
        self._period_ns = round(NANOSECONDS / visualization_rate) if visualization_rate else 0
        self._shown_ns = 0

    def publish(self, estimate: WrenchEstimate) -> None:
        """Publish an estimate."""
        stamp_ns = estimate.stamp_ns
        encode = self._encoders_for(estimate.contacts)
        self._wrenches.publish(encode.wrenches(stamp_ns, estimate.wrenches))
        self._torques.publish(self._encode_torques(stamp_ns, estimate.torques))
        self._external_torques.publish(self._encode_external(stamp_ns, estimate.external_torques))
        self._quality.publish(encode.quality(stamp_ns, estimate.quality))
        # Time may have been set back since.
        if self._period_ns and not 0 <= stamp_ns - self._shown_ns < self._period_ns:
            self._shown_ns = stamp_ns
            self._show(estimate)

    def announce(self) -> None:
        """Publish what is subtracted from readings, which seldom changes; call it once active."""
        stamp_ns = self._node.get_clock().now().nanoseconds
        offsets = self._estimator.calibration.offsets
        for (publisher, frame_id), offset in zip(self._offsets, offsets):
            publisher.publish(wrench_to_message(stamp_ns, frame_id, offset))

    def destroy(self) -> None:
        """Give the publishers back."""
        for publisher in self._publishers:
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers.clear()

    def _show(self, estimate: WrenchEstimate) -> None:
        """Publish what people look at; rviz blanks a display whose message holds NaN."""
        for topics, rows in zip(self._decimated, (estimate.wrenches, estimate.residuals)):
            for (publisher, encode), row in zip(topics, rows):
                if publisher.get_subscription_count() and np.isfinite(row).all():
                    publisher.publish(encode(estimate.stamp_ns, row))

    def _encoders_for(self, contacts: tuple[Contact, ...]) -> 'ContactEncoders':
        """Return what lays out the messages that name contacts; touches come and go."""
        if contacts is not self._laid_out:
            names = tuple((contact.name, contact.frame) for contact in contacts)
            if names not in self._encoders:
                if len(self._encoders) >= MAX_LAYOUTS:
                    self._encoders.clear()
                self._encoders[names] = ContactEncoders(
                    WrenchesEncoder(row_names(contacts)).encode,
                    JointEffortEncoder(result_names(self._robot, contacts)).encode,
                )
            self._laid_out, self._encode = contacts, self._encoders[names]
        return self._encode

    def _publisher(self, message_type: type, topic: str, qos: QoSProfile = RELIABLE):
        """Create a publisher that the lifecycle of the node switches."""
        publisher = self._node.create_lifecycle_publisher(message_type, topic, qos)
        self._publishers.append(publisher)
        return publisher

    def _wrench_topics(self, topic: str, rows: list[tuple[str, str]]) -> list:
        """Return publisher and encoder for each name and frame."""
        names = topic_names(name for name, _ in rows)
        return [
            (self._publisher(WrenchStamped, f'~/{topic}/{name}'), WrenchEncoder(frame).encode)
            for name, (_, frame) in zip(names, rows)
        ]

    def _latched_offsets(self, robot: Robot) -> list:
        """Return publisher and frame of the offset of each FT sensor."""
        names = topic_names(sensor.name for sensor in robot.ft_sensors)
        found = []
        for name, sensor in zip(names, robot.ft_sensors):
            publisher = self._publisher(WrenchStamped, f'~/ft_offset/{name}', LATCHED)
            # Only the frames of links are known to tf.
            link = robot.links[sensor.child].name
            found.append((publisher, link if sensor.frame == 'child' else sensor.name))
        return found
