# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Read and write ROS 2 bags (mcap and sqlite3) without ROS, whole or one topic of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.signals.message_blocks import Messages
from inertial_estimation.signals.router import Source

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.rosbag2.storage_mcap import ChunkInfo, McapReader
    from rosbags.typesys.store import Typestore

BAG_VERSION: Final = 8
"""For Humble and later."""
PIECE = 40_000
"""Messages that are read and decoded at once; some seconds of a robot, some megabytes."""
MCAP_MESSAGE: Final = 5
MCAP_MAGIC: Final = b'\x89MCAP0\r\n'
MCAP_HEAD = np.dtype([
    ('code', 'u1'), ('length', '<u8'), ('channel', '<u2'), ('sequence', '<u4'),
    ('recorded', '<u8'), ('published', '<u8'),
])  # fmt: skip
"""Of a message in a chunk, which follows; the length is that of what follows it."""
T = TypeVar('T')
Heads = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Bytes; of messages stamp of recording [ns], number of the topic, start and size, (n, 4)."""


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
            raise self._damage(error) from error

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
        wanted = set(topics)
        if connections := [one for one in self._reader.connections if one.topic in wanted]:
            for one, recorded_ns, data in self._checked([self._reader.messages(connections)]):
                yield BagMessage(one.topic, recorded_ns, bytes(data))

    def pieces(self, topics: Iterable[str]) -> Iterator[dict[str, tuple[Messages, Indices]]]:
        """Yield messages by topic, with their places in the order of recording, in pieces."""
        wanted, n_messages = list(topics), 0
        for data, heads in self._indexed(wanted) or self._listed(wanted):
            places = np.arange(n_messages, n_messages := n_messages + len(heads))
            yield {
                topic: (Messages(data, *heads[rows, 2:].T), places[rows])
                for k, topic in enumerate(wanted)
                if len(rows := np.flatnonzero(heads[:, 1] == k))
            }

    def _listed(self, topics: Sequence[str]) -> Iterator[Heads]:
        """Yield pieces of any bag."""
        numbers = {topic: k for k, topic in enumerate(topics)}
        messages = self.messages(topics)
        while piece := list(islice(messages, PIECE)):
            data, starts, sizes = Messages.of([one.data for one in piece])
            found = [(one.recorded_ns, numbers[one.topic]) for one in piece]
            yield data, np.column_stack([np.array(found), starts, sizes])

    def _indexed(self, topics: Sequence[str]) -> Iterator[Heads] | None:
        """Return pieces of a bag of MCAP files with indices; None: rosbags has to read it."""
        try:
            from rosbags.rosbag2.storage_mcap import McapReader

            storage = self._reader.storage
            files = list(getattr(storage, 'storages', [storage]))
            for file in files:
                n_indexed = sum(sum(one.channel_count.values()) for one in file.chunks)
                if (
                    not isinstance(file, McapReader)
                    or file.statistics is None
                    or n_indexed != file.statistics.message_count
                    or storage.metadata.compression_mode == 'message'
                ):
                    return None
        except (ImportError, AttributeError):
            # Another storage, or version of rosbags.
            return None
        return self._checked(_due(file, topics) for file in files)

    def _checked(self, parts: Iterable[Iterable[T]]) -> Iterator[T]:
        """Yield all of some parts; raise if one of them is damaged."""
        try:
            for part in parts:
                yield from part
        except Exception as error:
            raise self._damage(error) from error

    def _damage(self, error: Exception) -> LogError:
        """Return the error of a damaged bag: parts of rosbags raise whatever they meet."""
        from rosbags.rosbag2 import ReaderError

        what = (
            str(error).rstrip('.') if isinstance(error, ReaderError | OSError) else 'it is damaged'
        )
        for file in [self.path] if self.path.is_file() else sorted(self.path.glob('*.mcap')):
            if file.suffix == '.mcap' and file.stat().st_size:
                data = np.memmap(file, mode='r')
                if not bytes(data[:8]) == bytes(data[-8:]) == MCAP_MAGIC:
                    what = f"'{file.name}' is cut off, or no MCAP file"
        return LogError(f"'{self.path}' is no complete ROS 2 bag: {what}")


def _due(file: McapReader, topics: Sequence[str]) -> Iterator[Heads]:
    """Yield the messages of an MCAP file in the order of their recording, in pieces."""
    numbers = np.full(1 << 16, -1)
    for one in file.connections:
        if one.topic in topics:
            numbers[one.id] = topics.index(one.topic)
    chunks = [one for one in file.chunks if (numbers[[*one.channel_count]] >= 0).any()]
    chunks.sort(key=lambda one: one.message_start_time)
    limits = [*(one.message_start_time for one in chunks[1:]), np.iinfo(np.int64).max]
    held: list[Heads] = []
    for chunk, limit_ns in zip(chunks, limits, strict=False):
        held.append(_read_chunk(file, chunk, numbers))
        if sum(len(heads) for _, heads in held) < PIECE and chunk is not chunks[-1]:
            continue
        begins = np.cumsum([0, *(len(data) for data, _ in held)]).tolist()
        data = np.concatenate([one for one, _ in held])
        heads = np.concatenate([one for _, one in held])
        heads[:, 2] += np.repeat(begins[:-1], [len(one) for _, one in held])
        heads = heads[np.lexsort((heads[:, 2], heads[:, 0]))]
        n_due = int(np.searchsorted(heads[:, 0], limit_ns))
        for start in range(0, n_due, PIECE):
            yield data, heads[start : min(start + PIECE, n_due)]
        # Chunks overlap in time: what is earlier may still come.
        cut = heads[n_due:, 2].min(initial=len(data))
        held = [(data[cut:], heads[n_due:] - np.array([0, 0, cut, 0]))]


def _read_chunk(file: McapReader, chunk: ChunkInfo, numbers: Indices) -> Heads:
    """Return the bytes of a chunk, and its messages whose channels have a number."""
    from rosbags.rosbag2.storage_mcap import decompress

    stream: Any = file.bio
    stream.seek(chunk.chunk_start_offset)
    record = stream.read(chunk.chunk_length + chunk.message_index_length)
    begin, crc = 49 + len(chunk.compression), int.from_bytes(record[33:37], 'little')
    packed, size = record[begin : begin + chunk.compressed_size], chunk.uncompressed_size
    data = np.frombuffer(decompress(packed, chunk.compression, size, crc), np.uint8)
    # An index is a code, two lengths and a channel of 15 bytes; then times and places.
    places = np.concatenate([
        np.frombuffer(record, '<u8', 2 * n, at - chunk.chunk_start_offset + 15)[1::2]
        for channel, at in chunk.message_index_offsets.items()
        if numbers[channel] >= 0 and (n := chunk.channel_count.get(channel, 0))
    ]).astype(np.intp)  # fmt: skip
    found = sliding_window_view(data, MCAP_HEAD.itemsize)[places].view(MCAP_HEAD)[:, 0]
    recorded, lengths = (found[name].astype(np.int64) for name in ('recorded', 'length'))
    begins, sizes = places + MCAP_HEAD.itemsize, lengths - (MCAP_HEAD.itemsize - 9)
    heads = np.column_stack([recorded, numbers[found['channel']], begins, sizes])
    is_message = (found['code'] == MCAP_MESSAGE) & (heads[:, 1:] >= 0).all(axis=1)
    if not (is_message & (begins + sizes <= size)).all():
        raise ValueError('an index of messages is wrong')
    return data, heads


class BagWriter(AbstractContextManager['BagWriter']):
    """Writes a new bag (mcap); a context manager."""

    def __init__(self, path: str | Path) -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer, WriterError

        self.path = Path(path)
        # An interruption of what takes long must not leave a bag.
        self._store = standard_types()
        try:
            self._writer = Writer(
                self.path, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP
            )
            self._writer.open()
        except (WriterError, OSError) as error:
            raise LogError(f"bag '{self.path}' cannot be written: {error}") from error
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
        """Interpolate at instants (k,) [ns], (k, m); NaN: no message within max_age [s] of it."""
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
