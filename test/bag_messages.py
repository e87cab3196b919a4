# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bags for tests, serialized by rosbags and not by the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = 'sensor_msgs/msg/JointState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
IMU = 'sensor_msgs/msg/Imu'
TEMPERATURE = 'sensor_msgs/msg/Temperature'
POINT = 'geometry_msgs/msg/PointStamped'


def joint_state(
    stamp_ns: int,
    names: Sequence[str],
    positions: np.ndarray,
    velocities: Sequence[float] = (),
    efforts: Sequence[float] = (),
    *,
    little_endian: bool = True,
) -> bytes:
    """Return the bytes of a JointState."""
    arrays = (np.array(x, dtype=np.float64) for x in (positions, velocities, efforts))
    message = STORE.types[JOINT_STATE](_header(stamp_ns, ''), list(names), *arrays)
    return _bytes(message, JOINT_STATE, little_endian)


def wrench(
    stamp_ns: int, frame_id: str, values: Sequence[float], *, little_endian: bool = True
) -> bytes:
    """Return the bytes of a WrenchStamped."""
    force, torque = _vector(values[:3]), _vector(values[3:])
    inner = STORE.types['geometry_msgs/msg/Wrench'](force, torque)
    message = STORE.types[WRENCH](_header(stamp_ns, frame_id), inner)
    return _bytes(message, WRENCH, little_endian)


def imu(
    stamp_ns: int,
    frame_id: str,
    rate: Sequence[float],
    acceleration: Sequence[float],
    *,
    measures_rate: bool = True,
    little_endian: bool = True,
) -> bytes:
    """Return the bytes of an Imu."""
    turned = STORE.types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0)
    known, absent = np.zeros(9), np.array([-1.0, *[0.0] * 8])
    message = STORE.types[IMU](
        _header(stamp_ns, frame_id),
        turned,
        absent,
        _vector(rate),
        known if measures_rate else absent,
        _vector(acceleration),
        known,
    )
    return _bytes(message, IMU, little_endian)


def point(stamp_ns: int, frame_id: str, values: Sequence[float]) -> bytes:
    """Return the bytes of a PointStamped."""
    inner = STORE.types['geometry_msgs/msg/Point'](*map(float, values))
    message = STORE.types[POINT](_header(stamp_ns, frame_id), inner)
    return _bytes(message, POINT, True)


def temperature(stamp_ns: int, frame_id: str, celsius: float) -> bytes:
    """Return the bytes of a Temperature."""
    message = STORE.types[TEMPERATURE](_header(stamp_ns, frame_id), celsius, 0.01)
    return _bytes(message, TEMPERATURE, True)


def write_bag(
    path: Path, messages: Iterable[tuple[str, str, int, bytes]], storage: str = 'mcap'
) -> Path:
    """Write (topic, type, time of recording, bytes) in the order that is given."""
    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    with Writer(path, version=8, storage_plugin=plugin) as writer:
        connections: dict[str, Any] = {}
        for topic, type_, recorded_ns, data in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, type_, typestore=STORE)
            writer.write(connections[topic], recorded_ns, data)
    return path


def _bytes(message: Any, type_: str, little_endian: bool) -> bytes:
    return bytes(STORE.serialize_cdr(message, type_, little_endian=little_endian))


def _header(stamp_ns: int, frame_id: str) -> Any:
    stamp = STORE.types['builtin_interfaces/msg/Time'](*divmod(stamp_ns, 1_000_000_000))
    return STORE.types['std_msgs/msg/Header'](stamp, frame_id)


def _vector(values: Sequence[float]) -> Any:
    return STORE.types['geometry_msgs/msg/Vector3'](*(float(x) for x in values))
