# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples of a log, made of whole streams at once: those of `SampleAssembler` from arrays.

Stamps may jitter, come in any order within `HELD_NS`, and stop; the clock may not be set back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices, Stamps
from inertial_estimation.config import EstimatorSettings, FtSettings, ImuSettings
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.reading_checks import largest_leap, leaps_of
from inertial_estimation.logs.log import Log, Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.sample import SensorState as State
from inertial_estimation.signals.batch_stream import (
    BatchStream,
    Clock,
    States,
    frozen_intervals,
    judge_readings,
    unchanged_since,
)
from inertial_estimation.signals.joint_stream import (
    EFFORT,
    POSITION,
    VELOCITY,
    WAITING,
    JointPart,
    JointStreams,
)
from inertial_estimation.signals.message_blocks import Block, Messages, read_blocks
from inertial_estimation.signals.router import CONTACTS, NOTHING, Source, misfit
from inertial_estimation.signals.stream_statistics import (
    AssemblerStatistics,
    StreamRates,
    StreamStatistics,
)

HELD_NS = 1_000_000_000
"""For which readings wait for others with earlier stamps [ns]."""
NO_MESSAGES = Messages.of([]), np.zeros(0, dtype=np.intp)
ABSENT = {'accelerometer': slice(3), 'gyroscope': slice(3, 6)}
"""Numbers of a reading that are ignored, by what an IMU measures."""


class Irregular(Exception):
    """The log needs the assembler, message by message."""


