# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Decoders: from the bytes of messages to readings."""

from __future__ import annotations

from struct import error
from typing import Any

import numpy as np

from inertial_estimation.sample import Array
from inertial_estimation.signals.cdr import (
    ENCAPSULATION,
    FLOAT,
    FRAME_AT,
    NANOSECONDS,
    STAMP,
    STAMP_AT,
    LayoutReader,
    first_float_after,
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

MAX_LAYOUTS = 64
# Serializers that reserve the alignment of empty arrays send it as garbage behind the message.
MAX_TRAILING = 3 * 4


class _JointLayout:
    """The fixed bytes of a JointState, and where its numbers lie."""

    def __init__(self, data: bytes) -> None:
        cursor = LayoutReader(data)
        self.frame_id = cursor.string()
        self.names = cursor.strings()
        self.arrays = cursor.floats(), cursor.floats(), cursor.floats()
        if not 0 <= len(data) - cursor.position <= MAX_TRAILING:
            raise ValueError('the length does not fit the counts')
        self.mask = int.from_bytes(cursor.fixed, 'little')
        self.expected = int.from_bytes(data, 'little') & self.mask


class JointStateDecoder:
    """Decode sensor_msgs/JointState."""

    def __init__(self) -> None:
        self.layouts: dict[int, _JointLayout] = {}

    def decode(self, data: bytes) -> JointReading | None:
        """Return the reading of a message, or None if it is not plain little-endian CDR."""
        layout = self.layouts.get(len(data))
        if layout is None or int.from_bytes(data, 'little') & layout.mask != layout.expected:
            layout = self._learn(data)
            if layout is None:
                return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        (n_q, q), (n_v, v), (n_e, e) = layout.arrays
        return JointReading(
            second * NANOSECONDS + nanosecond,
            layout.names,
            np.frombuffer(data, FLOAT, n_q, q),
            np.frombuffer(data, FLOAT, n_v, v),
            np.frombuffer(data, FLOAT, n_e, e),
        )

    def _learn(self, data: bytes) -> _JointLayout | None:
        """Parse and keep the layout of a message; None if it has none that we know."""
        if data[:4] != ENCAPSULATION:
            return None
        try:
            layout = _JointLayout(data)
        except (ValueError, error):
            return None
        if len(self.layouts) >= MAX_LAYOUTS:
            self.layouts.clear()
        self.layouts[len(data)] = layout
        return layout


class _FixedSizeDecoder:
    """Decode a message that is a header and a fixed number of float64."""

    count: int

    def __init__(self) -> None:
        self._frame = b''
        self._frame_id = ''
        self._start = self._size = -1

    def decode(self, data: bytes) -> Any:
        """Return the reading of a message, or None if it is not plain little-endian CDR."""
        end = FRAME_AT + len(self._frame)
        same = len(data) == self._size and data[:4] == ENCAPSULATION
        if not (same and data[FRAME_AT:end] == self._frame) and not self._learn(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        values = np.frombuffer(data, FLOAT, self.count, self._start)
        return self._reading(second * NANOSECONDS + nanosecond, self._frame_id, values)

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> Any:
        raise NotImplementedError

    def _learn(self, data: bytes) -> bool:
        """Parse the header; False if the message does not fit."""
        if data[:4] != ENCAPSULATION:
            return False
        cursor = LayoutReader(data)
        try:
            frame_id = cursor.string()
        except (ValueError, error):
            return False
        start = first_float_after(cursor.position)
        if len(data) != start + 8 * self.count:
            return False
        self._frame, self._frame_id = data[FRAME_AT : cursor.position], frame_id
        self._start, self._size = start, len(data)
        return True


class WrenchDecoder(_FixedSizeDecoder):
    """Decode geometry_msgs/WrenchStamped."""

    count = 6

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> WrenchReading:
        return WrenchReading(stamp_ns, frame_id, values)


class PointDecoder(_FixedSizeDecoder):
    """Decode geometry_msgs/PointStamped."""

    count = 3

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> PointReading:
        return PointReading(stamp_ns, frame_id, values)


class TemperatureDecoder(_FixedSizeDecoder):
    """Decode sensor_msgs/Temperature."""

    count = 2

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> TemperatureReading:
        return TemperatureReading(stamp_ns, frame_id, float(values[0]))


class ImuDecoder(_FixedSizeDecoder):
    """Decode sensor_msgs/Imu: orientation, rate and acceleration, each with its covariance."""

    count = 37

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> ImuReading:
        no_rate, no_acceleration = bool(values[16] == -1.0), bool(values[28] == -1.0)
        return ImuReading(
            stamp_ns,
            frame_id,
            absent_if(no_rate, values[13:16]),
            absent_if(no_acceleration, values[25:28]),
            no_rate and no_acceleration,
        )


class OrientationDecoder(_FixedSizeDecoder):
    """Decode the orientation of sensor_msgs/Imu."""

    count = 37

    def _reading(self, stamp_ns: int, frame_id: str, values: Array) -> OrientationReading:
        quaternion, covariance = values[:4], values[4:13]
        absent = covariance[0] == -1.0 or not quaternion.any()
        return OrientationReading(stamp_ns, absent_if(absent, quaternion), covariance[::4])
