# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Latched publishers of the identifier, with one message each for one update."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, String

from inertial_estimation.identification.recursion.base_values import BaseValues
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.outputs.table import Layout, ft_frames
from inertial_estimation.ros.conversions import ns_to_stamp, wrench_to_message
from inertial_estimation.ros.identifier_messages import (
    base_message,
    payloads_message,
    progress_message,
)
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    offsets_to_message,
    roots_to_message,
    to_message,
)
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.signals.messages import topic_names


class IdentifierOutputs:
    """Publishers of updates and of the progress."""

    def __init__(self, node: LifecycleNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._publishers: list = []
        self._parameters = self._publisher(Float64MultiArray, TOPIC)
        self._uncertainty = self._publisher(Float64MultiArray, UNCERTAINTY_TOPIC)
        self._beside = self._publisher(Float64MultiArray, OFFSETS_TOPIC)
        self._description = self._publisher(String, '~/robot_description')
        self._base = self._publisher(Float64MultiArray, '~/base_parameters')
        self._progress = self._publisher(Float64MultiArray, '~/progress')
        self._payloads = self._publisher(Float64MultiArray, '~/payloads')
        every = QoSProfile(depth=len(robot.links), durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._inertias = self._publisher(InertiaStamped, '~/inertias', every)
        sensors = [sensor.name for sensor in robot.ft_sensors]
        frames = ft_frames(Layout(robot, ()))
        self._offsets = {
            name: (self._publisher(WrenchStamped, f'~/ft_offset/{topic}'), frame)
            for name, topic, frame in zip(sensors, topic_names(sensors), frames)
        }

    def publish(
        self, refit: Refit, values: Sequence[BaseValues], calibration: FtCalibration
    ) -> None:
        """Publish an update; deviations and offsets before the parameters that they belong to."""
        robot, parameters = self._robot, refit.parameters
        self._uncertainty.publish(roots_to_message(robot, refit.parameter_roots, parameters))
        self._beside.publish(offsets_to_message(robot, refit.subtracted, parameters, calibration))
        self._parameters.publish(to_message(robot, parameters))
        self._description.publish(String(data=export_urdf(robot, parameters)))
        for link, row in zip(robot.link_names, parameters):
            self._inertias.publish(_inertia(refit.stamp_ns, link, row))
        self._base.publish(base_message(values))

    def publish_progress(
        self, identifier: RecursiveIdentifier, refit: Refit | None, values: Sequence[BaseValues]
    ) -> None:
        """Publish what was found, whether there is an update or not."""
        self._progress.publish(progress_message(identifier, refit, values))
        self._payloads.publish(payloads_message(identifier.payloads()))
        if refit is not None:
            for name, offset in refit.determined_offsets.items():
                publisher, frame = self._offsets[name]
                publisher.publish(wrench_to_message(refit.stamp_ns, frame, offset))

    def destroy(self) -> None:
        """Destroy the publishers."""
        while self._publishers:
            self._node.destroy_lifecycle_publisher(self._publishers.pop())

    def _publisher(self, message_type: type, topic: str, qos: QoSProfile = LATCHED):
        publisher = self._node.create_lifecycle_publisher(message_type, topic, qos)
        self._publishers.append(publisher)
        return publisher


def _inertia(stamp_ns: int, link: str, parameters: np.ndarray) -> InertiaStamped:
    """Return centre of mass and inertia about it in the axes of a link, from shape (10,)."""
    mass, center = float(parameters[0]), parameters[1:4] / parameters[0]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_center = about_origin - mass * (center @ center * np.eye(3) - np.outer(center, center))
    message = InertiaStamped()
    message.header.stamp, message.header.frame_id = ns_to_stamp(stamp_ns), link
    inertia = message.inertia
    inertia.m = mass
    inertia.com.x, inertia.com.y, inertia.com.z = center.tolist()
    inertia.ixx, inertia.ixy, inertia.ixz = about_center[0].tolist()
    inertia.iyy, inertia.iyz = about_center[1, 1:].tolist()
    inertia.izz = float(about_center[2, 2])
    return message
