# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Latched publishers of the identifier: one message each for an update, and labelled tables."""

from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3, WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, String

from inertial_estimation.identification.recursion.covariance import BaseValues
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.refit import Refit
from inertial_estimation.model.parameter_update import ParameterUpdate
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.ros.conversions import ns_to_stamp, wrench_to_message
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    labelled_array,
    to_messages,
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
        self._update = {
            topic: self._publisher(Float64MultiArray, topic)
            for topic in (UNCERTAINTY_TOPIC, OFFSETS_TOPIC, TOPIC)
        }
        self._description = self._publisher(String, '~/robot_description')
        self._base = self._publisher(Float64MultiArray, '~/base_parameters')
        self._progress = self._publisher(Float64MultiArray, '~/progress')
        self._payloads = self._publisher(Float64MultiArray, '~/payloads')
        every = QoSProfile(depth=len(robot.links), durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._inertias = self._publisher(InertiaStamped, '~/inertias', every)
        sensors = [sensor.name for sensor in robot.ft_sensors]
        self._offsets = {
            name: (self._publisher(WrenchStamped, f'~/ft_offset/{topic}'), frame)
            for name, topic, frame in zip(sensors, topic_names(sensors), robot.ft_frames)
        }

    def publish(
        self, stamp_ns: int, update: ParameterUpdate, values: Mapping[str, BaseValues]
    ) -> None:
        """Publish an update, and the base parameters by submodel."""
        robot, parameters = self._robot, update.parameters
        for topic, message in to_messages(robot, update).items():
            self._update[topic].publish(message)
        self._description.publish(String(data=export_urdf(robot, parameters)))
        for link, row in zip(robot.link_names, parameters):
            self._inertias.publish(_inertia(stamp_ns, link, row))
        rows = {
            f'{submodel}: {name}': [value, deviation]
            for submodel, one in values.items()
            for name, value, deviation in zip(one.names, one.values, one.deviations)
        }
        self._base.publish(_table(rows, ('value', 'standard_deviation')))

    def publish_progress(
        self,
        progress: Mapping[str, Mapping[str, float]],
        payloads: Mapping[str, Payload],
        refit: Refit,
    ) -> None:
        """Publish progress, payloads and offsets, whether there is an update or not."""
        rows = {name: list(figures.values()) for name, figures in progress.items()}
        self._progress.publish(_table(rows, PROGRESS))
        rows = {
            f'{name}: {one.link}': [one.mass, *one.center, one.mass_deviation,
                                    *one.center_deviation]
            for name, one in payloads.items()
        }  # fmt: skip
        self._payloads.publish(_table(rows, PAYLOAD))
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
    shift = mass * (center @ center * np.eye(3) - np.outer(center, center))
    xx, xy, yy, xz, yz, zz = (parameters[4:] - shift[np.tril_indices(3)]).tolist()
    message = InertiaStamped()
    message.header.stamp, message.header.frame_id = ns_to_stamp(stamp_ns), link
    x, y, z = center.tolist()
    com = Vector3(x=x, y=y, z=z)
    message.inertia = Inertia(m=mass, com=com, ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    return message


def progress(
    identifier: RecursiveIdentifier, refit: Refit, base: Mapping[str, BaseValues]
) -> dict[str, dict[str, float]]:
    """Return figures by `PROGRESS` of each submodel; errors are rms of prior and fit."""
    found = {}
    for one in identifier.memories:
        name, values = one.name, base.get(one.name)
        figures = [
            one.seconds,
            one.information.count if one.information is not None else 0.0,
            refit.determined.get(name, 0),
            *((values.rank, len(values.names)) if values else (0, np.nan)),
        ]
        for group in GROUPS:
            for residuals in (refit.prior_residuals, refit.residuals):
                own = [r for kind, r in residuals.get(name, {}).items() if kind.startswith(group)]
                figures.append(float(np.sqrt(np.mean(np.square(own)))) if own else np.nan)
        found[name] = dict(zip(PROGRESS, figures, strict=True))
    return found


def _table(rows: Mapping[str, Sequence[float]], columns: Sequence[str]) -> Float64MultiArray:
    """Return labelled rows."""
    numbers = np.reshape(np.array(list(rows.values()), dtype=float), (len(rows), len(columns)))
    return labelled_array(numbers, SEPARATOR.join(rows), ' '.join(columns))
