# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Stamps, points and wrenches as objects of rclpy."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, WrenchStamped

from inertial_estimation.signals.cdr import NANOSECONDS


def stamp_to_ns(stamp: Time) -> int:
    """Return a stamp in nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def ns_to_stamp(stamp_ns: int) -> Time:
    """Return nanoseconds as a stamp."""
    second, nanosecond = divmod(stamp_ns, NANOSECONDS)
    return Time(sec=second, nanosec=nanosecond)


def point_to_message(stamp_ns: int, frame_id: str, point: Sequence[float]) -> PointStamped:
    """Return a stamped point, from shape (3,) [m]."""
    message = PointStamped()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.header.frame_id = frame_id
    message.point.x, message.point.y, message.point.z = map(float, point)
    return message


def wrench_to_message(stamp_ns: int, frame_id: str, wrench: np.ndarray) -> WrenchStamped:
    """Return a stamped wrench, from shape (6,) [force; torque]."""
    message = WrenchStamped()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.header.frame_id = frame_id
    for vector, part in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
        vector.x, vector.y, vector.z = part.tolist()
    return message
