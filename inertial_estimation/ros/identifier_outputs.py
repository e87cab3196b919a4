# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Latched publishers of the identifier: one message each for an update, and labelled tables."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, String

from inertial_estimation.identification.recursion.base_values import BaseValues
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.outputs.table import Layout, ft_frames
from inertial_estimation.ros.conversions import ns_to_stamp, wrench_to_message
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    labelled_array,
    offsets_to_message,
    roots_to_message,
    to_message,
)
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.signals.messages import topic_names

SEPARATOR = '; '
"""Between the labels of rows: combinations contain blanks."""
GROUPS = {'force': '[N]', 'moment': '[Nm]', 'effort': '[Nm or N]'}
"""Beginning of the name of a kind of equation, and its unit."""
PROGRESS = (
    'seconds', 'equations', 'determined', 'rank', 'base_parameters',
    *(f'{group}_{when}' for group in GROUPS for when in ('before', 'after')),
)  # fmt: skip
"""Columns of the progress."""
PAYLOAD = ('mass', 'x', 'y', 'z', *(f'{name}_deviation' for name in ('mass', 'x', 'y', 'z')))
"""Columns of the payloads [kg, m]."""


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
        labels = [f'{one.submodel}: {name}' for one in values for name in one.names]
        rows = [row for one in values for row in zip(one.values, one.deviations)]
        self._base.publish(_table(labels, ('value', 'standard_deviation'), rows))

    def publish_progress(
        self, identifier: RecursiveIdentifier, refit: Refit | None, values: Sequence[BaseValues]
    ) -> None:
        """Publish progress, payloads and offsets, whether there is an update or not."""
        memories, named = identifier.memories, {one.submodel: one for one in values}
        rows = [[*progress(one, refit, named.get(one.name)).values()] for one in memories]
        self._progress.publish(_table([one.name for one in memories], PROGRESS, rows))
        payloads = identifier.payloads()
        labels = [f'{name}: {one.link}' for name, one in payloads.items()]
        rows = [
            [one.mass, *one.center, one.mass_deviation, *one.center_deviation]
            for one in payloads.values()
        ]
        self._payloads.publish(_table(labels, PAYLOAD, rows))
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


def progress(
    memory: SubmodelMemory, refit: Refit | None, base: BaseValues | None
) -> dict[str, float]:
    """Return the progress of a submodel by `PROGRESS`; errors are rms of prior and fit."""
    name, counted = memory.name, refit is not None and memory.name in refit.determined
    figures = [
        memory.seconds,
        memory.information.count if counted else 0.0,
        refit.determined[name] if counted else 0,
        *((base.rank, len(base.names)) if base else (0, np.nan)),
    ]
    for group in GROUPS:
        for residuals in (refit.prior_residuals, refit.residuals) if refit else ({}, {}):
            own = [r for kind, r in residuals.get(name, {}).items() if kind.startswith(group)]
            figures.append(float(np.sqrt(np.mean(np.square(own)))) if own else np.nan)
    return dict(zip(PROGRESS, figures, strict=True))


def _table(
    labels: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[float]]
) -> Float64MultiArray:
    """Return labelled rows."""
    numbers = np.reshape(np.array(rows, dtype=float), (len(labels), len(columns)))
    return labelled_array(numbers, SEPARATOR.join(labels), ' '.join(columns))
