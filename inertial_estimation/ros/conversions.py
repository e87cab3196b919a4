# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Messages as objects of rclpy to readings, and numbers to messages."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, Vector3, WrenchStamped
from sensor_msgs.msg import Imu, JointState, Temperature

from inertial_estimation.signals.readings import (
    ImuReading,
    JointReading,
    PointReading,
    TemperatureReading,
    WrenchReading,
    absent_if,
)

NANOSECONDS = 1_000_000_000


def stamp_to_ns(stamp: Time) -> int:
    """Return a stamp in nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def ns_to_stamp(stamp_ns: int) -> Time:
    """Return nanoseconds as a stamp."""
    second, nanosecond = divmod(stamp_ns, NANOSECONDS)
    return Time(sec=second, nanosec=nanosecond)


def joints_from_message(message: JointState) -> JointReading:
    """Return what a joint state says."""
    return JointReading(
        stamp_to_ns(message.header.stamp),
        tuple(message.name),
        np.array(message.position),
        np.array(message.velocity),
        np.array(message.effort),
    )


def wrench_from_message(message: WrenchStamped) -> WrenchReading:
    """Return what a wrench message says."""
    force, torque = message.wrench.force, message.wrench.torque
    wrench = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
    return WrenchReading(stamp_to_ns(message.header.stamp), message.header.frame_id, wrench)


def point_from_message(message: PointStamped) -> PointReading:
    """Return what a point message says."""
    point = np.array([message.point.x, message.point.y, message.point.z])
    return PointReading(stamp_to_ns(message.header.stamp), message.header.frame_id, point)


def temperature_from_message(message: Temperature) -> TemperatureReading:
    """Return what a temperature message says."""
    header = message.header
    return TemperatureReading(stamp_to_ns(header.stamp), header.frame_id, message.temperature)


def imu_from_message(message: Imu) -> ImuReading:
    """Return what an IMU message says."""
    no_turn, no_shift = (
        bool(covariance[0] == -1.0)
        for covariance in (
            message.angular_velocity_covariance,
            message.linear_acceleration_covariance,
        )
    )
    return ImuReading(
        stamp_to_ns(message.header.stamp),
        message.header.frame_id,
        absent_if(no_turn, _vector(message.angular_velocity)),
        absent_if(no_shift, _vector(message.linear_acceleration)),
        no_turn and no_shift,
    )


def point_to_message(stamp_ns: int, frame_id: str, point: Sequence[float]) -> PointStamped:
    """
    Return a stamped point.

    point (3,) [m].
    """
    message = PointStamped()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.header.frame_id = frame_id
    message.point.x, message.point.y, message.point.z = map(float, point)
    return message


def wrench_to_message(stamp_ns: int, frame_id: str, wrench: np.ndarray) -> WrenchStamped:
    """
    Return a stamped wrench.

    wrench (6,) [force; torque].
    """
    message = WrenchStamped()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.header.frame_id = frame_id
    for vector, part in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
        vector.x, vector.y, vector.z = part.tolist()
    return message


def _vector(vector: Vector3) -> np.ndarray:
    """Return three numbers."""
    return np.array([vector.x, vector.y, vector.z])
