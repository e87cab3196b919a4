# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Serialization of DiagnosticArray and MarkerArray in plain little-endian CDR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack

from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.markers import Marker
from inertial_estimation.signals.cdr import ENCAPSULATION, NANOSECONDS

DIAGNOSTIC_ARRAY = 'diagnostic_msgs/msg/DiagnosticArray'
MARKER_ARRAY = 'visualization_msgs/msg/MarkerArray'


class MessageWriter:
    """Append fields to the bytes of a message."""

    def __init__(self) -> None:
        self.data = bytearray(ENCAPSULATION)

    def numbers(self, layout: str, size: int, *values: float) -> None:
        """Append numbers of a `struct` layout, each aligned to its size."""
        self.data += bytes((4 - len(self.data)) % size)
        self.data += pack(f'<{len(values)}{layout}', *values)

    def count(self, number: int) -> None:
        """Append the length of a sequence."""
        self.numbers('I', 4, number)

    def text(self, text: str) -> None:
        """Append a string; what UTF-8 or a C string cannot hold is replaced."""
        data = text.replace('\0', '?').encode(errors='replace') + b'\0'
        self.count(len(data))
        self.data += data

    def time(self, stamp_ns: int) -> None:
        """Append a time or a duration."""
        seconds, nanoseconds = divmod(stamp_ns, NANOSECONDS)
        self.numbers('i', 4, seconds)
        self.numbers('I', 4, nanoseconds)


def diagnostic_array(stamp_ns: int, node: str, robot: str, statuses: Iterable[Status]) -> bytes:
    """Return the serialized message of some statuses."""
    every = list(statuses)
    writer = MessageWriter()
    writer.time(stamp_ns)
    writer.text('')
    writer.count(len(every))
    for status in every:
        writer.data.append(status.level)
        writer.text(f'{node}: {status.name}')
        writer.text(status.message)
        writer.text(robot)
        writer.count(len(status.values))
        for key, value in status.values.items():
            writer.text(key)
            writer.text(str(value))
    return bytes(writer.data)


def marker_array(stamp_ns: int, markers: Sequence[Marker]) -> bytes:
    """Return the serialized message of some markers."""
    writer = MessageWriter()
    writer.count(len(markers))
    for marker in markers:
        writer.time(stamp_ns)
        writer.text(marker.frame)
        writer.text(marker.namespace)
        writer.numbers('i', 4, marker.index, marker.shape, marker.action)
        writer.numbers('d', 8, *marker.position, *marker.orientation, *marker.scale)
        writer.numbers('f', 4, *marker.colour)
        writer.time(marker.lifetime_ns)
        writer.data.append(marker.frame_locked)
        writer.count(len(marker.points))
        for point in marker.points:
            writer.numbers('d', 8, *point)
        # No colours of points, and no texture: resource, image, coordinates.
        writer.count(0)
        writer.text('')
        writer.time(0)
        writer.text('')
        writer.text('')
        writer.count(0)
        writer.count(0)
        writer.text(marker.text)
        # No mesh: resource, file, materials.
        writer.text('')
        writer.text('')
        writer.count(0)
        writer.data.append(0)
    return bytes(writer.data)
