# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing of plain little-endian CDR, field by field."""

from __future__ import annotations

from struct import Struct, pack

ENCAPSULATION = b'\x00\x01\x00\x00'
NANOSECONDS = 1_000_000_000
END_NS = NANOSECONDS << 31
"""Stamp from which on seconds do not fit into a message [ns]."""
STAMP = Struct('<iI')
STAMP_AT = 4
FRAME_AT = 12
COUNT = Struct('<I')
FLOAT = '<f8'


class Reader:
    """Walks through a message behind its stamp, and notes the bytes of texts and counts."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, FRAME_AT
        self.fixed = bytearray(len(data))
        self.fixed[:4] = b'\xff' * 4

    def count(self) -> int:
        """Read a length or a number of elements."""
        start = self.position + -self.position % 4
        self.position = start + 4
        self.fixed[start : start + 4] = b'\xff' * 4
        return int(COUNT.unpack_from(self.data, start)[0])

    def text(self) -> str:
        """Read a string."""
        size = self.count()
        start, end = self.position, self.position + size
        if not size or end > len(self.data) or self.data[end - 1]:
            raise ValueError('a string does not end where it should')
        self.fixed[start:end] = b'\xff' * size
        self.position = end
        return self.data[start : end - 1].decode()

    def texts(self) -> tuple[str, ...]:
        """Read a sequence of strings."""
        # Each takes five bytes at least: a damaged count must not keep the loop busy.
        count = self.count()
        if count * 5 > len(self.data):
            raise ValueError('more strings than bytes')
        return tuple(self.text() for _ in range(count))

    def floats(self, count: int) -> tuple[int, int]:
        """Skip float64; return their number and position."""
        if not count:
            return 0, 0
        # A multiple of 8 behind the encapsulation.
        start = self.position + (4 - self.position) % 8
        self.position = start + 8 * count
        return count, start


class Writer:
    """Appends fields to the bytes of a message."""

    def __init__(self) -> None:
        self.data = bytearray(ENCAPSULATION)

    def numbers(self, layout: str, size: int, *values: float) -> None:
        """Append numbers of a `struct` layout, aligned to their size."""
        if values:
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

    def texts(self, texts: tuple[str, ...] | list[str]) -> None:
        """Append a sequence of strings."""
        self.count(len(texts))
        for text in texts:
            self.text(text)

    def time(self, stamp_ns: int) -> None:
        """Append a time or a duration."""
        seconds, nanoseconds = divmod(stamp_ns, NANOSECONDS)
        self.numbers('i', 4, seconds)
        self.numbers('I', 4, nanoseconds)
