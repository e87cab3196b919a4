# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Messages with a header, names and float64: one table of fields for reading and for writing.

The encoding is plain little-endian CDR, which every common machine sends. For anything else
`Decoder.decode` returns None, and `Decoder.read` takes the message from a general deserializer.
A layout is parsed once; then only texts and counts are compared, with the padding masked out,
since it is uninitialised memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from struct import error
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.signals.cdr import (
    ENCAPSULATION,
    FLOAT,
    FRAME_AT,
    NANOSECONDS,
    STAMP,
    STAMP_AT,
    Reader,
    Writer,
)

MAX_LAYOUTS = 64
"""Layouts that a decoder keeps, by the length of the message."""
MAX_TRAILING = 3 * 4
"""Serializers that reserve the alignment of empty arrays send it as garbage behind the message."""


class Rows(NamedTuple):
    """A sequence, each element with some float64."""

    width: int = 1


NAMES, FLOATS, WRENCHES = 'names', Rows(), Rows(6)
JOINT_STATE = 'sensor_msgs/msg/JointState'
MULTI_DOF_JOINT_STATE = 'sensor_msgs/msg/MultiDOFJointState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
IMU = 'sensor_msgs/msg/Imu'
TEMPERATURE = 'sensor_msgs/msg/Temperature'
POINT = 'geometry_msgs/msg/PointStamped'
POSE = 'geometry_msgs/msg/PoseStamped'
INERTIA = 'geometry_msgs/msg/InertiaStamped'
FIELDS: dict[str, Mapping[str, str | Rows | int]] = {
    JOINT_STATE: {'name': NAMES, 'position': FLOATS, 'velocity': FLOATS, 'effort': FLOATS},
    MULTI_DOF_JOINT_STATE: {
        'joint_names': NAMES, 'transforms': Rows(7), 'twist': WRENCHES, 'wrench': WRENCHES,
    },
    WRENCH: {'wrench.force': 3, 'wrench.torque': 3},
    IMU: {
        'orientation': 4, 'orientation_covariance': 9, 'angular_velocity': 3,
        'angular_velocity_covariance': 9, 'linear_acceleration': 3,
        'linear_acceleration_covariance': 9,
    },
    TEMPERATURE: {'temperature': 1, 'variance': 1},
    POINT: {'point': 3},
    POSE: {'pose.position': 3, 'pose.orientation': 4},
    # Mass, centre of mass and inertia about it: xx, xy, xz, yy, yz, zz.
    INERTIA: {'inertia': 10},
}  # fmt: skip
"""Fields behind the header: names, sequences, or a number of float64."""


def stamp_of(data: bytes) -> int:
    """Return the stamp of a message with a header [ns]; zero if it has none in this encoding."""
    if len(data) < FRAME_AT or data[:4] != ENCAPSULATION:
        return 0
    second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
    return int(second * NANOSECONDS + nanosecond)


def _kinds(type_: str) -> list[str | Rows | int]:
    """Return the fields of a message, float64 that follow one another as one."""
    kinds: list[str | Rows | int] = []
    for kind in FIELDS[type_].values():
        if isinstance(kind, int) and kinds and isinstance(kinds[-1], int):
            kinds[-1] += kind
        else:
            kinds.append(kind)
    return kinds


class Reading(NamedTuple):
    """Reading of a WrenchStamped, a PointStamped, a PoseStamped or a Temperature."""

    stamp_ns: int
    frame_id: str
    values: Array
    """
    [force; torque] [N, Nm], point [m] with or without quaternion x y z w, or temperature and
    variance [degrees Celsius].
    """


class JointReading(NamedTuple):
    """Reading of a JointState; an empty array where it has no values."""

    stamp_ns: int
    frame_id: str
    names: tuple[str, ...]
    """Joint names; the same object as long as the layout stays the same."""
    positions: Array
    """Joint positions, shape (n,) or (0,) [rad or m]."""
    velocities: Array
    """Joint velocities, shape (n,) or (0,) [rad/s or m/s]."""
    efforts: Array
    """Joint torques or forces, shape (n,) or (0,) [Nm or N]."""


class ImuReading(NamedTuple):
    """Reading of an Imu; NaN where covariance[0] is -1 (REP 145: not measured)."""

    stamp_ns: int
    frame_id: str
    angular_velocity: Array
    """Angular velocity in ``frame_id``, shape (3,) [rad/s]."""
    linear_acceleration: Array
    """Proper acceleration in ``frame_id``, shape (3,) [m/s^2]."""
    declares_nothing: bool = False
    """True if both covariances begin with -1."""


def _imu_reading(stamp_ns: int, frame_id: str, values: Array) -> ImuReading:
    rate, acceleration = values[13:16], values[25:28]
    no_rate, no_acceleration = bool(values[16] == -1.0), bool(values[28] == -1.0)
    if no_rate:
        rate = np.full(3, np.nan)
    if no_acceleration:
        acceleration = np.full(3, np.nan)
    return ImuReading(stamp_ns, frame_id, rate, acceleration, no_rate and no_acceleration)


