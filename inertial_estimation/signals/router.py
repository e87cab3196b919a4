# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From the bytes of messages to the sample assembler: topics, frames and stamps are checked.

A node hands over what it receives, a bag reader what was recorded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings, FtSettings
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor, Imu
from inertial_estimation.sample import Sample
from inertial_estimation.signals.cdr import END_NS
from inertial_estimation.signals.messages import Decoder, JointReading

CONTACTS = ('contacts', 'contact_poses')
"""Kinds of sources and topics of reported contacts: points, and poses with their normal."""
NOTHING = 'both covariances begin with -1: it measures nothing'
MAX_PROBLEMS = 20

Deserialize = Callable[[bytes, str], Any]
"""Returns the object of a message, given its bytes and its type; slow, for any encoding."""


class Receiver(Protocol):
    """Takes readings: a `SampleAssembler`, or another in its place."""

    def push_ft(self, index: int, stamp_ns: int, wrench: Array) -> None: ...

    def push_imu(self, index: int, stamp_ns: int, rate: Array, acceleration: Array) -> None: ...

    def push_temperature(self, index: int, stamp_ns: int, celsius: float) -> None: ...

    def push_joints(
        self, index: int, stamp_ns: int, names: tuple[str, ...],
        positions: Array, velocities: Array, efforts: Array, /,
    ) -> Sample | None: ...  # fmt: skip


