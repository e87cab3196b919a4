# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Order, gaps and counters of a stream of stamped messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from inertial_estimation.sample import Array

MAX_QUEUE = 1024
"""Messages that wait for a joint state; enough for one second at 1 kHz."""


class FrozenInterval(NamedTuple):
    """Messages with the same bits for longer than a live sensor would send them."""

    first_ns: int
    """Stamp of the first of them, which was true [ns]."""
    repeated_ns: int
    """Stamp of the second, which may not have been [ns]."""
    last_ns: int
    """Stamp of the last one so far [ns]."""


@dataclass(frozen=True)
class StreamStatistics:
    """Counters of one stream; stamps and intervals include its ``time_offset``."""

    received: int
    """Messages with a usable stamp."""
    used: int
    """Samples that its values entered, together with the derivatives that are filtered."""
    refused: int
    """Messages whose stamp was zero, repeated or earlier than the one before."""
    dropped: int
    """Messages lost because joint states stayed away."""
    repeated: int
    """Messages with the bits of the one before."""
    invalid: int
    """Samples that its newest values could not enter because of NaN or infinity."""
    first_stamp_ns: int
    """Stamp of the first message since the last reset, 0 before it [ns]."""
    last_stamp_ns: int
    """Stamp of the newest message, 0 before it [ns]."""
    longest_gap: float
    """Longest time between two stamps [s]."""
    age: float
    """How old the values were in the last sample; NaN before the first use [s]."""
    rate: float
    """Mean rate of the stamps since the last reset; NaN before the second message [Hz]."""
    frozen: int = 0
    """Intervals in which the values stood still, the open one included."""
    frozen_intervals: tuple[FrozenInterval, ...] = ()
    """The last of them."""
    restarts: int = 0
    """How often its stamps went back and it restarted."""
    unfiltered: int = 0
    """Messages wanted for a sample whose derivatives were not there: the window was not filled."""
    filter_lack: str = ''
    """Samples that the filter lacks now; empty if it is ready, or there is none."""


@dataclass(frozen=True)
class AssemblerStatistics:
    """Counters of all streams, for diagnostics and reports."""

    samples: int
    """Samples that were made."""
    resets: int
    """How often time was set back."""
    malformed: int
    """Joint states with another number of positions than names, or without a stamp."""
    ignored_joints: Mapping[str, int]
    """Joints that are not estimated, or assumed, and the layouts that named them."""
    joints: Mapping[str, StreamStatistics]
    """For each part of the joint states, named by topic index and joints."""
    fts: Mapping[str, StreamStatistics]
    """For each FT sensor."""
    imus: Mapping[str, StreamStatistics]
    """For each IMU."""
    temperatures: Mapping[str, StreamStatistics] = field(default_factory=dict)
    """For each FT sensor whose temperature is measured."""


class StreamRates(NamedTuple):
    """Mean rate of the stamps of each stream since the last reset; NaN where none is known."""

    joints: Array
    """Of the joint states that report each joint, shape (n_joints,) [Hz]."""
    imus: Array
    """Shape (n_imus,) [Hz]."""
    fts: Array
    """Shape (n_fts,) [Hz]."""


class Stream:
    """Order and counters of the messages of one stream."""

    __slots__ = (
        '_counted',
        'age_ns',
        'dropped',
        'first_ns',
        'invalid',
        'last_ns',
        'longest_gap_ns',
        'name',
        'received',
        'refused',
        'repeated',
        'restarts',
        'unfiltered',
        'used',
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.received = self.used = self.refused = self.dropped = 0
        self.repeated = self.invalid = self.restarts = self.unfiltered = 0
        self.longest_gap_ns = 0
        self.age_ns: int | None = None
        self.first_ns = self.last_ns = self._counted = 0

    def restart(self) -> None:
        """Forget the stamps, as at a time jump; the counters go on."""
        self.first_ns = self.last_ns = self._counted = 0

    def note(self, stamp_ns: int) -> None:
        """Count a message whose stamp was found to be later than the last."""
        if not self.last_ns:
            self.first_ns = stamp_ns
        elif stamp_ns - self.last_ns > self.longest_gap_ns:
            self.longest_gap_ns = stamp_ns - self.last_ns
        self.last_ns = stamp_ns
        self.received += 1
        self._counted += 1

    @property
    def rate(self) -> float:
        """Mean rate of the stamps since the last reset; NaN before the second message [Hz]."""
        span = 1e-9 * (self.last_ns - self.first_ns)
        return (self._counted - 1) / span if span > 0.0 else float('nan')

    def statistics(self) -> StreamStatistics:
        """Return the counters as they are now."""
        return StreamStatistics(
            received=self.received,
            used=self.used,
            refused=self.refused,
            dropped=self.dropped,
            repeated=self.repeated,
            invalid=self.invalid,
            first_stamp_ns=self.first_ns,
            last_stamp_ns=self.last_ns,
            longest_gap=1e-9 * self.longest_gap_ns,
            age=float('nan') if self.age_ns is None else 1e-9 * self.age_ns,
            rate=self.rate,
            restarts=self.restarts,
            unfiltered=self.unfiltered,
        )
