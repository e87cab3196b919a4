# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Single topics of a bag, with their own stamps."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask, Stamps
from inertial_estimation.errors import LogError
from inertial_estimation.logs.bag import BagReader, deserialize, resolve
from inertial_estimation.logs.frozen_readings import runs
from inertial_estimation.signals.router import Source

NANOSECONDS = 1e-9


class Stream(NamedTuple):
    """Messages of one topic."""

    topic: str
    stamps_ns: Stamps
    """Of the headers, increasing, shape (n,) [ns]."""
    values: Array
    """Wrench; acceleration and angular velocity; or temperature and variance, shape (n, m)."""

    def without_frozen(self, after: float) -> Stream:
        """Return NaN where it repeats itself for longer than a time [s]; 0: never."""
        values = self.values.copy()
        for first, last in zip(*runs(values), strict=True) if after else ():
            if self.stamps_ns[last] - self.stamps_ns[first] > after / NANOSECONDS:
                values[first + 1 : last + 1] = np.nan
        return self._replace(values=values)

    def at(self, instants: Stamps, max_age: float) -> Array:
        """
        Interpolate between the messages before and after each instant; NaN: one is too far away.

        instants (k,) [ns]; max_age [s]; returns (k, m).
        """
        stamps, values = self.stamps_ns, self.values
        after = np.minimum(np.searchsorted(stamps, instants), len(stamps) - 1)
        before = np.where(stamps[after] == instants, after, np.maximum(after - 1, 0))
        ages = np.array([instants - stamps[before], stamps[after] - instants]) * NANOSECONDS
        near: Mask = np.logical_and.reduce((ages >= 0.0) & (ages <= max_age), axis=0)
        share = ages[0] / np.where(after > before, ages.sum(axis=0), 1.0)
        change = share[:, None] * (values[after] - values[before])
        return np.where(near[:, None], values[before] + change, np.nan)


def read_stream(
    reader: BagReader, topic: str, kind: str, frames: Collection[str] | None = None
) -> Stream:
    """Return the messages of a topic, of equal stamps the first; kind of `READINGS`."""
    topic = resolve(topic)
    source = Source(kind, topic, topic, deserialize, frames=frames, strict=True)
    reader.require(topic, source.type)
    readings = [source.read(message.data) for message in reader.messages([topic])]
    if not readings:
        raise LogError(f"topic '{topic}' of the bag has no message")
    stamps = np.array([one.stamp_ns for one in readings], dtype=np.int64)
    steps = np.append(1, np.diff(stamps))
    if (steps < 0).any():
        back = int(np.argmax(steps < 0)) + 1
        raise LogError(f"topic '{topic}': stamps go back at message {back} of {len(stamps)}")
    if kind == 'imu':
        values = [[*one.linear_acceleration, *one.angular_velocity] for one in readings]
    else:
        values = [one.values for one in readings]
    return Stream(topic, stamps[steps > 0], np.array(values)[steps > 0])
