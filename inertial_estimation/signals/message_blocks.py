# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The messages of a recorded topic as arrays, by layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Stamps
from inertial_estimation.signals.cdr import END_NS, FLOAT, NANOSECONDS, STAMP_AT
from inertial_estimation.signals.messages import MAX_LAYOUTS, Decoder
from inertial_estimation.signals.router import Source


class Messages(NamedTuple):
    """Serialized messages in one array of bytes."""

    data: NDArray[np.uint8]
    starts: Indices
    sizes: Indices

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> Messages:
        """Return messages behind one another."""
        sizes = np.fromiter(map(len, messages), np.intp, len(messages))
        data = np.frombuffer(b''.join(messages), np.uint8)
        return cls(data, np.cumsum(sizes) - sizes, sizes)

    def one(self, row: int) -> bytes:
        """Return one message."""
        start = self.starts[row]
        return self.data[start : start + self.sizes[row]].tobytes()


class Block(NamedTuple):
    """Messages of one layout."""

    rows: Indices
    """Their rows among those that were decoded, increasing."""
    stamps: Stamps
    """Shape (n,) [ns]."""
    texts: list[Any]
    """``frame_id``, and names if the message has them."""
    arrays: list[Array]
    """Of each sequence (n, its length); fields that follow one another are one."""


def read_blocks(source: Source, messages: Messages) -> list[Block] | None:
    """Return the readings of many messages by layout; None: some of them need `Source.read`."""
    blocks = _decode(source.decoder, messages)
    for block in blocks or ():
        if not ((block.stamps > 0) & (block.stamps < END_NS)).all():
            return None
        source.read(messages.one(block.rows[0]))
    return blocks


def _decode(decoder: Decoder, messages: Messages) -> list[Block] | None:
    """Return many messages by layout; None: some are not plain, or have ever new layouts."""
    blocks: list[Block] = []
    left = np.arange(len(messages.sizes))
    while len(left):
        first = messages.one(left[0])
        layout = None if len(blocks) == MAX_LAYOUTS else decoder.learn(first)
        if layout is None:
            return None
        alike = left[messages.sizes[left] == len(first)]
        data = sliding_window_view(messages.data, len(first))[messages.starts[alike]]
        mask, expected = (
            np.frombuffer(number.to_bytes(layout.size, 'little'), np.uint8)
            for number in (layout.mask, layout.expected)
        )
        fits = ((data[:, : layout.size] & mask) == expected).all(axis=1)
        if not fits.all():
            alike, data = alike[fits], data[fits]
        second, nanosecond = (
            np.ascontiguousarray(data[:, at : at + 4]).view(kind)[:, 0].astype(np.int64)
            for at, kind in ((STAMP_AT, '<i4'), (STAMP_AT + 4, '<u4'))
        )
        arrays = [
            np.ascontiguousarray(data[:, start : start + 8 * count]).view(FLOAT)
            if count
            else np.empty((len(alike), 0))
            for count, start in layout.arrays
        ]
        stamps = second * NANOSECONDS + nanosecond
        blocks.append(Block(alike, stamps, layout.texts, arrays))
        left = np.setdiff1d(left, alike, assume_unique=True)
    return blocks