READINGS: dict[str, tuple[str, Callable[..., Any]]] = {
    'joints': (JOINT_STATE, JointReading),
    'ft': (WRENCH, Reading),
    'imu': (IMU, _imu_reading),
    'temperature': (TEMPERATURE, Reading),
    'contacts': (POINT, Reading),
    'contact_poses': (POSE, Reading),
}
"""Message type and reading of each kind of source."""


class Layout:
    """Texts of a message, positions of its numbers, and its constant bytes."""

    def __init__(self, data: bytes, kinds: Iterable[str | Rows | int]) -> None:
        reader, slack = Reader(data), 0
        self.texts: list[Any] = [reader.text()]
        self.arrays = []
        for kind in kinds:
            if isinstance(kind, str):
                self.texts.append(reader.texts())
            elif isinstance(kind, int):
                self.arrays.append(reader.floats(kind))
            else:
                self.arrays.append(reader.floats(kind.width * reader.count()))
                slack = MAX_TRAILING
        if not 0 <= len(data) - reader.position <= slack:
            raise ValueError('the length does not fit the counts')
        self.size = reader.fixed.rindex(b'\xff') + 1
        self.constant, self.fixed = data[: self.size], bytes(reader.fixed[: self.size])
        """Bytes of texts and counts, and a mask of these."""
        self.mask = int.from_bytes(self.fixed, 'little')
        self.expected = int.from_bytes(self.constant, 'little') & self.mask


class Decoder:
    """Decodes the messages of one kind of source, a key of `READINGS`."""

    def __init__(self, kind: str) -> None:
        self.kind, (self.type, self._reading) = kind, READINGS[kind]
        self._kinds = _kinds(self.type)
        self.layouts: dict[int, Layout] = {}
        """Of the last message of each length."""

    def decode(self, data: bytes) -> Any:
        """Return the reading of a message, or None if it is not plain little-endian CDR."""
        layout = self.layouts.get(len(data))
        if (
            layout is None
            or int.from_bytes(data[: layout.size], 'little') & layout.mask != layout.expected
        ):
            layout = self.learn(data)
            if layout is None:
                return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        stamp_ns = second * NANOSECONDS + nanosecond
        if len(layout.arrays) == 1:
            values = np.frombuffer(data, FLOAT, *layout.arrays[0])
            return self._reading(stamp_ns, layout.texts[0], values)
        arrays = [np.frombuffer(data, FLOAT, count, start) for count, start in layout.arrays]
        return self._reading(stamp_ns, *layout.texts, *arrays)

    def read(self, message: Any) -> Any:
        """Return the reading of a deserialized message, of rclpy or of rosbags."""
        stamp, names, arrays = message.header.stamp, [], []
        for path, kind in FIELDS[self.type].items():
            field = attrgetter(path)(message)
            if kind is NAMES:
                names.append(tuple(field))
            else:
                axes = 'xyzw'[:kind] if hasattr(field, 'x') and isinstance(kind, int) else ''
                values = [getattr(field, axis) for axis in axes] if axes else field
                arrays.append(np.array(values, dtype=np.float64).reshape(-1))
        if not names:
            arrays = [np.concatenate(arrays)]
        stamp_ns = int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)
        return self._reading(stamp_ns, message.header.frame_id, *names, *arrays)

    def learn(self, data: bytes) -> Layout | None:
        """Parse and keep the layout of a message; None if it has none that is known."""
        if data[:4] != ENCAPSULATION:
            return None
        try:
            layout = Layout(data, self._kinds)
        except (ValueError, error):
            return None
        if len(self.layouts) >= MAX_LAYOUTS:
            self.layouts.clear()
        self.layouts[len(data)] = layout
        return layout


class Encoder:
    """
    Encodes messages of one layout; only the stamp and the numbers change.

    counts: elements of each sequence, in their order.
    """

    def __init__(
        self, type_: str, frame_id: str, names: Sequence[str] = (), counts: Iterable[int] = ()
    ) -> None:
        writer, left, arrays = Writer(), iter(counts), []
        writer.time(0)
        writer.text(frame_id)
        for kind in _kinds(type_):
            shape: tuple[int, ...]
            if isinstance(kind, str):
                writer.texts(list(names))
                continue
            if isinstance(kind, int):
                shape = (kind,)
            else:
                count = next(left)
                writer.count(count)
                shape = (count, kind.width) if kind.width > 1 else (count,)
            size = int(np.prod(shape))
            writer.numbers('d', 8, *[0.0] * size)
            if size:
                arrays.append((len(writer.data) - 8 * size, size, shape))
        self._buffer = writer.data
        self._arrays = [
            np.frombuffer(self._buffer, FLOAT, size, start).reshape(shape)
            for start, size, shape in arrays
        ]

    def encode(self, stamp_ns: int, *values: Array) -> bytes:
        """Return the message with a stamp [ns] and the values of its arrays that hold any."""
        STAMP.pack_into(self._buffer, STAMP_AT, *divmod(stamp_ns, NANOSECONDS))
        for array, value in zip(self._arrays, values):
            array[...] = value
        return bytes(self._buffer)
