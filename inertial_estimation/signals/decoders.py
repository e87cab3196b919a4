# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From bytes to readings."""

from __future__ import annotations

from struct import error

import numpy as np

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
            raise ValueError('the length is not what the counts say')
        self.mask = int.from_bytes(cursor.fixed, 'little')
        self.expected = int.from_bytes(data, 'little') & self.mask


class JointStateDecoder:
    """Decode sensor_msgs/JointState."""

    def __init__(self) -> None:
        self.layouts: dict[int, _JointLayout] = {}

    def decode(self, data: bytes) -> JointReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
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
    """Finds the numbers of a message that is a header and a fixed number of float64."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._frame = b''
        self._frame_id = ''
        self._start = self._size = -1

    def _find(self, data: bytes) -> bool:
        """Tell whether the message can be read, and learn its frame when that is new."""
        end = FRAME_AT + len(self._frame)
        same = len(data) == self._size and data[:4] == ENCAPSULATION
        return (same and data[FRAME_AT:end] == self._frame) or self._learn(data)

    def _learn(self, data: bytes) -> bool:
        """Parse the header; False if the message is not what we know."""
        if data[:4] != ENCAPSULATION:
            return False
        cursor = LayoutReader(data)
        try:
            frame_id = cursor.string()
        except (ValueError, error):
            return False
        start = first_float_after(cursor.position)
        if len(data) != start + 8 * self._count:
            return False
        self._frame, self._frame_id = data[FRAME_AT : cursor.position], frame_id
        self._start, self._size = start, len(data)
        return True


class WrenchDecoder(_FixedSizeDecoder):
    """Decode geometry_msgs/WrenchStamped."""

    def __init__(self) -> None:
        super().__init__(6)

    def decode(self, data: bytes) -> WrenchReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
        if not self._find(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        wrench = np.frombuffer(data, FLOAT, 6, self._start)
        return WrenchReading(second * NANOSECONDS + nanosecond, self._frame_id, wrench)


class PointDecoder(_FixedSizeDecoder):
    """Decode geometry_msgs/PointStamped."""

    def __init__(self) -> None:
        super().__init__(3)

    def decode(self, data: bytes) -> PointReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
        if not self._find(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        point = np.frombuffer(data, FLOAT, 3, self._start)
        return PointReading(second * NANOSECONDS + nanosecond, self._frame_id, point)


class TemperatureDecoder(_FixedSizeDecoder):
    """Decode sensor_msgs/Temperature."""

    def __init__(self) -> None:
        super().__init__(2)

    def decode(self, data: bytes) -> TemperatureReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
        if not self._find(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        celsius = float(np.frombuffer(data, FLOAT, 1, self._start)[0])
        return TemperatureReading(second * NANOSECONDS + nanosecond, self._frame_id, celsius)


class ImuDecoder(_FixedSizeDecoder):
    """Decode sensor_msgs/Imu; `OrientationDecoder` returns its orientation."""

    def __init__(self) -> None:
        super().__init__(37)

    def decode(self, data: bytes) -> ImuReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
        if not self._find(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        values = np.frombuffer(data, FLOAT, 37, self._start)
        # Orientation and its covariance come first; then each quantity with its own behind it.
        no_turn, no_shift = bool(values[16] == -1.0), bool(values[28] == -1.0)
        return ImuReading(
            second * NANOSECONDS + nanosecond,
            self._frame_id,
            absent_if(no_turn, values[13:16]),
            absent_if(no_shift, values[25:28]),
            no_turn and no_shift,
        )


class OrientationDecoder(_FixedSizeDecoder):
    """Decode the orientation of sensor_msgs/Imu, which the estimator has no use for."""

    def __init__(self) -> None:
        super().__init__(37)

    def decode(self, data: bytes) -> OrientationReading | None:
        """Return what the message says, or None if it is not plain little-endian CDR."""
        if not self._find(data):
            return None
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        values = np.frombuffer(data, FLOAT, 13, self._start)
        quaternion, covariance = values[:4], values[4:]
        absent = covariance[0] == -1.0 or not quaternion.any()
        return OrientationReading(
            second * NANOSECONDS + nanosecond, absent_if(absent, quaternion), covariance[::4]
        )
