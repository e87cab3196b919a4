# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From the bytes of messages to the sample assembler: topics, frames and stamps are checked.

A node hands over what it receives, a bag reader what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Problems
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.cdr import END_NS
from inertial_estimation.signals.messages import Decoder, JointReading
from inertial_estimation.signals.savitzky_golay import compiled
from inertial_estimation.signals.stream import MAX_QUEUE

CONTACTS = ('contacts', 'contact_poses')
"""Kinds of sources and topics of reported contacts: points, and poses with their normal."""
NOTHING = 'both covariances begin with -1: it measures nothing'
LACKING = {'accelerometer': 1, 'gyroscope': 2}
"""Triple that an IMU lacks, by what it measures."""

Deserialize = Callable[[bytes, str], Any]
"""Returns the object of a message, given its bytes and its type; slow, for any encoding."""
MAX_SIZE = 1 << 20
"""Of a message: thousands of joints; the names of more would be kept [bytes]."""


class Source:
    """A topic: decoder of its messages, and problems with them."""

    def __init__(
        self, kind: str, name: str, topic: str, deserialize: Deserialize, *,
        decoder: str = '', index: int = 0, frames: Collection[str] | None = None,
        time_offset: float = 0.0, strict: bool = False, now_ns: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.name, self.topic, self.index = kind, name, topic, index
        self.frames, self.offset_ns = frames, round(1e9 * time_offset)
        self.decoder = Decoder(decoder or kind)
        self.type, self._decode = self.decoder.type, self.decoder.decode
        self._deserialize, self._strict, self._now_ns = deserialize, strict, now_ns
        self.problems = Problems()
        self.fallbacks = 0
        """Messages that are not plain little-endian CDR."""
        self.skew: float | None = None
        """Age of a message as it came [s], measured for the next message while `skew_due`."""
        self.skew_due = True
        self.handle: Callable[[bytes], Sample | None] = self.read
        """Takes a message; set by the `Router`."""
        self.stream: Any = None
        """`SensorStream` that takes the readings, where it may do so in compiled code."""
        self.usual: tuple[Any, ...] | None = None
        """Layout of the last message for compiled code, which takes others of the same."""

    def hand_over(self, arrived: list[bytes]) -> None:
        """Handle messages that waited, and empty the list; compiled code takes usual ones."""
        newest = None
        if arrived and self.is_skew_due:
            # The others may have waited for long.
            self.skew_due, newest = False, arrived.pop()
        while arrived:
            usual = self.usual if self.stream is not None else None
            if usual is None or not compiled.take(self.stream, arrived, *usual):
                self._handle_one(arrived.pop(0))
        if newest is not None:
            self.skew_due = True
            self._handle_one(newest)

    def _handle_one(self, data: bytes) -> None:
        """Handle a message; compiled code may take others of its layout."""
        self.handle(data)
        layout = self.decoder.layouts.get(len(data))
        if compiled is None or self.stream is None or layout is None:
            return
        self.usual = None
        if self.frames is None or layout.texts[0] in self.frames:
            is_imu, lacks = self.kind == 'imu', LACKING.get(self.stream.measures, 0)
            (_, start), *_ = layout.arrays
            first, second = (start + 8 * k for k in ((13, 25) if is_imu else (0, 3)))
            self.usual = (
                len(data), layout.constant, layout.fixed, first, second, is_imu, lacks, MAX_QUEUE,
            )  # fmt: skip

    @property
    def is_skew_due(self) -> bool:
        """True if the skew of the next message is measured."""
        return self.skew_due and self._now_ns is not None

    def read(self, data: bytes) -> Any:
        """Return the reading of a message, or None if it is refused."""
        if len(data) > MAX_SIZE:
            self._refuse(f'a message is larger than {MAX_SIZE} bytes')
            return None
        reading = self._decode(data)
        if reading is None:
            try:
                reading = self.decoder.read(self._deserialize(data, self.type))
            except (RuntimeError, ValueError) as error:
                self._refuse(f'{len(data)} bytes are no {self.type}: {error}'[:200])
                return None
            self.fallbacks += 1
        if reading.stamp_ns <= 0:
            self.problems.note('header.stamp is zero')
        elif reading.stamp_ns >= END_NS:
            self._refuse('header.stamp has more nanoseconds than a second')
            return None
        if self.frames is not None and reading.frame_id not in self.frames:
            expected = ' or '.join(f"'{name}'" for name in sorted(self.frames)[:3])
            self._refuse(f"header.frame_id is '{reading.frame_id}', expected {expected}")
            return None
        if self._now_ns is not None and self.skew_due:
            # Simulated time is zero until its first message.
            now_ns = self._now_ns()
            if now_ns and reading.stamp_ns > 0:
                self.skew, self.skew_due = 1e-9 * (now_ns - reading.stamp_ns), False
        return reading

    def _refuse(self, problem: str) -> None:
        self.problems.note(problem)
        if self._strict:
            raise LogError(f"topic '{self.topic}': {problem}")


class Router:
    """
    Decode the message of a topic, check it, and hand its reading to the assembler.

    `on_contact` takes stamp [ns] and frame of a contact and its point (3,) [m], or its point and
    quaternion (7,). Joint topics are the last of `sources`, and the last of them makes samples.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        assembler: SampleAssembler,
        on_contact: Callable[[int, str, Array], None],
    ) -> None:
        self.sources, self._assembler, self._on_contact = tuple(sources), assembler, on_contact
        self.by_topic: dict[str, list[Source]] = {}
        for source in self.sources:
            handle = self._take_joints if source.kind == 'joints' else self._read_and_take
            source.handle = partial(handle, source)
            source.stream = assembler.stream(source.kind, source.index)
            self.by_topic.setdefault(source.topic, []).append(source)

    def handle(self, topic: str, data: bytes) -> Sample | None:
        """Take a message of one of the topics of `sources`; a joint state may make a sample."""
        sample = None
        for source in self.by_topic[topic]:
            sample = source.handle(data)
        return sample

    def _read_and_take(self, source: Source, data: bytes) -> Sample | None:
        reading = source.read(data)
        return None if reading is None else self.take(source, reading)

    def _take_joints(self, source: Source, data: bytes) -> Sample | None:
        """Read a joint state in compiled code if it is usual."""
        if source.usual is not None and not source.is_skew_due:
            part, *usual = source.usual
            block = np.empty((4, len(part.joint_rows)))
            if stamp_ns := compiled.read_joints(data, *usual, block):
                return self._assembler.push_block(source.index, stamp_ns, part, block)
        sample, source.usual = self._read_and_take(source, data), None
        layout = source.decoder.layouts.get(len(data))
        if compiled is None or layout is None or source.decoder.kind != 'joints':
            return sample
        names, sizes = layout.texts[1], [size for size, _ in layout.arrays]
        own = self._assembler.joints.layout(source.index, names)
        if own.part is not None and not misfit(len(names), sizes):
            places = tuple(start if size else -1 for size, start in layout.arrays)
            columns = np.arange(len(names))[own.columns]
            source.usual = (
                own.part, len(data), layout.constant, layout.fixed, len(names), places, columns,
            )  # fmt: skip
        return sample

    def take(self, source: Source, reading: Any) -> Sample | None:
        """Hand a reading of a source to the assembler."""
        kind, index, stamp_ns = source.kind, source.index, reading.stamp_ns
        if kind == 'joints' and not isinstance(reading, JointReading):
            instant_ns, none = stamp_ns + source.offset_ns, np.empty(0)
            return self._assembler.push_joints(0, instant_ns, (), none, none, none)
        if kind == 'joints':
            n, *sizes = [len(values) for values in reading[2:]]
            if problem := misfit(n, sizes):
                source.problems.note(problem)
            return self._assembler.push_joints(index, stamp_ns, *reading[2:])
        if kind == 'ft':
            self._assembler.push_ft(index, stamp_ns, reading.values)
        elif kind == 'imu':
            if reading.declares_nothing:
                source.problems.note(NOTHING)
            self._assembler.push_imu(index, stamp_ns, *reading[2:4])
        elif kind == 'temperature':
            self._assembler.push_temperature(index, stamp_ns, float(reading.values[0]))
        elif stamp_ns > 0:
            self._on_contact(*reading)
        return None


def misfit(n: int, sizes: Sequence[int]) -> str:
    """Return the problem of a joint state with n names and so many values, if any."""
    if sizes[0] == n and {0, n}.issuperset(sizes[1:]):
        return ''
    return f'{n} names with {list(sizes)} positions, velocities, efforts'
