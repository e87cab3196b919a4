# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From a bag to samples: the decoders and the assembler of the node, without ROS.

Times are seconds after the first FT message (the first joint state where there is no FT sensor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import build_assembler, build_calibration, build_contact_stream
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError, LogError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.touch_rhythm import TouchRhythm
from inertial_estimation.logs.assumed import AssumedWatch, ReportedJoint
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.feed import Feed, resolve
from inertial_estimation.logs.orientations import Orientations, OrientationTaps
from inertial_estimation.logs.touches import Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, Sample, SampleBatch
from inertial_estimation.signals.stream import AssemblerStatistics, StreamRates

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, from 0 to 1."""

Mask = NDArray[np.bool_]
MESSAGES_PER_TICK = 2000
CONTACTS = 'contacts'
"""Topic of the points that are felt."""


def no_progress(what: str, done: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class TimeRange:
    """Instants strictly between two times."""

    start: float = -np.inf
    """Seconds after the first FT message."""
    stop: float = np.inf
    """Likewise."""

    def __post_init__(self) -> None:
        """Check the order."""
        if not self.start < self.stop:
            raise CallError(f'the time range from {self.start} s to {self.stop} s is empty')

    def mask(self, times: Array) -> Mask:
        """
        Tell which times are inside.

        times (n,); returns (n,).
        """
        return (times > self.start) & (times < self.stop)


@dataclass(frozen=True)
class Recording:
    """The samples of a bag."""

    samples: SampleBatch
    origin_ns: int
    """Stamp that times are counted from [ns]."""
    statistics: AssemblerStatistics
    reported_assumed: tuple[ReportedJoint, ...] = ()
    """Assumed joints that the bag reports after all."""
    touches: Touches | None = None
    """What was felt at each of them; None: the bag does not say."""
    rates: StreamRates | None = None
    """Of its streams, all in all; None: not known."""
    orientations: Orientations | None = None
    """What IMUs report of their orientation, for checks; None: nothing."""

    @property
    def times(self) -> Array:
        """Time of each sample, shape (n,) [s]."""
        return (self.samples.stamp_ns - self.origin_ns) / 1e9

    def within(self, range_: TimeRange) -> Recording:
        """Return the samples of a time range."""
        times = self.times
        rows = np.flatnonzero(range_.mask(times))
        if not len(rows):
            raise LogError(
                f'no sample lies between {range_.start} s and {range_.stop} s: '
                f'the samples of the bag span {times[0]:.2f} s to {times[-1]:.2f} s'
            )
        return self._taken(rows)

    def thinned(self, most: int) -> Recording:
        """Return at most so many samples, evenly spread."""
        n = len(self.samples)
        rows = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))
        return self._taken(rows)

    def _taken(self, rows: NDArray[np.intp]) -> Recording:
        touches = self.touches and self.touches.take(rows)
        return replace(self, samples=self.samples.take(rows), touches=touches)

    def without_frozen(self, ft_names: Iterable[str]) -> SampleBatch:
        """Return the samples without the readings of frozen intervals, in hindsight."""
        readings = self.samples.ft_readings.copy()
        readings[self.frozen(ft_names)] = np.nan
        return replace(self.samples, ft_readings=readings)

    def frozen(self, ft_names: Iterable[str]) -> Mask:
        """
        Tell when which FT sensor repeats itself, in hindsight.

        Returns (n, n_fts).
        """
        stamps = self.samples.stamp_ns
        found = np.zeros(self.samples.ft_readings.shape[:2], dtype=bool)
        for k, name in enumerate(ft_names):
            for interval in self.statistics.fts[name].frozen_intervals:
                found[(stamps >= interval.repeated_ns) & (stamps <= interval.last_ns), k] = True
        return found


def read_samples(
    bag: str | Path,
    robot: Robot,
    settings: EstimatorSettings,
    progress: Progress = no_progress,
) -> Recording:
    """Make the samples that the node would have made."""
    gathering = _Gathering(robot, settings)
    with BagReader(bag) as reader:
        assembler = gathering.assembler
        feed = Feed(reader, robot, settings, assembler.push_ft, assembler.push_imu)
        topics, needed = _temperatures(robot, settings)
        feed.add_temperatures(topics, needed, assembler.push_temperature)
        feed.add_contacts(resolve(CONTACTS), gathering.touch)
        for index, topic in enumerate(settings.joint_topics):
            feed.add_joints(resolve(topic), index, gathering.push_joints, gathering.keep)
        gathering.orientations.listen(feed.handlers)
        total = feed.n_messages
        for k, message in enumerate(reader.messages(feed.handlers)):
            feed.handlers[message.topic](message.data)
            if k % MESSAGES_PER_TICK == 0:
                progress('reading', k / total)
    progress('reading', 1.0)
    if not gathering.samples:
        raise LogError(
            f"topic '{resolve(settings.joint_topics[0])}' has {feed.n_messages} messages, but "
            'none of them names a joint that is estimated and not assumed: no sample was made'
        )
    return gathering.recording(feed.origin_ns)


def require_temperatures(robot: Robot, settings: EstimatorSettings) -> None:
    """Refuse FT sensors whose temperature is needed and told by no topic."""
    needs = build_calibration(settings, robot).needs_temperature
    lacking = [
        sensor.name
        for sensor, needed in zip(robot.ft_sensors, needs, strict=True)
        if needed and not settings.ft_of(sensor.name).temperature_topic
    ]
    if lacking:
        raise ConfigError(
            f'the calibration of {", ".join(lacking)} has temperature coefficients, so readings '
            f"say nothing without a temperature: name its topic as 'ft.{lacking[0]}."
            "temperature_topic', or take the coefficients out of the calibration"
        )


def require_derivatives(recording: Recording) -> None:
    """Refuse a log in which a stream never had derivatives."""
    statistics = recording.statistics
    for streams in (statistics.joints, statistics.imus, statistics.fts):
        for name, one in streams.items():
            if one.unfiltered and not one.used and one.filter_lack:
                raise LogError(
                    f'derivatives of {name} are never known, as the filter has {one.filter_lack}: '
                    'set a longer derivative_window'
                )


def _temperatures(
    robot: Robot, settings: EstimatorSettings
) -> tuple[dict[int, str], frozenset[int]]:
    """Return the topics of temperatures by FT sensor, and the sensors that need one."""
    named = [settings.ft_of(sensor.name).temperature_topic for sensor in robot.ft_sensors]
    topics = {k: resolve(topic) for k, topic in enumerate(named) if topic}
    if not topics:
        return {}, frozenset()
    needs = build_calibration(settings, robot).needs_temperature
    return topics, frozenset(k for k in topics if needs[k])


class _Gathering:
    """The assembler of the node, and what else is noted of the messages."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self.assembler = build_assembler(settings, robot)
        self.samples: list[Sample] = []
        self._contacts = build_contact_stream(settings, robot)
        self._felt: list[tuple[Contact, ...]] = []
        self._watch = AssumedWatch(settings)
        self._rhythm = TouchRhythm(settings.contact_timeout)
        self.orientations = OrientationTaps(robot, settings)

    def push_joints(
        self, source: int, stamp_ns: int, names: tuple[str, ...], positions: Array, *rates: Array
    ) -> Sample | None:
        """Take a joint state."""
        self._watch.note(names, positions)
        return self.assembler.push_joints(source, stamp_ns, names, positions, *rates)

    def keep(self, sample: Sample) -> None:
        """Take a sample, and what is felt then."""
        self.samples.append(sample)
        self._felt.append(self._contacts.at(sample.stamp_ns))

    def touch(self, stamp_ns: int, frame: str, point: Array) -> None:
        """Take a point that is felt."""
        self._rhythm.note(stamp_ns, frame)
        self._contacts.push(stamp_ns, frame, point)

    def recording(self, origin_ns: int) -> Recording:
        """Return what came of it; an origin of 0: that of the first sample [ns]."""
        problems = dict(self._contacts.problems)
        if dropped := self._contacts.statistics().dropped:
            problems['one contact too many at a time'] = dropped
        return Recording(
            SampleBatch.stack(self.samples),
            origin_ns or self.samples[0].stamp_ns,
            self.assembler.statistics(),
            self._watch.found,
            Touches.of(self._felt, problems, self._rhythm.ever_slow),
            self.assembler.rates(),
            self.orientations.found(),
        )
