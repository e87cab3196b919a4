# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Read and write ROS 2 bags (mcap and sqlite3) without ROS, whole or one topic of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.signals.router import Source

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.typesys.store import Typestore

BAG_VERSION: Final = 8
"""For Humble and later."""
PIECE = 40_000
"""Messages that are read and decoded at once; some seconds of a robot, some megabytes."""


class BagTopic(NamedTuple):
    """Type and number of the messages of a topic."""

    type: str
    n_messages: int


class BagMessage(NamedTuple):
    """One serialized message of a bag."""

    topic: str
    recorded_ns: int
    data: bytes


class BagReader(AbstractContextManager['BagReader']):
    """Reads a bag; a context manager."""

    def __init__(self, path: str | Path) -> None:
        from rosbags.rosbag2 import Reader

        self.path = Path(path)
        if not self.path.exists():
            raise LogError(f"there is no bag '{self.path}'")
        try:
            self._reader = Reader(self.path)
            self._reader.open()
            self.topics: Mapping[str, BagTopic] = {
                topic: BagTopic(info.msgtype or 'several types', info.msgcount)
                for topic, info in self._reader.topics.items()
            }
        except Exception as error:
            # Damage shows as whatever the parts of rosbags happen to raise.
            what = f'{type(error).__name__} {error}'.strip()
            raise LogError(f"'{self.path}' cannot be read as a ROS 2 bag: {what}") from error

    def __exit__(self, *error: object) -> None:
        """Close the bag."""
        self._reader.close()

    def require(self, topic: str, type_: str) -> BagTopic:
        """Return type and number of messages of a topic; raise if it lacks or differs."""
        if topic not in self.topics:
            known = [name for name, found in self.topics.items() if found.type == type_]
            raise NameNotFound(f'topic of {type_} in the bag', topic, known)
        found = self.topics[topic]
        if found.type != type_:
            raise LogError(f"topic '{topic}' of the bag holds {found.type}, expected {type_}")
        return found

    def messages(self, topics: Iterable[str]) -> Iterator[BagMessage]:
        """Yield the messages of some topics in the order of their recording."""
        for connection, recorded_ns, data in self._raw(topics):
            yield BagMessage(connection.topic, recorded_ns, bytes(data))

    def pieces(self, topics: Iterable[str]) -> Iterator[dict[str, tuple[list[bytes], list[int]]]]:
        """Yield messages by topic, with their places in the order of recording, in pieces."""
        piece: dict[str, tuple[list[bytes], list[int]]] = {}
        for place, (connection, _, data) in enumerate(self._raw(topics)):
            if (found := piece.get(connection.topic)) is None:
                found = piece[connection.topic] = [], []
            found[0].append(data)
            found[1].append(place)
            if place % PIECE == PIECE - 1:
                yield piece
                piece = {}
        yield piece

    def _raw(self, topics: Iterable[str]) -> Iterator[tuple[Connection, int, bytes]]:
        wanted = set(topics)
        connections = [c for c in self._reader.connections if c.topic in wanted]
        if not connections:
            return
        try:
            yield from self._reader.messages(connections)
        except Exception as error:
            what = f'{type(error).__name__} {error}'.strip()
            raise LogError(f"'{self.path}' is damaged: {what}") from error


class BagWriter(AbstractContextManager['BagWriter']):
    """Writes a new bag (mcap); a context manager."""

    def __init__(self, path: str | Path) -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer, WriterError

        self.path = Path(path)
        try:
            self._writer = Writer(
                self.path, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP
            )
            self._writer.open()
        except (WriterError, OSError) as error:
            raise LogError(f"bag '{self.path}' cannot be written: {error}") from error
        self._store = standard_types()
        self._connections: dict[str, Connection] = {}

    def __exit__(self, *error: object) -> None:
        """Finish the bag."""
        self._writer.close()

    def write(self, topic: str, type_: str, stamp_ns: int, data: bytes) -> None:
        """Write a message."""
        connection = self._connections.get(topic)
        if connection is None:
            connection = self._writer.add_connection(topic, type_, typestore=self._store)
            self._connections[topic] = connection
        self._writer.write(connection, stamp_ns, data)


@cache
def standard_types() -> Typestore:
    """Return the message types of ROS 2."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_HUMBLE)


def deserialize(data: bytes, type_: str) -> Any:
    """Return a message of any encoding."""
    from rosbags.serde import SerdeError

    try:
        return standard_types().deserialize_cdr(data, type_)
    except (SerdeError, ValueError, IndexError) as error:
        raise LogError(f'a message of {len(data)} bytes is no {type_}: {error}') from error


def resolve(topic: str) -> str:
    """Return the full name that a topic has without namespace and remapping."""
    return topic if topic.startswith('/') else f'/{topic}'


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
            if self.stamps_ns[last] - self.stamps_ns[first] > after / 1e-9:
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
        ages = np.array([instants - stamps[before], stamps[after] - instants]) * 1e-9
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


def runs(values: Array) -> tuple[Indices, Indices]:
    """Return the first and the last sample of each run of equal values (n, k)."""
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    return np.append(0, ends[:-1] + 1), ends
