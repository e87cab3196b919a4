# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bags for tests, serialized by rosbags and not by the package."""

import numpy as np
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = 'sensor_msgs/msg/JointState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
IMU = 'sensor_msgs/msg/Imu'
TEMPERATURE = 'sensor_msgs/msg/Temperature'
POINT = 'geometry_msgs/msg/PointStamped'
POSE = 'geometry_msgs/msg/PoseStamped'


def joint_state(stamp_ns, names, positions, velocities=(), efforts=(), *, little_endian=True):
    arrays = (np.array(x, dtype=np.float64) for x in (positions, velocities, efforts))
    return _bytes(JOINT_STATE, _header(stamp_ns, ''), list(names), *arrays, order=little_endian)


def wrench(stamp_ns, frame_id, values):
    inner = STORE.types['geometry_msgs/msg/Wrench'](_vector(values[:3]), _vector(values[3:]))
    return _bytes(WRENCH, _header(stamp_ns, frame_id), inner)


def imu(stamp_ns, frame_id, rate, acceleration):
    turned = STORE.types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0)
    known, absent = np.zeros(9), np.array([-1.0, *[0.0] * 8])
    measured = _vector(rate), known, _vector(acceleration), known
    return _bytes(IMU, _header(stamp_ns, frame_id), turned, absent, *measured)


def point(stamp_ns, frame_id, values):
    inner = STORE.types['geometry_msgs/msg/Point'](*map(float, values))
    return _bytes(POINT, _header(stamp_ns, frame_id), inner)


def pose(stamp_ns, frame_id, position, quaternion):
    inner = (
        STORE.types['geometry_msgs/msg/Point'](*map(float, position)),
        STORE.types['geometry_msgs/msg/Quaternion'](*map(float, quaternion)),
    )
    whole = STORE.types['geometry_msgs/msg/Pose'](*inner)
    return _bytes(POSE, _header(stamp_ns, frame_id), whole)


def temperature(stamp_ns, frame_id, celsius):
    return _bytes(TEMPERATURE, _header(stamp_ns, frame_id), celsius, 0.01)


def sent(topic, make, stamp_ns, *values, late_ns=0):
    """Return what `write_bag` takes of a message that one of the functions above makes."""
    types = {joint_state: JOINT_STATE, wrench: WRENCH, imu: IMU, point: POINT, pose: POSE}
    type_ = types.get(make, TEMPERATURE)
    return topic, type_, stamp_ns + late_ns, make(stamp_ns, *values)


def write_bag(path, messages, storage='mcap', compression=None):
    """Write (topic, type, time of recording, bytes) in the order that is given."""
    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    writer = Writer(path, version=8, storage_plugin=plugin)
    if compression:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, type_, recorded_ns, data in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, type_, typestore=STORE)
            writer.write(connections[topic], recorded_ns, data)
    return path


def _bytes(type_, *fields, order=True):
    return bytes(STORE.serialize_cdr(STORE.types[type_](*fields), type_, little_endian=order))


def _header(stamp_ns, frame_id):
    stamp = STORE.types['builtin_interfaces/msg/Time'](*divmod(stamp_ns, 1_000_000_000))
    return STORE.types['std_msgs/msg/Header'](stamp, frame_id)


def _vector(values):
    return STORE.types['geometry_msgs/msg/Vector3'](*(float(x) for x in values))
