# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the bytes of a bag to readings: the node's own decoders, and a general one behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.logs.bag import (
    IMU,
    JOINT_STATE,
    POINT,
    TEMPERATURE,
    WRENCH,
    deserialize,
    standard_types,
)
from inertial_estimation.signals.decoders import (
    ImuDecoder,
    JointStateDecoder,
    OrientationDecoder,
    PointDecoder,
    TemperatureDecoder,
    WrenchDecoder,
)
from inertial_estimation.signals.readings import (
    ImuReading,
    JointReading,
    OrientationReading,
    PointReading,
    TemperatureReading,
    WrenchReading,
    absent_if,
)

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

Array = NDArray[np.float64]
Reading = TypeVar('Reading')

NANOSECONDS = 1_000_000_000


class TopicReader(Generic[Reading]):
    """Reads the messages of one topic."""

    def __init__(
        self,
        type_: str,
        decode: Callable[[bytes], Reading | None],
        convert: Callable[[Any], Reading],
    ) -> None:
        self.fallbacks = 0
        self._type = type_
        self._decode = decode
        self._convert = convert
        self._store: Typestore | None = None

    def read(self, data: bytes) -> Reading:
        """Return what a message says."""
        reading = self._decode(data)
        if reading is not None:
            return reading
        if self._store is None:
            self._store = standard_types()
        self.fallbacks += 1
        return self._convert(deserialize(data, self._type, self._store))


def joint_state_reader() -> TopicReader[JointReading]:
    """Return a reader of sensor_msgs/JointState."""
    return TopicReader(JOINT_STATE, JointStateDecoder().decode, _joint_reading)


def wrench_reader() -> TopicReader[WrenchReading]:
    """Return a reader of geometry_msgs/WrenchStamped."""
    return TopicReader(WRENCH, WrenchDecoder().decode, _wrench_reading)


def imu_reader() -> TopicReader[ImuReading]:
    """Return a reader of sensor_msgs/Imu."""
    return TopicReader(IMU, ImuDecoder().decode, _imu_reading)


def orientation_reader() -> TopicReader[OrientationReading]:
    """Return a reader of the orientation in sensor_msgs/Imu."""
    return TopicReader(IMU, OrientationDecoder().decode, _orientation_reading)


def temperature_reader() -> TopicReader[TemperatureReading]:
    """Return a reader of sensor_msgs/Temperature."""
    return TopicReader(TEMPERATURE, TemperatureDecoder().decode, _temperature_reading)


def point_reader() -> TopicReader[PointReading]:
    """Return a reader of geometry_msgs/PointStamped."""
    return TopicReader(POINT, PointDecoder().decode, _point_reading)


def _joint_reading(message: Any) -> JointReading:
    return JointReading(
        _stamp(message),
        tuple(message.name),
        np.array(message.position, dtype=np.float64),
        np.array(message.velocity, dtype=np.float64),
        np.array(message.effort, dtype=np.float64),
    )


def _wrench_reading(message: Any) -> WrenchReading:
    wrench = np.concatenate([_vector(message.wrench.force), _vector(message.wrench.torque)])
    return WrenchReading(_stamp(message), message.header.frame_id, wrench)


def _point_reading(message: Any) -> PointReading:
    return PointReading(_stamp(message), message.header.frame_id, _vector(message.point))


def _temperature_reading(message: Any) -> TemperatureReading:
    celsius = float(message.temperature)
    return TemperatureReading(_stamp(message), message.header.frame_id, celsius)


def _imu_reading(message: Any) -> ImuReading:
    return ImuReading(
        _stamp(message),
        message.header.frame_id,
        absent_if(
            message.angular_velocity_covariance[0] == -1.0, _vector(message.angular_velocity)
        ),
        absent_if(
            message.linear_acceleration_covariance[0] == -1.0,
            _vector(message.linear_acceleration),
        ),
    )


def _orientation_reading(message: Any) -> OrientationReading:
    q, covariance = message.orientation, np.asarray(message.orientation_covariance)
    quaternion = np.array([q.x, q.y, q.z, q.w])
    absent = covariance[0] == -1.0 or not quaternion.any()
    return OrientationReading(_stamp(message), absent_if(absent, quaternion), covariance[::4])


def _stamp(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def _vector(vector: Any) -> Array:
    return np.array([vector.x, vector.y, vector.z])
