# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples of a log, made of whole streams at once: those of `SampleAssembler`, a hundred times faster.

Only for streams in which stamps go on, and filters that look back at the newest sample: see
`ArraySamples.covers`, and `Irregular`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.log import Log, Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.batch_filter import differentiate
from inertial_estimation.signals.derivatives import smoother
from inertial_estimation.signals.joint_stream import (
    ACCELERATION,
    EFFORT,
    POSITION,
    VELOCITY,
    JointPart,
    JointStreams,
)
from inertial_estimation.signals.messages import Block
from inertial_estimation.signals.router import Router, Source
from inertial_estimation.signals.savitzky_golay import CUBIC, QUINTIC
from inertial_estimation.signals.sensor_stream import MAX_INTERVALS, MAX_TEMPERATURE_AGE
from inertial_estimation.signals.stream import (
    ABSENT,
    FRESH,
    FROZEN,
    INVALID,
    MAX_QUEUE,
    PARTIAL,
    STALE,
    WARMING,
)
from inertial_estimation.signals.stream_statistics import (
    AssemblerStatistics,
    FrozenInterval,
    StreamRates,
    StreamStatistics,
)

HELD_NS = 1_000_000_000
"""For which readings wait for others with earlier stamps [ns]."""

States = NDArray[np.uint8]


class Irregular(Exception):
    """The messages need the assembler, one by one."""


class _Stream(NamedTuple):
    """Messages of one stream, of equal stamps the first."""

    stamps: Stamps
    """Increasing, shape (n,) [ns]."""
    order: Indices
    """Place of each in the log."""
    values: Array
    """Shape (n, ...)."""
    refused: int

    @classmethod
    def of(
        cls, pieces: Sequence[tuple[Stamps, Indices, Array]], empty: tuple[int, ...]
    ) -> _Stream:
        """Join the pieces of a stream, sorted by stamp."""
        if not pieces:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, none, np.zeros((0, *empty)), 0)
        stamps, order, values = (np.concatenate(part) for part in zip(*pieces, strict=True))
        if not (np.diff(stamps) > 0).all():
            rows = np.argsort(stamps, kind='stable')
            rows = rows[np.diff(stamps[rows], prepend=stamps[rows[0]] - 1) > 0]
            return cls(stamps[rows], order[rows], values[rows], len(stamps) - len(rows))
        return cls(stamps, order, values, 0)

    def newest(self, instants: Stamps) -> Indices:
        """Return the last message that is not later than each instant; -1: none."""
        return np.searchsorted(self.stamps, instants, side='right') - 1

    def states(self, newest: Indices, instants: Stamps, max_age: float) -> States:
        """Return the state of the stream at each instant, as far as age tells."""
        states = np.full(len(instants), ABSENT, dtype=np.uint8)
        known = newest >= 0
        ages = instants[known] - self.stamps[newest[known]]
        states[known] = np.where(ages > round(1e9 * max_age), STALE, FRESH)
        return states

    def statistics(self, newest: Indices, instants: Stamps, **counts: Any) -> StreamStatistics:
        """Return the counters of the stream."""
        found = StreamStatistics(len(self.stamps), refused=self.refused, **counts)
        if len(self.stamps):
            first, last = int(self.stamps[0]), int(self.stamps[-1])
            found.last_stamp_ns = last
            found.longest_gap = 1e-9 * int(np.diff(self.stamps).max(initial=0))
            if newest[-1] >= 0:
                found.age = 1e-9 * int(instants[-1] - self.stamps[newest[-1]])
            if last > first:
                found.rate = (len(self.stamps) - 1) / (1e-9 * (last - first))
        found.dropped = int((~self.queued(newest)).sum())
        return found

    def queued(self, newest: Indices) -> Mask:
        """Return the messages that did not fall out of the queue before their sample came."""
        rows, ends = np.arange(len(self.stamps)), np.append(newest, len(self.stamps) - 1)
        waiting = ends[np.searchsorted(newest, rows)] - rows
        return np.asarray(waiting < MAX_QUEUE)


class _Derivatives(NamedTuple):
    """Derivatives of a stream at its newest message of each sample."""

    values: Array
    """Shape (2, n_samples, m)."""
    ready: Mask
    """Shape (n_samples,)."""
    lack: str
    """Of the filter at the end."""


