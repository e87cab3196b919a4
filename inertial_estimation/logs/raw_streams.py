# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Single topics of a bag as arrays, each with its own stamps and nothing resampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader, MessageReader
from inertial_estimation.signals.messages import IMU, TEMPERATURE, WRENCH

Array = NDArray[np.float64]
Stamps = NDArray[np.int64]

NANOSECONDS = 1_000_000_000
MAX_EXTRAPOLATION = 10.0
"""Time before the first and after the last temperature in which it is known [s]."""
KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    'ft': (WRENCH, lambda reading: reading.values),
    'imu': (IMU, lambda one: np.concatenate([one.linear_acceleration, one.angular_velocity])),
    'temperature': (TEMPERATURE, lambda reading: reading.values[:1]),
}
"""Message types, and what a stream keeps of their readings."""
FROZEN_AFTER = 0.05
"""Bit-equal values for so long are those of a frozen sensor [s]."""


class RawStream(NamedTuple):
    """One topic."""

    stamps_ns: Stamps
    """Of the headers, in the order of recording, shape (n,) [ns]."""
    values: Array
    """One row a message."""
    frame_ids: frozenset[str]
    """That the messages name."""

    def times(self, origin_ns: int) -> Array:
        """
        Return the stamps as seconds.

        Returns (n,) [s].
        """
        found: Array = (self.stamps_ns - origin_ns) / NANOSECONDS
        return found


def read_topic(bag: str | Path, topic: str, kind: str) -> RawStream:
    """Return the readings of a topic of an 'ft', an 'imu' or a 'temperature'."""
    type_, values_of = KINDS[kind]
    decoder = MessageReader(kind)
    with BagReader(bag) as reader:
        reader.require(topic, type_)
        readings = [decoder.read(message.data) for message in reader.messages((topic,))]
    if not readings:
        raise LogError(f"topic '{topic}' of the bag has no message")
    stream = RawStream(
        np.array([one.stamp_ns for one in readings], dtype=np.int64),
        np.array([values_of(one) for one in readings]),
        frozenset(one.frame_id for one in readings),
    )
    return stream if kind == 'temperature' else _without_frozen(stream)


def _without_frozen(stream: RawStream) -> RawStream:
    """Return a stream with NaN where it repeats itself for longer than a live sensor would."""
    same = np.zeros(len(stream.values), dtype=bool)
    same[1:] = (stream.values[1:] == stream.values[:-1]).all(axis=1)
    begins = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
    values = stream.values.copy()
    for first, end in begins.reshape(-1, 2):
        if stream.stamps_ns[end - 1] - stream.stamps_ns[first - 1] > FROZEN_AFTER * NANOSECONDS:
            values[first:end] = np.nan
    return stream._replace(values=values)


def read_temperatures(
    bag: str | Path, topics: Mapping[str, str], names: Sequence[str], stamps_ns: NDArray[np.int64]
) -> Array:
    """Return temperatures of FT sensors at stamps (n,), (n, n_fts) [degrees Celsius]."""
    found = np.full((len(stamps_ns), len(names)), np.nan)
    for name, topic in topics.items():
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'topics' names '{name}'")
        stream = read_topic(bag, topic, 'temperature')
        known = np.isfinite(stream.values[:, 0])
        origin = int(stream.stamps_ns[0])
        times, values = stream.times(origin)[known], stream.values[known, 0]
        if not len(times):
            raise LogError(f"topic '{topic}' of the bag holds no finite temperature")
        order = np.argsort(times, kind='stable')
        at = (stamps_ns - origin) / 1e9
        near = (at > times.min() - MAX_EXTRAPOLATION) & (at < times.max() + MAX_EXTRAPOLATION)
        found[near, names.index(name)] = np.interp(at[near], times[order], values[order])
    return found
