# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings: the numbers and names of sensor messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class JointReading(NamedTuple):
    """Reading of a JointState; an empty array where it has no values."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    names: tuple[str, ...]
    """Joint names; the same object as long as the layout stays the same."""
    positions: Array
    """Joint positions, shape (n,) or (0,) [rad or m]."""
    velocities: Array
    """Joint velocities, shape (n,) or (0,) [rad/s or m/s]."""
    efforts: Array
    """Joint torques or forces, shape (n,) or (0,) [Nm or N]."""


class WrenchReading(NamedTuple):
    """Reading of a WrenchStamped."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    wrench: Array
    """Wrench in and about the origin of ``frame_id``, shape (6,), [force; torque] [N, Nm]."""


class ImuReading(NamedTuple):
    """Reading of an Imu; NaN where covariance[0] is -1 (REP 145: not measured)."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    angular_velocity: Array
    """Angular velocity in ``frame_id``, shape (3,) [rad/s]."""
    linear_acceleration: Array
    """Proper acceleration in ``frame_id``, shape (3,) [m/s^2]."""
    declares_nothing: bool = False
    """Whether both covariances begin with -1: by its own word it measures nothing."""


class OrientationReading(NamedTuple):
    """Orientation in an Imu."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    quaternion: Array
    """
    Orientation of the IMU in its reference frame, shape (4,), x y z w.

    NaN where covariance[0] is -1 (REP 145: not measured), or all four are zero.
    """
    variances: Array
    """Diagonal of its covariance, shape (3,) [rad^2]; zero: not stated."""


class PointReading(NamedTuple):
    """Reading of a PointStamped."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    point: Array
    """Point in ``frame_id``, shape (3,) [m]."""


class TemperatureReading(NamedTuple):
    """Reading of a Temperature."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    celsius: float
    """[degrees Celsius]."""


def absent_if(absent: bool, values: Array) -> Array:
    """Return NaN in place of values that the message declares as not measured."""
    return np.full(values.shape, np.nan) if absent else values


# From deserialized messages, of rclpy and of rosbags alike.


def joints_from_message(message: Any) -> JointReading:
    """Return the reading of a JointState."""
    return JointReading(
        _stamp(message),
        tuple(message.name),
        np.array(message.position, dtype=np.float64),
        np.array(message.velocity, dtype=np.float64),
        np.array(message.effort, dtype=np.float64),
    )


def wrench_from_message(message: Any) -> WrenchReading:
    """Return the reading of a WrenchStamped."""
    wrench = np.concatenate([_vector(message.wrench.force), _vector(message.wrench.torque)])
    return WrenchReading(_stamp(message), message.header.frame_id, wrench)


def point_from_message(message: Any) -> PointReading:
    """Return the reading of a PointStamped."""
    return PointReading(_stamp(message), message.header.frame_id, _vector(message.point))


def temperature_from_message(message: Any) -> TemperatureReading:
    """Return the reading of a Temperature."""
    celsius = float(message.temperature)
    return TemperatureReading(_stamp(message), message.header.frame_id, celsius)


def imu_from_message(message: Any) -> ImuReading:
    """Return the reading of an Imu."""
    no_turn = bool(message.angular_velocity_covariance[0] == -1.0)
    no_shift = bool(message.linear_acceleration_covariance[0] == -1.0)
    return ImuReading(
        _stamp(message),
        message.header.frame_id,
        absent_if(no_turn, _vector(message.angular_velocity)),
        absent_if(no_shift, _vector(message.linear_acceleration)),
        no_turn and no_shift,
    )


def orientation_from_message(message: Any) -> OrientationReading:
    """Return the orientation of an Imu."""
    q, covariance = message.orientation, np.asarray(message.orientation_covariance)
    quaternion = np.array([q.x, q.y, q.z, q.w])
    absent = bool(covariance[0] == -1.0) or not quaternion.any()
    return OrientationReading(_stamp(message), absent_if(absent, quaternion), covariance[::4])


def _stamp(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _vector(vector: Any) -> Array:
    return np.array([vector.x, vector.y, vector.z])