class ArraySamples:
    """Collects the readings of a log in pieces, and makes its samples."""

    def __init__(self, router: Router, robot: Robot, settings: EstimatorSettings) -> None:
        self._router, self._robot, self._settings = router, robot, settings
        self._joints = JointStreams(robot.joint_names, settings)
        self._assumed = self._joints.at(0)
        self._pieces: dict[Any, list[tuple[Stamps, Indices, Array]]] = {}
        self._leading = set[str]()
        self._contacts: list[tuple[int, int, str, Array]] = []
        self._newest_ns = self._newest_joints_ns = self._number = 0
        self._late = {source.name: [0, 0] for source in router.sources[:-1]}
        self._origin: tuple[int, int] | None = None

    @staticmethod
    def covers(settings: EstimatorSettings) -> bool:
        """Return true if the filters of the settings are those of arrays."""
        used = settings.filter
        return used.kind != 'kalman' and not used.delay and not used.smooth_readings

    def add(self, messages: Mapping[str, tuple[list[bytes], list[int]]]) -> None:
        """Take a piece of a log: messages of each topic, and their places in the log."""
        found: list[tuple[Source, Stamps, Indices]] = []
        for source in self._router.sources:
            data, places = messages.get(source.topic, ([], []))
            if (blocks := source.read_blocks(data)) is None:
                raise Irregular
            order = np.array(places, dtype=np.intp)
            stamps = np.zeros(len(data), dtype=np.int64)
            for block in blocks:
                stamps[block.rows] = block.stamps + source.offset_ns
                self._keep(source, block, order[block.rows])
            found.append((source, stamps, order))
        self._check_order(found)

    def log(self) -> Log:
        """Return the log of all pieces."""
        parts = self._parts()
        instants, own = self._triggers(parts)
        rows = [row for part, _ in parts for row in part.joint_rows.tolist()]
        if not len(instants) or len(set(rows)) < len(rows):
            raise Irregular
        block, states, joints = self._at_joints(parts, instants, own)
        fts, readings, ft_states = self._sensors('ft', instants)
        imus, motions, imu_states = self._sensors('imu', instants)
        temperatures, celsius = self._temperatures(instants)
        samples = SampleBatch(
            instants,
            block[POSITION],
            block[VELOCITY],
            block[ACCELERATION],
            *(np.ascontiguousarray(motions[:, :, k : k + 3]) for k in (0, 3, 6)),
            readings,
            states,
            imu_states,
            ft_states,
            block[EFFORT],
            ft_temperatures=celsius,
        )
        statistics = AssemblerStatistics(
            len(instants), 0, self._joints.ignored, joints, fts, imus, temperatures
        )
        rates = np.full(len(self._robot.joint_names), np.nan)
        for part, _ in sorted(parts, key=lambda one: int(one[1].stamps[-1])):
            rates[part.rows] = joints[part.name].rate
        sensors = ([one.rate for one in kind.values()] for kind in (imus, fts))
        return Log(
            samples,
            int(instants[0]) if self._origin is None else self._origin[1],
            statistics,
            self._touches(instants),
            StreamRates(rates, *map(np.array, sensors)),
            late={name: late / n for name, (late, n) in self._late.items() if late},
        )

    def _keep(self, source: Source, block: Block, order: Indices) -> None:
        """Keep the readings of a block."""
        stamps, kind = block.stamps + source.offset_ns, source.kind
        key: Any = (kind, source.index)
        values = block.arrays[0] if block.arrays else np.zeros((len(stamps), 0))
        if kind == 'joints':
            sizes = [len(block.texts[1]), *(array.shape[1] for array in block.arrays)]
            n = sizes[0]
            if sizes[1] != n or not {0, n}.issuperset(sizes[2:]):
                problem = f'{n} names with {sizes[1:]} positions, velocities, efforts'
                source.note(problem, len(stamps))
            if sizes[1] != n:
                return
            layout = self._joints.layout(source.index, block.texts[1])
            if layout.part is None:
                return
            key = layout.part
            if source.index == 0:
                self._leading.add(key.name)
            values = np.full((3, len(stamps), len(layout.part.joint_rows)), np.nan)
            for one, given in zip(values, block.arrays, strict=True):
                if given.shape[1] == n:
                    one[:] = given[:, layout.columns]
            values = values.swapaxes(0, 1)
        elif kind == 'imu':
            values = self._measured(source, values)
        elif kind == 'contacts':
            found = zip(stamps.tolist(), order.tolist(), values, strict=True)
            self._contacts += [(ns, at, block.texts[0], point) for ns, at, point in found]
            return
        elif kind == 'temperature':
            values = values[:, :1]
        elif len(stamps):
            first = int(np.argmin(stamps))
            one = int(stamps[first]), int(block.stamps[first])
            if self._origin is None or one[0] < self._origin[0]:
                self._origin = one
        self._pieces.setdefault(key, []).append((stamps, order, values))

    def _measured(self, source: Source, values: Array) -> Array:
        """Return angular velocities and accelerations of an IMU, (n, 6), NaN where it has none."""
        measures = self._robot.imus[source.index].measures
        found = np.concatenate([values[:, 13:16], values[:, 25:28]], axis=1)
        nothing = values[:, [16, 28]] == -1.0
        if count := int(nothing.all(axis=1).sum()):
            source.note('both covariances begin with -1: it measures nothing', count)
        for columns, lacks, other in (
            (slice(0, 3), nothing[:, 0], 'accelerometer'),
            (slice(3, 6), nothing[:, 1], 'gyroscope'),
        ):
            found[lacks | (measures == other), columns] = np.nan
        return found

    def _check_order(self, found: Sequence[tuple[Source, Stamps, Indices]]) -> None:
        """Raise if time was set back; count readings that come behind their joint state."""
        stamps, order = (np.concatenate([one[k] for one in found]) for k in (1, 2))
        if not len(stamps):
            return
        stamps = stamps[np.argsort(order, kind='stable')]
        newest = np.maximum.accumulate(np.append(self._newest_ns, stamps))
        if (stamps < newest[:-1] - HELD_NS).any():
            raise Irregular
        self._newest_ns = int(newest[-1])
        *others, (_, joints, joint_order) = found
        leading = np.append(self._newest_joints_ns, joints)
        for source, own, own_order in others:
            counts = self._late[source.name]
            counts[0] += int((own <= leading[np.searchsorted(joint_order, own_order)]).sum())
            counts[1] += len(own)
        self._newest_joints_ns = int(leading[-1])

    def _parts(self) -> list[tuple[JointPart, _Stream]]:
        """Return the parts of the joint states, in the order in which they began."""
        parts = [
            (part, _Stream.of(self._pieces.pop(part), (3, len(part.joint_rows))))
            for part in self._joints.parts
        ]
        return sorted(parts, key=lambda one: (int(one[1].stamps[0]), int(one[1].order[0])))

    def _triggers(
        self, parts: Sequence[tuple[JointPart, _Stream]]
    ) -> tuple[Stamps, dict[str, Indices]]:
        """Return the stamps of the samples, and the newest message of each leading part there."""
        leading = [one for one in parts if one[0].name in self._leading]
        if len(leading) == 1:
            ((part, stream),) = leading
            return stream.stamps, {part.name: np.arange(len(stream.stamps))}
        if not leading:
            return np.zeros(0, dtype=np.int64), {}
        owner = np.repeat(np.arange(len(leading)), [len(one.stamps) for _, one in leading])
        stamps, order = (np.concatenate(x) for x in zip(*(one[:2] for _, one in leading)))
        rows = np.lexsort((order, stamps))
        stamps, owner = stamps[rows], owner[rows]
        firsts = [part.first_row for part, _ in leading]
        max_age_ns = round(1e9 * self._settings.joint_states.max_age)
        lead, last, taken = len(self._robot.joint_names), 0, []
        for k, (stamp, number) in enumerate(zip(stamps.tolist(), owner.tolist())):
            if firsts[number] <= lead or stamp - last > max_age_ns:
                lead = firsts[number]
                if stamp > last:
                    last = stamp
                    taken.append(k)
        newest = {
            part.name: np.cumsum(owner == number)[taken] - 1
            for number, (part, _) in enumerate(leading)
        }
        return stamps[taken], newest

    def _at_joints(
        self,
        parts: Sequence[tuple[JointPart, _Stream]],
        instants: Stamps,
        own: Mapping[str, Indices],
    ) -> tuple[Array, States, dict[str, StreamStatistics]]:
        """Return the values of all joints (4, n, n_joints), their states, and the counters."""
        block, states = (np.repeat(x[..., None, :], len(instants), axis=-2) for x in self._assumed)
        given = self._settings.joint_states
        derives = given.velocity_source == 'filter', given.acceleration_source == 'filter'
        statistics = {}
        for part, stream in parts:
            newest = own.get(part.name)
            newest = stream.newest(instants) if newest is None else newest
            found = stream.states(newest, instants, given.max_age)
            fresh = found == FRESH
            at, taken = np.ix_(fresh, part.joint_rows), newest[fresh]
            for row, k in ((POSITION, 0), (VELOCITY, 1), (EFFORT, 2)):
                block[row][at] = stream.values[taken, k]
            block[ACCELERATION][at] = 0.0
            used, lack, counts = fresh, '', {}
            if any(derives):
                filtered = self._derivatives(stream, stream.values[:, 0], newest)
                for row, derived, one in zip((VELOCITY, ACCELERATION), derives, filtered.values):
                    if derived:
                        block[row][at] = one[fresh]
                used, lack = fresh & filtered.ready, filtered.lack
                counts['unfiltered'] = len(np.unique(newest[fresh & ~filtered.ready]))
            states[:, part.rows] = np.where(
                (found == ABSENT)[:, None], states[:, part.rows], found[:, None]
            )
            statistics[part.name] = stream.statistics(
                newest, instants, used=int(used.sum()), filter_lack=lack, **counts
            )
        fresh, positions = states == FRESH, np.isfinite(block[POSITION])
        for row, derived in zip((VELOCITY, ACCELERATION), derives):
            if derived:
                states[fresh & ~np.isfinite(block[row])] = WARMING
        states[fresh & ~positions] = INVALID
        block[:, fresh & ~positions] = np.nan
        return block, states, statistics

    def _derivatives(
        self, stream: _Stream, values: Array, newest: Indices, frozen: Mask | None = None
    ) -> _Derivatives:
        """Return the derivatives of values (n, m); frozen readings reset the filter."""
        used = self._settings.filter
        fed = stream.queued(newest) & (np.arange(len(values)) <= newest[-1])
        resets = np.zeros(len(values), dtype=np.intp)
        if frozen is not None:
            resets = np.cumsum(frozen & fed)
            fed &= ~frozen
        segment, stamps, signals = resets[fed], stream.stamps[fed], values[fed]
        starts = np.searchsorted(segment, segment)
        order = QUINTIC if used.kind == 'quintic' else CUBIC
        found, ready = differentiate(stamps, signals, starts, used.window, order)
        # Behind the last row: nothing is known.
        found = np.concatenate([found, np.full((2, 1, values.shape[1]), np.nan)], axis=1)
        ready = np.append(ready, False)
        rows = np.where(fed, np.cumsum(fed) - 1, len(stamps))
        at = np.append(rows, len(stamps))[newest]
        lack, last = '', len(stamps)
        if not ready[at[-1]]:
            filter_ = smoother(self._settings, values.shape[1])
            begin = last
            if newest[-1] >= 0 and last:
                recent = np.searchsorted(stamps, stamps[-1] - round(2e9 * used.window))
                begin = max(recent, np.searchsorted(segment, resets[newest[-1]]))
            for stamp, signal in zip(stamps[begin:].tolist(), signals[begin:], strict=True):
                filter_.append(stamp, signal)
            lack = filter_.lack
        return _Derivatives(found[:, at], ready[at], lack)

    def _sensors(
        self, kind: str, instants: Stamps
    ) -> tuple[dict[str, StreamStatistics], Array, States]:
        """Return counters, readings (n, n_fts, 6) or (n, n_imus, 9), and states of sensors."""
        settings, statistics = self._settings, {}
        sensors = self._robot.ft_sensors if kind == 'ft' else self._robot.imus
        readings = np.full((len(instants), len(sensors), 9 if kind == 'imu' else 6), np.nan)
        states = np.empty(readings.shape[:2], dtype=np.uint8)
        limit = round(1e9 * settings.frozen_after)
        for index, sensor in enumerate(sensors):
            given = (settings.ft_of if kind == 'ft' else settings.imu_of)(sensor.name)
            measures = getattr(sensor, 'measures', '')
            stream = _Stream.of(self._pieces.pop((kind, index), ()), (6,))
            newest = stream.newest(instants)
            since, repeated = _unchanged_since(stream.values)
            judged = _judged(stream.values, measures)
            frozen = (limit > 0) & (stream.stamps - stream.stamps[since] >= limit)
            codes = np.where(frozen & (judged != INVALID), np.uint8(FROZEN), judged)
            code = stream.states(newest, instants, given.max_age)
            fresh = code == FRESH
            code[fresh] = codes[newest[fresh]]
            used = (code == FRESH) | (code == PARTIAL)
            values = readings[:, index]
            values[used, :6] = stream.values[newest[used]]
            counts = {'invalid': int((code == INVALID).sum()), 'repeated': repeated}
            if kind == 'imu':
                values[used, 6:] = 0.0
                if (
                    measures in ('both', 'gyroscope')
                    and settings.angular_acceleration_source == 'filter'
                ):
                    found = self._derivatives(stream, stream.values[:, :3], newest, frozen)
                    values[used, 6:] = found.values[0, used]
                    late = fresh & (code != FROZEN) & ~found.ready
                    counts['unfiltered'] = len(np.unique(newest[late]))
                    counts['filter_lack'] = found.lack
                turns = np.isfinite(values[:, :3]).all(axis=1)
                known = np.isfinite(values[:, 6:]).all(axis=1)
                values[~(turns & known), 6:] = np.nan
                code[used & turns & ~known] = WARMING
                used &= code != WARMING
            statistics[sensor.name] = stream.statistics(
                newest, instants, used=int(used.sum()), **counts,
                frozen_intervals=_frozen_intervals(stream.stamps, since, judged, limit),
            )  # fmt: skip
            states[:, index] = code
        return statistics, readings, states

    def _temperatures(self, instants: Stamps) -> tuple[dict[str, StreamStatistics], Array | None]:
        """Return the counters of temperatures, and those of each FT sensor (n, n_fts), if any."""
        statistics, sensors = {}, self._robot.ft_sensors
        celsius = np.full((len(instants), len(sensors)), np.nan)
        for index, sensor in enumerate(sensors):
            if not self._settings.ft_of(sensor.name).temperature_topic:
                continue
            stream = _Stream.of(self._pieces.pop(('temperature', index), ()), (1,))
            newest = stream.newest(instants)
            fresh = stream.states(newest, instants, MAX_TEMPERATURE_AGE) == FRESH
            values = stream.values[newest[fresh], 0]
            finite = np.isfinite(values)
            celsius[fresh, index] = np.where(finite, values, np.nan)
            statistics[sensor.name] = stream.statistics(
                newest, instants, used=int(finite.sum()), invalid=int((~finite).sum())
            )
        return statistics, celsius if statistics else None

    def _touches(self, instants: Stamps) -> Touches:
        """Return the contacts at each instant."""
        if not self._contacts:
            return Touches(((),), np.zeros(len(instants), dtype=np.intp))
        stream, present = ContactStream(self._robot, self._settings), []
        self._contacts.sort(key=lambda one: one[:2], reverse=True)
        for instant in instants.tolist():
            while self._contacts and self._contacts[-1][0] <= instant:
                stamp, _, frame, point = self._contacts.pop()
                stream.push(stamp, frame, point)
            present.append(stream.at(instant))
        while self._contacts:
            stamp, _, frame, point = self._contacts.pop()
            stream.push(stamp, frame, point)
        return touches_of(present, stream)


