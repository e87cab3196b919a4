# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters as bodies of uniform density for rviz: those in use beside the description's.

A cuboid and an ellipsoid at the centre of mass of each link, along its principal axes, that have
its mass and its moments of inertia. The markers stay with their links, so they are sent only when
the parameters have changed.
"""

from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from pinocchio import Quaternion
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import NANOSECONDS
from inertial_estimation.ros.marker_colours import DESCRIBED_BODY, USED_BODY
from inertial_estimation.ros.marker_shapes import place, size, solid
from inertial_estimation.sample import Array

LOOK_NS = NANOSECONDS
"""Between two looks at the parameters [ns]."""
FLATTEST = 1e-9
"""Bodies whose least second moment is below this share of the largest have no marker."""
FOREVER = Duration()


class Shape(NamedTuple):
    """Which solid of uniform density has the moments of a body."""

    used: str
    """Namespace of those in use."""
    described: str
    """Namespace of those of the description, where these are others."""
    kind: int
    """Of the marker."""
    factor: float
    """Square of half an edge or diameter, over second moment by mass."""


SHAPES = (
    # [M 25], and its like for an ellipsoid: the mean of x^2 is a^2 / 3 there, a^2 / 5 here.
    Shape('inertia_cuboid', 'described_cuboid', Marker.CUBE, 3.0),
    Shape('inertia_ellipsoid', 'described_ellipsoid', Marker.SPHERE, 5.0),
)


def inertia_markers(robot: Robot, parameters: Array) -> list[Marker]:
    """
    Return the bodies in use, and those of the description where these are others.

    parameters (n_links, 10).
    """
    changed = (parameters != robot.parameters).any(axis=1)
    markers = []
    for shape in SHAPES:
        markers += _solids(robot, shape, shape.used, parameters, USED_BODY)
        described = np.where(changed[:, None], robot.parameters, 0.0)
        markers += _solids(robot, shape, shape.described, described, DESCRIBED_BODY)
    return markers


class InertiaMarkerOutput:
    """The latched publisher of these; silent unless the node is active and somebody listens."""

    def __init__(self, node: LifecycleNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._publisher = node.create_lifecycle_publisher(
            MarkerArray, '~/inertia_markers', latched
        )
        self._shown: Array | None = None
        self._looked_ns = 0

    def publish(self, stamp_ns: int, parameters: Array) -> None:
        """
        Publish the bodies, if others are in use than were shown, once a second at most.

        parameters (n_links, 10).
        """
        # Time may have been set back since.
        if parameters is self._shown or 0 <= stamp_ns - self._looked_ns < LOOK_NS:
            return
        self._looked_ns = stamp_ns
        if self._publisher.get_subscription_count():
            self._shown = parameters
            # Bodies that are no longer drawn go.
            markers = [Marker(action=Marker.DELETEALL)]
            markers += inertia_markers(self._robot, parameters)
            self._publisher.publish(MarkerArray(markers=markers))

    def destroy(self) -> None:
        """Give the publisher back."""
        self._node.destroy_lifecycle_publisher(self._publisher)


def _solids(
    robot: Robot, shape: Shape, namespace: str, parameters: Array, colour: ColorRGBA
) -> list[Marker]:
    """Return the solids of all links that have one."""
    links = np.flatnonzero(np.isfinite(parameters).all(axis=1) & (parameters[:, 0] > 0.0))
    bodies = PrincipalBodies.of(parameters[links])
    markers = []
    for k, mass, center, axes, moments in zip(
        links.tolist(), bodies.mass, bodies.center, bodies.axes, bodies.moments, strict=True
    ):
        if not moments.min() > FLATTEST * moments.max():
            continue
        marker = place(
            solid(namespace, k, shape.kind, FOREVER), robot.link_names[k], center.tolist()
        )
        at = marker.pose.orientation
        at.x, at.y, at.z, at.w = Quaternion(axes).coeffs().tolist()
        marker.color, marker.frame_locked = colour, True
        markers.append(size(marker, *(2.0 * np.sqrt(shape.factor * moments / mass)).tolist()))
    return markers