class Source:
    """A topic: decoder of its messages, and problems with them."""

    def __init__(
        self,
        kind: str,
        name: str,
        topic: str,
        deserialize: Deserialize,
        *,
        decoder: str = '',
        index: int = 0,
        frames: Collection[str] | None = None,
        time_offset: float = 0.0,
        strict: bool = False,
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        self.kind, self.name, self.topic, self.index = kind, name, topic, index
        self.frames, self.offset_ns = frames, round(1e9 * time_offset)
        self.decoder = Decoder(decoder or kind)
        self.type, self._decode = self.decoder.type, self.decoder.decode
        self._deserialize, self._strict, self._now_ns = deserialize, strict, now_ns
        self.problems: Counter[str] = Counter()
        self.fallbacks = 0
        """Messages that are not plain little-endian CDR."""
        self.skew: float | None = None
        """Age of a message as it came [s], measured for the next message while `skew_due`."""
        self.skew_due = True
        self.handle: Callable[[bytes], Sample | None] = self.read
        """Takes a message; set by the `Router`."""
        self.waiting: deque[tuple[int, bytes]] = deque()
        """Stamps and messages of a polled topic that wait for their sample."""

    def flush(self) -> None:
        """Hand over the messages that wait."""
        while self.waiting:
            self.handle(self.waiting.popleft()[1])

    def read(self, data: bytes) -> Any:
        """Return the reading of a message, or None if it is refused."""
        reading = self._decode(data)
        if reading is None:
            try:
                reading = self.decoder.read(self._deserialize(data, self.type))
            except (RuntimeError, ValueError) as error:
                self._refuse(f'{len(data)} bytes are no {self.type}: {error}'[:200])
                return None
            self.fallbacks += 1
        if reading.stamp_ns <= 0:
            self.note('header.stamp is zero')
        elif reading.stamp_ns >= END_NS:
            self._refuse('header.stamp has more nanoseconds than a second')
            return None
        if self.frames is not None and reading.frame_id not in self.frames:
            expected = ' or '.join(f"'{name}'" for name in sorted(self.frames)[:3])
            self._refuse(f"header.frame_id is '{reading.frame_id}', expected {expected}")
            return None
        if self.skew_due and self._now_ns is not None:
            # Simulated time is zero until its first message.
            now_ns = self._now_ns()
            if now_ns and reading.stamp_ns > 0:
                self.skew, self.skew_due = 1e-9 * (now_ns - reading.stamp_ns), False
        return reading

    def note(self, problem: str, count: int = 1) -> None:
        """Count a problem; ever new ones must not fill the memory."""
        if problem not in self.problems and len(self.problems) >= MAX_PROBLEMS:
            problem = 'other problems'
        self.problems[problem] += count

    def _refuse(self, problem: str) -> None:
        self.note(problem)
        if self._strict:
            raise LogError(f"topic '{self.topic}': {problem}")


class Router:
    """
    Decode the message of a topic, check it, and hand its reading to the assembler.

    `on_contact` takes stamp [ns] and frame of a contact and its point (3,) [m], or its point and
    quaternion (7,); `deserialize` reads messages that are not plain little-endian CDR, `resolve`
    makes the full name of a topic, `now_ns` is the clock by which `Source.skew` is measured. With
    `strict` the first message that cannot be read or has a wrong frame raises LogError; else it is
    counted.

    Its `sources` are FT sensors, IMUs and contacts, then joint topics, of which the last makes
    samples. Where no joint is measured, that is once more the topic of the first sensor.
    """

    def __init__(
        self,
        settings: EstimatorSettings,
        robot: Robot,
        receiver: Receiver,
        on_contact: Callable[[int, str, Array], None],
        deserialize: Deserialize,
        *,
        resolve: Callable[[str], str] = str,
        now_ns: Callable[[], int] | None = None,
        strict: bool = False,
    ) -> None:
        self._receiver, self._on_contact = receiver, on_contact
        new = partial(Source, deserialize=deserialize, strict=strict, now_ns=now_ns)
        sources: list[Source] = []
        sensors: list[tuple[str, int, FtSensor | Imu]]
        sensors = [('ft', k, ft) for k, ft in enumerate(robot.ft_sensors)]
        sensors += [('imu', k, imu) for k, imu in enumerate(robot.imus)]
        for kind, k, sensor in sensors:
            given = (settings.ft_of if kind == 'ft' else settings.imu_of)(sensor.name)
            frames = accepted_frame_ids(settings, robot, sensor)
            sources.append(
                new(kind, sensor.name, resolve(given.topic), index=k, frames=frames,
                    time_offset=given.time_offset)
            )  # fmt: skip
            if isinstance(given, FtSettings) and (topic := given.temperature_topic):
                sources.append(new('temperature', sensor.name, resolve(topic), index=k))
        sources += [new(topic, topic, resolve(topic)) for topic in CONTACTS]
        if sensors and not set(robot.joint_names) - set(settings.joint_states.assumed):
            first = sources[0]
            sources.append(
                new('joints', first.name, first.topic, decoder=first.kind, frames=first.frames,
                    time_offset=1e-9 * first.offset_ns)
            )  # fmt: skip
        else:
            for k, topic in reversed(list(enumerate(settings.joint_states.topics))):
                sources.append(new('joints', topic, resolve(topic), index=k))
        self.sources = tuple(sources)
        self.by_topic: dict[str, list[Source]] = {}
        for source in sources:
            source.handle = partial(self._read_and_take, source)
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

    def take(self, source: Source, reading: Any) -> Sample | None:
        """Hand a reading of a source to the assembler."""
        kind, index, stamp_ns = source.kind, source.index, reading.stamp_ns
        if kind == 'joints' and not isinstance(reading, JointReading):
            none = np.empty(0)
            return self._receiver.push_joints(0, stamp_ns + source.offset_ns, (), none, none, none)
        if kind == 'joints':
            n, *sizes = [len(values) for values in reading[2:]]
            if problem := misfit(n, sizes):
                source.note(problem)
            return self._receiver.push_joints(index, stamp_ns, *reading[2:])
        if kind == 'ft':
            self._receiver.push_ft(index, stamp_ns, reading.values)
        elif kind == 'imu':
            if reading.declares_nothing:
                source.note(NOTHING)
            self._receiver.push_imu(index, stamp_ns, *reading[2:4])
        elif kind == 'temperature':
            self._receiver.push_temperature(index, stamp_ns, float(reading.values[0]))
        elif stamp_ns > 0:
            self._on_contact(*reading)
        return None


def misfit(n: int, sizes: Sequence[int]) -> str:
    """Return the problem of a joint state with n names and so many values, if any."""
    if sizes[0] == n and {0, n}.issuperset(sizes[1:]):
        return ''
    return f'{n} names with {list(sizes)} positions, velocities, efforts'


def accepted_frame_ids(
    settings: EstimatorSettings, robot: Robot, sensor: FtSensor | Imu
) -> set[str]:
    """Return the values of header.frame_id that are accepted from a sensor."""
    if isinstance(sensor, FtSensor):
        kind, given = 'ft', settings.ft_of(sensor.name).frame_id
        names = robot.frames_at(sensor.child, sensor.child_H_sensor)
    else:
        kind, given = 'imu', settings.imu_of(sensor.name).frame_id
        names = robot.frames_at(sensor.link, sensor.L_H_S)
    names |= {sensor.name} - set(robot.frames)
    if not given and not names:
        raise ConfigError(
            f"'{kind}.{sensor.name}.frame_id' is empty, and '{sensor.name}' is a frame of the "
            "robot elsewhere: set it to the sensor's header.frame_id"
        )
    return {given} if given else names