def touches_of(present: Sequence[tuple[Contact, ...]], contacts: ContactStream) -> Touches:
    """Return the contacts that a stream had at each sample."""
    problems = dict(contacts.problems)
    if dropped := contacts.statistics().dropped:
        problems['more contacts at a time than allowed'] = dropped
    return Touches.of(present, problems, contacts.senders.ever_slow)


def _unchanged_since(values: Array) -> tuple[Indices, int]:
    """Return the first row with the bits of each row, and the number of repeated rows."""
    bits = values.view(np.int64)
    same = np.append(False, (bits[1:] == bits[:-1]).all(axis=1))[: len(values)]
    return np.maximum.accumulate(np.where(same, 0, np.arange(len(values)))), int(same.sum())


def _judged(values: Array, measures: str) -> States:
    """Return the states of readings (n, 6) by the numbers that are finite: `SensorStream.judge`."""
    halves = values.reshape(-1, 2, 3)
    turn, shift = np.isfinite(halves).all(axis=2).T
    no_turn, no_shift = np.isnan(halves).all(axis=2).T
    whole = (turn & shift) | (measures == 'accelerometer') & shift
    whole |= (measures == 'gyroscope') & turn
    in_part = (measures == 'both') & ((shift & no_turn) | (turn & no_shift))
    return np.where(whole, FRESH, np.where(in_part, PARTIAL, INVALID)).astype(np.uint8)


def _frozen_intervals(
    stamps: Stamps, since: Indices, judged: States, limit_ns: int
) -> tuple[FrozenInterval, ...]:
    """Return the intervals of bit-equal values that are kept, as `SensorStream` does."""
    last = np.flatnonzero(np.diff(since, append=-1))
    first = since[last]
    frozen = (
        (limit_ns > 0) & (stamps[last] - stamps[first] >= limit_ns) & (judged[last] != INVALID)
    )
    is_open = len(last) > 0 and bool(frozen[-1])
    rows = np.flatnonzero(frozen)[-MAX_INTERVALS - is_open :]
    ends = (stamps[first[rows]], stamps[first[rows] + 1], stamps[last[rows]])
    return tuple(FrozenInterval(*one) for one in zip(*(x.tolist() for x in ends), strict=True))
