# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Counters and rates of the streams, for diagnostics and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

from inertial_estimation.arrays import Array


class FrozenInterval(NamedTuple):
    """Stamps of bit-equal messages over more time than a live sensor sends them [ns]."""

    first_ns: int
    repeated_ns: int
    last_ns: int


@dataclass
class StreamStatistics:
    """Counters of one stream; stamps and intervals include its ``time_offset``."""

    received: int = 0
    """Messages with a usable stamp."""
    used: int = 0
    """Samples that its values entered, together with the derivatives that are filtered."""
    refused: int = 0
    """Messages whose stamp was zero, repeated or earlier than the one before."""
    dropped: int = 0
    """Messages lost because joint states stayed away."""
    repeated: int = 0
    """Messages with the bits of the one before."""
    invalid: int = 0
    """Samples that its newest values could not enter because of NaN or infinity."""
    restarts: int = 0
    """Number of restarts after stamps that went back."""
    unfiltered: int = 0
    """Messages needed for a sample while the window of the filter was not filled."""
    frozen_intervals: tuple[FrozenInterval, ...] = ()
    """Intervals of bit-equal values, the open one included."""
    last_stamp_ns: int = 0
    """Stamp of the newest message, 0 before it [ns]."""
    longest_gap: float = 0.0
    """Longest time between two stamps [s]."""
    age: float = nan
    """Age of the values in the last sample; NaN before the first use [s]."""
    rate: float = nan
    """Mean rate of the stamps since the last reset; NaN before the second message [Hz]."""
    filter_lack: str = ''
    """Samples that the filter lacks now; empty if it is ready or absent."""


@dataclass(frozen=True)
class AssemblerStatistics:
    """Counters of all streams, for diagnostics and reports."""

    samples: int
    """Samples that were made."""
    resets: int
    """Number of backward time jumps."""
    ignored_joints: tuple[str, ...]
    """Joints of messages that are not estimated, or assumed."""
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
    """Rate of the joint states of each joint, shape (n_joints,) [Hz]."""
    imus: Array
    """Shape (n_imus,) [Hz]."""
    fts: Array
    """Shape (n_fts,) [Hz]."""
