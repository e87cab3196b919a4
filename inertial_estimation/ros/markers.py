# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Markers for rviz: arrows where the environment acts, links coloured by what is known of them."""

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import NANOSECONDS, ns_to_stamp

FORCE_SCALE, MOMENT_SCALE = 0.004, 0.04
"""Length of the arrows [m/N, m/Nm]."""
SHORTEST = 0.005
"""Shorter arrows are left out [m]."""
ARROW = (0.015, 0.03, 0.0)
"""Diameters of shaft and head [m]."""
ARROW_LIFETIME = Duration(nanosec=NANOSECONDS // 2)
HEALTH_PERIOD_NS = NANOSECONDS
HEALTH_LIFETIME = Duration(sec=3)
BALL = 0.06
"""Diameter of the ball that stands for a link of 1 kg [m]."""

FORCE_COLOUR = ColorRGBA(r=0.9, g=0.2, b=0.2, a=1.0)
MOMENT_COLOUR = ColorRGBA(r=0.2, g=0.4, b=0.9, a=1.0)
GREEN = ColorRGBA(r=0.2, g=0.8, b=0.2, a=0.6)
YELLOW = ColorRGBA(r=0.9, g=0.8, b=0.1, a=0.8)
ORANGE = ColorRGBA(r=1.0, g=0.5, b=0.0, a=0.8)
RED = ColorRGBA(r=0.9, g=0.1, b=0.1, a=0.9)


def health_colour(quality: int) -> ColorRGBA:
    """
    Return the colour of a submodel.

    Parameters
    ----------
    quality : int
        Flags of `Quality`.

    Returns
    -------
    ColorRGBA
        Red: nothing is known; orange: merged with a neighbour; yellow: assumed, or not told
        apart; green: measured.

    """
    if quality & Quality.MISSING:
        return RED
    if quality & Quality.MERGED:
        return ORANGE
    return YELLOW if quality else GREEN


class MarkerOutput:
    """
    The publisher of markers; silent unless the node is active and somebody listens.

    Parameters
    ----------
    node : LifecycleNode
        Owns the publisher.
    estimator : WrenchEstimator
        Its robot's links get markers, and so does every contact of an estimate.

    """

    def __init__(self, node: LifecycleNode, estimator: WrenchEstimator) -> None:
        self._node = node
        self._publisher = node.create_lifecycle_publisher(
            MarkerArray, '~/markers', QoSProfile(depth=1)
        )
        self._arrows: list[tuple[Marker, Marker]] = []
        self._balls = [_balls(estimator.robot, sm.links) for sm in estimator.robot.submodels]
        self._shown_ns = 0

    def publish(self, estimate: WrenchEstimate) -> None:
        """
        Publish the markers of an estimate; the links once a second.

        Parameters
        ----------
        estimate : WrenchEstimate
            Of one instant.

        """
        if not self._publisher.get_subscription_count():
            return
        stamp_ns = estimate.stamp_ns
        markers = self._wrenches(estimate)
        if not 0 <= stamp_ns - self._shown_ns < HEALTH_PERIOD_NS:
            self._shown_ns = stamp_ns
            markers += self._coloured(estimate)
        stamp = ns_to_stamp(stamp_ns)
        for marker in markers:
            marker.header.stamp = stamp
        self._publisher.publish(MarkerArray(markers=markers))

    def destroy(self) -> None:
        """Give the publisher back."""
        self._node.destroy_lifecycle_publisher(self._publisher)

    def _wrenches(self, estimate: WrenchEstimate) -> list[Marker]:
        """Return the arrows that are long enough, at the points where the contacts are."""
        for k in range(len(self._arrows), len(estimate.contacts)):
            self._arrows.append(
                (_arrow('force', k, FORCE_COLOUR), _arrow('moment', k, MOMENT_COLOUR))
            )
        markers = []
        for contact, row, arrows in zip(estimate.contacts, estimate.wrenches, self._arrows):
            start, force = np.array(contact.point), row[:3]
            # What a force at the point does about the frame's origin is no moment of its own.
            moment = row[3:] - np.cross(start, force)
            for arrow, length in zip(arrows, (force * FORCE_SCALE, moment * MOMENT_SCALE)):
                arrow.header.frame_id = contact.frame
                if _point(arrow, start, length):
                    markers.append(arrow)
        return markers

    def _coloured(self, estimate: WrenchEstimate) -> list[Marker]:
        """Return the links in the colours of their submodels."""
        for balls, quality in zip(self._balls, estimate.submodel_quality.tolist()):
            colour = health_colour(quality)
            for ball in balls:
                ball.color = colour
        return [ball for balls in self._balls for ball in balls]


def _arrow(kind: str, index: int, colour: ColorRGBA) -> Marker:
    """Return an arrow of no frame and no length yet."""
    marker = Marker(ns=kind, id=index, type=Marker.ARROW, color=colour, lifetime=ARROW_LIFETIME)
    marker.scale.x, marker.scale.y, marker.scale.z = ARROW
    marker.pose.orientation.w = 1.0
    marker.points = [Point(), Point()]
    return marker


def _point(marker: Marker, start: np.ndarray, length: np.ndarray) -> bool:
    """Give an arrow its ends; tell whether there is something to see."""
    if not np.linalg.norm(length) >= SHORTEST:
        return False
    for point, values in zip(marker.points, (start, start + length)):
        point.x, point.y, point.z = values.tolist()
    return True


def _balls(robot: Robot, links: tuple[int, ...]) -> list[Marker]:
    """Return a ball at the centre of mass of each link that has mass."""
    balls = []
    for link in links:
        mass, first_moment = robot.parameters[link, 0], robot.parameters[link, 1:4]
        if mass <= 0.0:
            continue
        marker = Marker(ns='health', id=link, type=Marker.SPHERE, lifetime=HEALTH_LIFETIME)
        marker.header.frame_id = robot.links[link].name
        position = marker.pose.position
        position.x, position.y, position.z = (first_moment / mass).tolist()
        marker.pose.orientation.w = 1.0
        marker.scale.x = marker.scale.y = marker.scale.z = float(BALL * np.cbrt(mass))
        balls.append(marker)
    return balls
