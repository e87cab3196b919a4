# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Markers of each shape, laid out; who shows them fills in the stamp."""

from collections.abc import Iterable, Sequence

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

ARROW = (0.015, 0.03, 0.0)
"""Diameters of shaft and head [m]."""
LETTERS = 0.05
"""Height of letters [m]."""


def arrow(kind: str, index: int, lifetime: Duration) -> Marker:
    """Return an arrow of no frame and no length yet."""
    marker = _marker(kind, index, Marker.ARROW, lifetime)
    marker.scale = Vector3(x=ARROW[0], y=ARROW[1], z=ARROW[2])
    marker.points = [Point(), Point()]
    return marker


def solid(kind: str, index: int, shape: int, lifetime: Duration) -> Marker:
    """Return a sphere or box of no frame, place and size yet."""
    return _marker(kind, index, shape, lifetime)


def text(kind: str, index: int, said: str, colour: ColorRGBA, lifetime: Duration) -> Marker:
    """Return a text that faces the viewer, of no frame and no place yet."""
    marker = _marker(kind, index, Marker.TEXT_VIEW_FACING, lifetime)
    marker.text, marker.color, marker.scale.z = said, colour, LETTERS
    return marker


def point(marker: Marker, ends: Iterable[Sequence[float]]) -> None:
    """
    Give an arrow its ends.

    ends [m].
    """
    for corner, (x, y, z) in zip(marker.points, ends):
        corner.x, corner.y, corner.z = x, y, z


def place(marker: Marker, frame: str, position: Sequence[float]) -> Marker:
    """
    Put a solid or text somewhere.

    position [m].
    """
    marker.header.frame_id = frame
    at = marker.pose.position
    at.x, at.y, at.z = position
    return marker


def size(marker: Marker, x: float, y: float, z: float) -> Marker:
    """
    Give a solid its size.

    x, y, z [m].
    """
    marker.scale.x, marker.scale.y, marker.scale.z = x, y, z
    return marker


def _marker(kind: str, index: int, shape: int, lifetime: Duration) -> Marker:
    """Return a marker of a shape."""
    marker = Marker(ns=kind, id=index, type=shape, lifetime=lifetime)
    marker.pose.orientation.w = 1.0
    return marker
