# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples of a bag: those of the node.

Its messages go through the decoders, the router and the sample assembler of the node, in the order
of their stamps: in which order they were recorded is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.array_samples import HELD_NS, ArraySamples, Irregular
from inertial_estimation.logs.bag import BagReader, deserialize, resolve
from inertial_estimation.logs.log import Log, Progress, Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import CONTACTS, Router, Source
from inertial_estimation.signals.sources import sources_of

MESSAGES_PER_TICK = 2000


def read_bag(
    path: Path, robot: Robot, settings: EstimatorSettings, progress: Progress, seconds: float = inf
) -> Iterator[Log]:
    """Yield the samples of the node in pieces of a length; Irregular: a later one has none."""
    needs = build_calibration(settings, robot).needs_temperature
    for sensor, needed in zip(robot.ft_sensors, needs, strict=True):
        if needed and not settings.ft_of(sensor.name).temperature_topic:
            text = 'is empty, but the calibration has temperature coefficients'
            raise ConfigError(f"'ft.{sensor.name}.temperature_topic' {text}")
    with BagReader(path) as reader:
        bag = Bag(reader, robot, settings, needs, progress)
        has_begun = False
        try:
            for log in bag.read_arrays(seconds):
                has_begun = True
                yield log
        except Irregular:
            if has_begun:
                raise
            yield bag.read_messages()
    progress('reading', 1.0)


class Bag(NamedTuple):
    """A bag that is open, and what is wanted of it."""

    reader: BagReader
    robot: Robot
    settings: EstimatorSettings
    needs: Mask
    """FT sensors whose temperature is needed, (n_fts,)."""
    progress: Progress

    def read_arrays(self, seconds: float = inf) -> Iterator[Log]:
        """Yield the log in pieces of a length, made of whole streams; Irregular: it cannot be."""
        _, router, topics = self._assembly()
        streams = ArraySamples(self.robot, self.settings, router.sources)
        read, total = 0, sum(topics.values())
        for piece in self.reader.pieces(topics):
            streams.add(piece)
            read += sum(len(places) for _, places in piece.values())
            self.progress('reading', read / max(total, 1))
            if until_ns := streams.due(seconds):
                yield self._finished(streams.log(until_ns), router)
        yield self._finished(streams.log(), router)

    def read_messages(self) -> Log:
        """Return the log, made of one message after the other, as in the node."""
        assembly, router, topics = self._assembly()
        counts = {source.name: [0, 0] for source in router.sources[:-1]}
        for source, reading in self._by_stamp(router, topics, counts):
            assembly.keep(router.take(source, reading))
        if not assembly.samples:
            topic = resolve(self.settings.joint_states.topics[0])
            raise LogError(f"topic '{topic}' reports none of the joints that are estimated")
        late = {name: late / n for name, (late, n) in counts.items() if late}
        return self._finished(replace(assembly.log(), late=late), router)

    def _by_stamp(
        self, router: Router, topics: Mapping[str, int], counts: Mapping[str, list[int]]
    ) -> Iterator[tuple[Source, Any]]:
        """Yield readings by stamp, joint states last; counts: behind their joint state, all."""
        rank = {id(source): k for k, source in enumerate(router.sources)}
        held: list[tuple[int, int, int, int, Source, Any]] = []
        newest_ns = newest_joints_ns = epoch = 0
        for number, message in enumerate(self.reader.messages(topics)):
            if number % MESSAGES_PER_TICK == 0:
                self.progress('reading', number / max(sum(topics.values()), 1))
            for source in router.by_topic[message.topic]:
                if (reading := source.read(message.data)) is None:
                    continue
                stamp_ns = reading.stamp_ns + source.offset_ns
                if stamp_ns < newest_ns - HELD_NS:
                    # Time was set back, or this source has another clock.
                    epoch, newest_ns, newest_joints_ns = epoch + 1, 0, 0
                newest_ns = max(newest_ns, stamp_ns)
                if source is router.sources[-1]:
                    newest_joints_ns = stamp_ns
                else:
                    counts[source.name][0] += stamp_ns <= newest_joints_ns
                    counts[source.name][1] += 1
                item = epoch, stamp_ns, rank[id(source)], number, source, reading
                heappush(held, item)
                while held and held[0][:2] < (epoch, newest_ns - HELD_NS):
                    yield heappop(held)[4:]
        while held:
            yield heappop(held)[4:]

    def _assembly(self) -> tuple[LogAssembler, Router, dict[str, int]]:
        """Return a new assembler, its router, and the topics with their numbers of messages."""
        settings, robot, reader = self.settings, self.robot, self.reader
        assembly = LogAssembler(robot, settings)
        router = Router(
            sources_of(settings, robot, deserialize, resolve=resolve, strict=True),
            assembly,
            assembly.contacts.push,
        )
        topics: dict[str, int] = {}
        for source in router.sources:
            optional = source.kind in CONTACTS or (
                source.kind == 'temperature' and not self.needs[source.index]
            )
            if not optional or source.topic in reader.topics:
                topics[source.topic] = reader.require(source.topic, source.type).n_messages
        return assembly, router, topics

    def _finished(self, log: Log, router: Router) -> Log:
        """Return the log with the problems of its messages."""
        problems = {one.name: dict(one.problems) for one in router.sources if one.problems}
        return replace(log, problems=problems)


class LogAssembler(SampleAssembler):
    """Assembler and contacts of the node, and their samples."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        super().__init__(robot, settings)
        self.samples: list[Sample] = []
        self._origin_ns = 0
        self.contacts = ContactStream(robot, settings)
        self._present: list[tuple[Contact, ...]] = []

    def push_ft(self, index: int, stamp_ns: int, wrench: Array) -> None:
        """Take an FT message; the first one is the origin of times."""
        self._origin_ns = self._origin_ns or stamp_ns
        super().push_ft(index, stamp_ns, wrench)

    def keep(self, sample: Sample | None) -> None:
        """Take a sample, and the contacts of its time."""
        if sample is not None:
            self.samples.append(sample)
            self._present.append(self.contacts.at(sample.stamp_ns))

    def log(self) -> Log:
        """Return the log."""
        return Log(
            SampleBatch.stack(self.samples), self._origin_ns or self.samples[0].stamp_ns,
            self.statistics(), Touches.of(self._present, self.contacts), self.rates(),
        )  # fmt: skip