class ArraySamples:
    """Collects the readings of a log in pieces, and makes its samples."""

    def __init__(
        self, robot: Robot, settings: EstimatorSettings, sources: Sequence[Source] = ()
    ) -> None:
        self._sensors: dict[str, list[tuple[str, FtSettings | ImuSettings, str]]] = {
            'ft': [(one.name, settings.ft_of(one.name), '') for one in robot.ft_sensors],
            'imu': [(one.name, settings.imu_of(one.name), one.measures) for one in robot.imus],
        }
        """Name, settings and measured quantities."""
        used, every = settings.filter, (*self._sensors['ft'], *self._sensors['imu'])
        given = [one for _, one, _ in every]
        warm = any(isinstance(one, FtSettings) and one.temperature_topic for one in given)
        moves = set(robot.joint_names) - set(settings.joint_states.assumed)
        if used.kind == 'kalman' or warm or not moves:
            raise Irregular
        self._robot, self._settings, self._sources = robot, settings, sources
        self._joints = JointStreams(robot.joint_names, settings)
        self._assumed = self._joints.at(0)
        self._leading = set[str]()
        """Parts of the joint topic that triggers."""
        self._streams: dict[Any, BatchStream] = {}
        self._contacts: list[tuple[int, int, str, Array]] = []
        self._touching, self._is_touched = ContactStream(robot, settings), False
        self._done_ns = self._first_ns = self._last_ns = self._n_samples = 0
        """Stamp up to which messages are used, first and last instant, number of samples."""
        self._lead = len(robot.joint_names)
        longest = max(
            settings.frozen_after, *(one.max_age for one in (settings.joint_states, *given))
        )
        self._memory_ns = round(1e9 * (2.0 * used.window + used.delay + longest))
        self._newest_ns = self._newest_joints_ns = 0
        self._late = {source.name: [0, 0] for source in sources[:-1]}
        self._origins: list[tuple[int, int]] = []

    def add(self, messages: Mapping[str, tuple[Messages, Indices]]) -> None:
        """Take a piece of a log: messages of each topic, and their places in the log."""
        found: list[tuple[Source, Stamps, Indices]] = []
        for source in self._sources:
            data, order = messages.get(source.topic, NO_MESSAGES)
            if (blocks := read_blocks(source, data)) is None:
                raise Irregular
            stamps = np.zeros(len(order), dtype=np.int64)
            for block in blocks:
                stamps[block.rows] = block.stamps + source.offset_ns
                self._keep(source, block, stamps[block.rows], order[block.rows])
            if source.kind == 'ft' and len(order):
                first = int(stamps.min())
                self._origins.append((first, first - source.offset_ns))
            found.append((source, stamps, order))
        # Time must not go back; readings that come behind their joint state are counted.
        all_stamps, order = (np.concatenate([one[k] for one in found]) for k in (1, 2))
        all_stamps = all_stamps[np.argsort(order, kind='stable')]
        newest = np.maximum.accumulate(np.append(self._newest_ns, all_stamps))
        if (all_stamps < newest[:-1] - HELD_NS).any():
            raise Irregular
        *others, (_, joints, joint_order) = found
        leading = np.append(self._newest_joints_ns, joints)
        for source, own, own_order in others:
            counts = self._late[source.name]
            counts[0] += int((own <= leading[np.searchsorted(joint_order, own_order)]).sum())
            counts[1] += len(own)
        self._newest_ns, self._newest_joints_ns = int(newest[-1]), int(leading[-1])

    def add_table(self, rows: SampleBatch) -> None:
        """Take a table whose rows are messages of all streams at once."""
        stamps, n = rows.stamp_ns, len(rows)
        known = stamps > 0
        if not known.any() or stamps[0] < 0 or (np.diff(stamps) < 0).any():
            raise Irregular
        order = np.arange(n)
        motions = np.concatenate([rows.angular_velocities, rows.proper_accelerations], axis=2)
        for kind, readings in ('ft', rows.ft_readings), ('imu', motions):
            for k, (_, sensor, _) in enumerate(self._sensors[kind]):
                own = np.where(known, stamps + round(1e9 * sensor.time_offset), 0)
                self._stream(kind, k).waiting.append((own, order, readings[:, k]))
        layout, first = self._joints.layout(0, self._robot.joint_names), int(known.argmax())
        if layout.part is None:
            raise Irregular
        self._leading.add(layout.part.name)
        efforts = np.full_like(rows.positions, np.nan) if rows.efforts is None else rows.efforts
        values = np.stack([rows.positions, rows.velocities, efforts], axis=1)[first:]
        values = values[:, :, layout.columns]
        self._stream(layout.part).waiting.append((stamps[first:], order[first:], values))
        if self._robot.ft_sensors:
            self._origins.append((int(stamps[first]), int(stamps[first])))

    def _keep(self, source: Source, block: Block, stamps: Stamps, order: Indices) -> None:
        """Keep the readings of a block."""
        kind, values, n = source.kind, block.arrays[0], len(stamps)
        key: tuple[Any, ...] = kind, source.index
        if kind == 'joints':
            names = block.texts[1]
            sizes = [array.shape[1] for array in block.arrays]
            if problem := misfit(len(names), sizes):
                source.problems.note(problem, n)
            if sizes[0] != len(names):
                return
            layout = self._joints.layout(source.index, names)
            if layout.part is None:
                return
            key = (layout.part,)
            if source.index == 0:
                self._leading.add(layout.part.name)
            values = np.full((n, 3, len(layout.part.joint_rows)), np.nan)
            for k, given in enumerate(block.arrays):
                if given.shape[1] == len(names):
                    values[:, k] = given[:, layout.columns]
        elif kind == 'imu':
            nothing = values[:, [16, 28]] == -1.0
            if count := int(nothing.all(axis=1).sum()):
                source.problems.note(NOTHING, count)
            values = np.concatenate([values[:, 13:16], values[:, 25:28]], axis=1)
            values[nothing[:, 0], :3] = values[nothing[:, 1], 3:] = np.nan
        elif kind in CONTACTS:
            found = zip(stamps.tolist(), order.tolist(), values, strict=True)
            self._contacts += [(ns, at, block.texts[0], point) for ns, at, point in found]
            return
        self._stream(*key).waiting.append((stamps, order, values))

    def _stream(self, *key: Any) -> BatchStream:
        """Return a stream: a part of the joint states, or kind and index of a sensor."""
        if key not in self._streams:
            self._streams[key] = BatchStream(6, self._memory_ns)
        return self._streams[key]

    def due(self, seconds: float) -> int:
        """Return the stamp up to which messages are final if they span some time, otherwise 0."""
        leading = [self._stream(part) for part in self._joints.parts if part.name in self._leading]
        stamps = np.concatenate([[0], *(one[0] for stream in leading for one in stream.waiting)])
        # Messages may still come that are earlier by this; one joint state stays for the end.
        until_ns = min(self._newest_ns - HELD_NS, stamps.max()) - 1
        found = int(stamps[stamps <= until_ns].max(initial=0))
        start_ns = self._done_ns or stamps[1:].min(initial=found)
        return found if found - start_ns > 1e9 * seconds else 0

    def log(self, until_ns: float = np.inf) -> Log:
        """Return the samples of the messages up to a stamp that are not in the log before."""
        found = [(part, self._stream(part)) for part in self._joints.parts]
        for stream in self._streams.values():
            stream.take(until_ns)
        parts = [one for one in found if len(one[1].stamps)]
        parts.sort(key=lambda one: one[1].start)
        rows = [row for part, _ in parts for row in part.joint_rows.tolist()]
        leading = [one for one in parts if one[0].name in self._leading]
        triggers, owners, fed = self._triggers(leading)
        if not (len(triggers) or self._n_samples) or len(set(rows)) < len(rows):
            raise Irregular
        for part, stream in parts:
            stream.feed(triggers, fed.get(part.name))
        clock = self._clock(triggers, leading, owners)
        instants = clock.instants
        self._n_samples += len(instants)
        self._first_ns = self._first_ns or max(instants[:1].tolist(), default=0)
        if not self._n_samples:
            raise Irregular
        for _, stream in parts:
            stream.place(clock, self._settings.joint_states.max_age)
        block, states, joints = self._at_joints(parts)
        fts, readings, ft_states = self._at_sensors('ft', clock)
        imus, motions, imu_states = self._at_sensors('imu', clock)
        w, a, dw = (np.ascontiguousarray(motions[:, :, k : k + 3]) for k in (0, 3, 6))
        samples = SampleBatch(
            instants, block[0], block[1], block[2], w, a, dw, readings,
            states, imu_states, ft_states, block[EFFORT],
        )  # fmt: skip
        rates = np.full(len(self._robot.joint_names), np.nan)
        for part, _ in parts:
            rates[part.rows] = joints[part.name].rate
        sensors = (np.array([one.rate for one in kind.values()]) for kind in (imus, fts))
        self._done_ns = max([self._done_ns, *triggers[-1:].tolist()])
        self._last_ns = max([self._last_ns, *instants[-1:].tolist()])
        return Log(
            samples, min(self._origins, default=(0, self._first_ns))[1],
            AssemblerStatistics(self._n_samples, 0, self._joints.ignored, joints, fts, imus),
            self._touches(clock, is_last=until_ns == np.inf), StreamRates(rates, *sensors),
            late={name: late / n for name, (late, n) in self._late.items() if late},
        )  # fmt: skip

    def _triggers(
        self, leading: Sequence[tuple[JointPart, BatchStream]]
    ) -> tuple[Stamps, Indices, dict[str, Indices]]:
        """Return the joint states that trigger, the part of each, and the newest of all parts."""
        if not leading:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp), {}
        owners = np.repeat(np.arange(len(leading)), [len(one.stamps) for _, one in leading])
        stamps = np.concatenate([one.stamps for _, one in leading])
        rows = np.lexsort((np.concatenate([one.order for _, one in leading]), stamps))
        stamps, owners = stamps[rows], owners[rows]
        taken = np.flatnonzero(stamps > self._done_ns)
        if len(leading) > 1:
            # Those with the lead joint, as `SampleAssembler.push_joints`.
            max_age_ns = round(1e9 * self._settings.joint_states.max_age)
            last, holds = self._done_ns, list[int]()
            for row in taken.tolist():
                stamp, first = int(stamps[row]), leading[owners[row]][0].first_row
                if first <= self._lead or stamp - last > max_age_ns:
                    self._lead = first
                    if stamp > last:
                        last = stamp
                        holds.append(row)
            taken = np.array(holds, dtype=np.intp)
        fed = {part.name: np.cumsum(owners == k)[taken] - 1 for k, (part, _) in enumerate(leading)}
        return stamps[taken], owners[taken], fed

    def _clock(
        self, triggers: Stamps, leading: Sequence[tuple[JointPart, BatchStream]], owners: Indices
    ) -> Clock:
        """Return the samples of the triggers, as `JointPart.next_instant`."""
        delay_ns = round(1e9 * self._settings.filter.delay)
        if not delay_ns:
            return Clock(triggers, np.arange(len(triggers)), triggers)
        stamps = [one.stamps[one.kept].tolist() for _, one in leading]
        last, samples, instants = self._last_ns, [], []
        for row, (trigger, owner) in enumerate(zip(triggers.tolist(), owners.tolist())):
            own = stamps[owner]
            begin, end = bisect_right(own, last), bisect_right(own, trigger - delay_ns)
            if begin < end:
                last = own[begin if end - begin <= 1 + WAITING else end - 1]
                samples.append(row)
                instants.append(last)
        return Clock(triggers, np.array(samples, dtype=np.intp), np.array(instants, np.int64))

    def _at_joints(
        self, parts: Sequence[tuple[JointPart, BatchStream]]
    ) -> tuple[Array, States, dict[str, StreamStatistics]]:
        """Return the values of all joints (4, n, n_joints), their states, and the counters."""
        given, filter_ = self._settings.joint_states, self._settings.filter
        n = len(parts[0][1].newest)
        statistics: dict[str, StreamStatistics] = {}
        block: Array = np.repeat(self._assumed[0][:, None], n, axis=1)
        states: States = np.repeat(self._assumed[1][None], n, axis=0)
        sources = enumerate((given.velocity_source, given.acceleration_source), start=1)
        derived = {VELOCITY - 1 + k: k for k, source in sources if source == 'filter'}
        for part, stream in parts:
            fresh = stream.states == State.FRESH
            at: Any = (slice(None), part.rows) if fresh.all() else np.ix_(fresh, part.joint_rows)
            used = fresh
            block[:, at[0], at[1]] = 0.0
            for row, k in ((POSITION, 0), (VELOCITY, 1), (EFFORT, 2)):
                block[row][at] = stream.at(stream.values[:, k], fresh)
            if derived:
                none, smooth = np.zeros(len(stream.stamps), dtype=bool), filter_.smooth_readings
                orders = slice(0 if smooth else min(derived.values()), max(derived.values()) + 1)
                found = stream.derive(stream.values[:, 0], self._settings, none, fresh, orders)
                for row, k in derived.items():
                    block[row][at] = found[k - orders.start, fresh]
                if smooth:
                    values, plain = found[0, fresh], block[POSITION][at]
                    block[POSITION][at] = np.where(np.isfinite(values), values, plain)
                used = fresh & stream.ready
            known = np.ix_(stream.states != State.ABSENT, part.joint_rows)
            states[known] = stream.states[known[0]]
            statistics[part.name] = stream.statistics(used=int(used.sum()))
        fresh = states == State.FRESH
        for row in derived:
            states[fresh & ~np.isfinite(block[row])] = State.WARMING
        invalid = fresh & ~np.isfinite(block[POSITION])
        states[invalid] = State.INVALID
        block[:, invalid] = np.nan
        return block, states, statistics

    def _at_sensors(
        self, kind: str, clock: Clock
    ) -> tuple[dict[str, StreamStatistics], Array, States]:
        """Return counters, readings (n, n_fts, 6) or (n, n_imus, 9), and states of sensors."""
        settings, statistics, sensors = self._settings, {}, self._sensors[kind]
        readings = np.full((len(clock.instants), len(sensors), 9 if kind == 'imu' else 6), np.nan)
        states = np.empty(readings.shape[:2], dtype=np.uint8)
        limit_ns, smooth = round(1e9 * settings.frozen_after), settings.filter.smooth_readings
        limit = largest_leap(self._robot)
        for index, (name, given, measures) in enumerate(sensors):
            stream = self._stream(kind, index)
            if measures in ABSENT:
                stream.values[:, ABSENT[measures]] = np.nan
            if isinstance(given, FtSettings) and given.range:
                stream.values[(np.abs(stream.values) >= given.range).any(axis=1)] = np.nan
            if kind == 'ft' and smooth:
                # Smoothed, a reading that leaps out and back would spoil its neighbours.
                _, alone = leaps_of(stream.stamps, stream.values[:, None], limit)
                stream.values[alone[:, 0]] = np.nan
            stream.feed(clock.triggers)
            stream.place(clock, given.max_age)
            since, judged = unchanged_since(stream.values), judge_readings(stream.values, measures)
            stream.since = since
            frozen = (limit_ns > 0) & (stream.stamps - stream.stamps[since] >= limit_ns)
            code, values = stream.states, readings[:, index]
            held, usable = np.append(frozen, False), np.append(judged != State.INVALID, False)
            stays = (held[stream.newest] | held[stream.fed]) & usable[stream.newest]
            asked = (code == State.FRESH) & ~stays
            code[(code == State.FRESH) & stays] = State.FROZEN
            own, late = stream.at(stream.values, asked), np.zeros(int(asked.sum()), dtype=bool)
            source = settings.angular_acceleration_source
            derives = measures in ('both', 'gyroscope') and source == 'filter'
            if smooth or derives:
                signals = stream.values[:, : 6 if smooth else 3]
                orders = slice(0 if smooth else 1, 2)
                found = stream.derive(signals, settings, frozen, asked, orders, each=smooth)
            if smooth:
                late = judge_readings(own, measures) != State.INVALID
                own[late] = found[0, asked][late]
                late &= judge_readings(own, measures) == State.INVALID
            code[asked] = np.where(late, State.WARMING, judge_readings(own, measures))
            used = (code == State.FRESH) | (code == State.PARTIAL)
            values[used, :6] = own[used[asked]]
            if kind == 'imu':
                values[used, 6:] = found[-1, used, :3] if derives else 0.0
                turns, known = np.isfinite(values.reshape(-1, 3, 3)).all(axis=2)[:, ::2].T
                values[~(turns & known), 6:] = np.nan
                code[used & turns & ~known] = State.WARMING
                used &= code != State.WARMING
            statistics[name] = stream.statistics(
                used=int(used.sum()), invalid=int((code == State.INVALID).sum()),
                repeated=int((since < np.arange(len(since)))[stream.known :].sum()),
                frozen_intervals=frozen_intervals(stream.stamps, since, judged, limit_ns),
            )  # fmt: skip
            states[:, index] = code
        return statistics, readings, states

    def _touches(self, clock: Clock, *, is_last: bool) -> Touches:
        """Return the contacts at each sample."""
        stream, present = self._touching, []
        if not (self._contacts or self._is_touched):
            return Touches.of([()] * len(clock.instants))
        self._is_touched = True
        self._contacts.sort(key=lambda one: one[:2], reverse=True)
        stamps = clock.triggers[clock.samples]
        for trigger, instant in zip(stamps.tolist(), clock.instants.tolist()):
            self._touch(trigger)
            present.append(stream.at(instant))
        if is_last:
            self._touch(np.inf)
        return Touches.of(present, stream)

    def _touch(self, until_ns: float) -> None:
        """Take the contacts up to a stamp."""
        while self._contacts and self._contacts[-1][0] <= until_ns:
            stamp, _, frame, point = self._contacts.pop()
            self._touching.push(stamp, frame, point)
