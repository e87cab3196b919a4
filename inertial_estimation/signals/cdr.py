# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Layout of plain little-endian CDR."""

from __future__ import annotations

from struct import Struct

ENCAPSULATION = b'\x00\x01\x00\x00'
NANOSECONDS = 1_000_000_000
STAMP = Struct('<iI')
STAMP_AT = 4
FRAME_AT = 12
COUNT = Struct('<I')
FLOAT = '<f8'


def stamp_of(data: bytes) -> int:
    """Return the stamp of a message with a header, zero if it is no plain bytes of one [ns]."""
    if len(data) < FRAME_AT or data[:4] != ENCAPSULATION:
        return 0
    second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
    return int(second * NANOSECONDS + nanosecond)


def first_float_after(position: int) -> int:
    """Return where the next float64 starts: a multiple of 8 behind the encapsulation."""
    return position + (4 - position) % 8


class LayoutReader:
    """Walks through a message and notes which of its bytes belong to the layout."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = FRAME_AT
        self.fixed = bytearray(len(data))
        self.fixed[:4] = b'\xff' * 4

    def count(self) -> int:
        """Read a length or a number of elements."""
        start = self.position + -self.position % 4
        self.position = start + 4
        self.fixed[start : start + 4] = b'\xff' * 4
        return int(COUNT.unpack_from(self.data, start)[0])

    def string(self) -> str:
        """Read a string."""
        size = self.count()
        start, end = self.position, self.position + size
        if not size or end > len(self.data) or self.data[end - 1]:
            raise ValueError('a string does not end where it should')
        self.fixed[start:end] = b'\xff' * size
        self.position = end
        return self.data[start : end - 1].decode()

    def strings(self) -> tuple[str, ...]:
        """Read a sequence of strings."""
        # Each takes five bytes at least: a damaged count must not keep the loop busy.
        count = self.count()
        if count * 5 > len(self.data):
            raise ValueError('more strings than bytes')
        return tuple(self.string() for _ in range(count))

    def floats(self) -> tuple[int, int]:
        """Skip a sequence of float64; return their number and where they start."""
        count = self.count()
        if count:
            self.position = start = first_float_after(self.position)
            self.position += 8 * count
            return count, start
        return 0, 0
