# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Encoders: from numbers to the bytes of messages, laid out once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.signals.cdr import (
    COUNT,
    ENCAPSULATION,
    FLOAT,
    NANOSECONDS,
    STAMP,
    STAMP_AT,
    first_float_after,
)

Array = NDArray[np.float64]


class _NamedRowsEncoder:
    """
    A header, names, two empty sequences, and one with a row of float64 for each name.

    JointState (position, velocity, effort) and MultiDOFJointState (transforms, twist, wrench) have
    this layout in common.
    """

    def __init__(self, names: Sequence[str], width: int, frame_id: str) -> None:
        body = ENCAPSULATION + STAMP.pack(0, 0)
        body = _append_string(body, frame_id)
        body = _append_count(body, len(names))
        for name in names:
            body = _append_string(body, name)
        for count in (0, 0, len(names)):
            body = _append_count(body, count)
        size = width * len(names)
        start = first_float_after(len(body)) if size else len(body)
        self._buffer = bytearray(start + 8 * size)
        self._buffer[: len(body)] = body
        self._rows = np.frombuffer(self._buffer, FLOAT, size, start).reshape(-1, width)
        self._shape = (len(names), width) if width > 1 else (len(names),)

    def encode(self, stamp_ns: int, rows: Array) -> bytes:
        """Return the serialized message with this stamp and these numbers; rows (n,)."""
        if rows.shape != self._shape:
            raise ShapeError('rows', self._shape, rows.shape)
        STAMP.pack_into(self._buffer, STAMP_AT, *divmod(stamp_ns, NANOSECONDS))
        self._rows[:] = rows.reshape(self._rows.shape)
        return bytes(self._buffer)


class JointEffortEncoder(_NamedRowsEncoder):
    """Encode sensor_msgs/JointState with efforts only, shape (n,) [Nm or N]."""

    def __init__(self, names: Sequence[str], frame_id: str = '') -> None:
        super().__init__(names, 1, frame_id)


class WrenchesEncoder(_NamedRowsEncoder):
    """Encode sensor_msgs/MultiDOFJointState with wrenches only, shape (n, 6) [N, Nm]."""

    def __init__(self, names: Sequence[str], frame_id: str = '') -> None:
        super().__init__(names, 6, frame_id)


class WrenchEncoder:
    """Encode geometry_msgs/WrenchStamped."""

    def __init__(self, frame_id: str) -> None:
        body = _append_string(ENCAPSULATION + STAMP.pack(0, 0), frame_id)
        start = first_float_after(len(body))
        self._buffer = bytearray(start + 6 * 8)
        self._buffer[: len(body)] = body
        self._wrench = np.frombuffer(self._buffer, FLOAT, 6, start)

    def encode(self, stamp_ns: int, wrench: Array) -> bytes:
        """
        Return the serialized message with this stamp and wrench.

        wrench (6,) [force; torque].
        """
        if wrench.shape != (6,):
            raise ShapeError('wrench', (6,), wrench.shape)
        STAMP.pack_into(self._buffer, STAMP_AT, *divmod(stamp_ns, NANOSECONDS))
        self._wrench[:] = wrench
        return bytes(self._buffer)


def _append_count(body: bytes, count: int) -> bytes:
    """Return the bytes with padding and a count behind them."""
    return body + bytes(-len(body) % 4) + COUNT.pack(count)


def _append_string(body: bytes, text: str) -> bytes:
    """Return the bytes with a string behind them."""
    encoded = text.encode() + b'\x00'
    return _append_count(body, len(encoded)) + encoded


def topic_names(names: Iterable[str]) -> list[str]:
    """Return names that may stand in a topic, different ones for different names."""
    safe: list[str] = []
    for name in names:
        token = re.sub(r'[^A-Za-z0-9_]', '_', name)
        if not token or token[0].isdigit():
            token = '_' + token
        candidate, count = token, 2
        while candidate in safe:
            candidate, count = f'{token}_{count}', count + 1
        safe.append(candidate)
    return safe
