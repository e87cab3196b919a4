# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples of a log, made of whole streams at once: those of `SampleAssembler` from arrays.

Stamps may jitter, come in any order within `HELD_NS`, and stop; the clock may not be set back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.config import EstimatorSettings, FtSettings, ImuSettings
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.log import Log, Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.sample import SensorState as State
from inertial_estimation.signals.batch_filter import differentiate
from inertial_estimation.signals.derivatives import smoother
from inertial_estimation.signals.joint_stream import (
    EFFORT,
    POSITION,
    VELOCITY,
    JointPart,
    JointStreams,
)
from inertial_estimation.signals.message_blocks import Block, read_blocks
from inertial_estimation.signals.router import CONTACTS, NOTHING, Router, Source, misfit
from inertial_estimation.signals.savitzky_golay import CUBIC, QUINTIC
from inertial_estimation.signals.sensor_stream import MAX_INTERVALS
from inertial_estimation.signals.stream import MAX_QUEUE
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
    """The log needs the assembler, message by message."""


class _Stream:
    """Messages of one stream at the samples: of equal stamps the first, pieces (stamps, ...)."""

    def __init__(self, pieces: list[tuple[Any, ...]], width: int) -> None:
        self.stamps, self.order = np.zeros((2, 0), dtype=np.int64)
        self.values, n = np.zeros((0, width)), 0
        if pieces:
            stamps, order, values = (np.concatenate(part) for part in zip(*pieces, strict=True))
            pieces.clear()
            rows: Indices | slice = slice(None)
            if not (np.diff(stamps) > 0).all():
                rows = np.argsort(stamps, kind='stable')
                rows = rows[np.diff(stamps[rows], prepend=-1) > 0]
            self.stamps, self.order, self.values = stamps[rows], order[rows], values[rows]
            n = len(stamps)
        self._counts: dict[str, Any] = {'refused': n - len(self.stamps)}

    def place(self, instants: Stamps, max_age: float, newest: Indices | None = None) -> None:
        """Set `newest`, the message of each sample, -1 for none, and `states` by their ages."""
        if newest is None:
            newest = np.searchsorted(self.stamps, instants, side='right') - 1
        self.newest, rows = newest, np.arange(len(self.stamps))
        ages = instants - np.append(self.stamps, 0)[newest]
        stale = np.where(ages > round(1e9 * max_age), State.STALE, State.FRESH)
        self.states = np.where(newest < 0, State.ABSENT, stale).astype(np.uint8)
        ends = np.append(newest, len(rows) - 1)
        kept = ends[np.searchsorted(newest, rows)] - rows < MAX_QUEUE
        self.fed: Mask = kept & (rows <= newest[-1])
        """Messages that reach a sample or its filter."""
        self._counts['dropped'] = int((~kept).sum())
        if newest[-1] >= 0:
            self._counts['age'] = 1e-9 * int(ages[-1])

    def statistics(self, **counts: Any) -> StreamStatistics:
        """Return the counters of the stream."""
        found = StreamStatistics(received=len(self.stamps), **self._counts, **counts)
        if len(self.stamps):
            found.last_stamp_ns = int(self.stamps[-1])
            found.longest_gap = 1e-9 * int(np.diff(self.stamps).max(initial=0))
            if span := 1e-9 * int(self.stamps[-1] - self.stamps[0]):
                found.rate = (len(self.stamps) - 1) / span
        return found

    def derive(
        self, values: Array, settings: EstimatorSettings, frozen: Mask, used: Mask
    ) -> Array:
        """
        Return both derivatives at the samples, (2, n_samples, m), and set `ready`.

        values (n, m); frozen (n,): messages that reset the filter; used (n_samples,): samples
        that ask for its derivatives.
        """
        given, fed = settings.filter, self.fed & ~frozen
        resets = np.cumsum(frozen & self.fed)
        segment, stamps = resets[fed], self.stamps[fed]
        signals = values if fed.all() else values[fed]
        order = QUINTIC if given.kind == 'quintic' else CUBIC
        found, ready = differentiate(
            stamps, signals, np.searchsorted(segment, segment), given.window, order
        )
        # The last row stands for messages that are not filtered.
        ready = np.append(ready, False)
        rows = np.append(np.where(fed, np.cumsum(fed) - 1, len(stamps)), len(stamps))[self.newest]
        self.ready: Mask = ready[rows]
        lacking = self.newest[used & ~self.ready]
        self._counts['unfiltered'] = len(np.unique(lacking))
        if not self.ready[-1]:
            one, begin = smoother(settings, values.shape[1]), len(stamps)
            if begin and self.newest[-1] >= 0:
                recent = np.searchsorted(stamps, stamps[-1] - round(2e9 * given.window))
                begin = max(recent, np.searchsorted(segment, resets[self.newest[-1]]))
            for stamp, signal in zip(stamps[begin:].tolist(), signals[begin:], strict=True):
                one.append(stamp, signal)
            self._counts['filter_lack'] = one.lack
        known = rows < len(stamps)
        if known.all():
            return np.take(found, rows, axis=1)
        derived = np.full((2, len(rows), values.shape[1]), np.nan)
        derived[:, known] = found[:, rows[known]]
        return derived


class ArraySamples:
    """Collects the readings of a log in pieces, and makes its samples."""

    def __init__(self, router: Router, robot: Robot, settings: EstimatorSettings) -> None:
        used, fts = settings.filter, robot.ft_sensors
        if (
            used.kind == 'kalman' or used.delay or used.smooth_readings
            or any(settings.ft_of(ft.name).temperature_topic for ft in fts)
            or not set(robot.joint_names) - set(settings.joint_states.assumed)
        ):  # fmt: skip
            raise Irregular
        self._router, self._robot, self._settings = router, robot, settings
        self._joints = JointStreams(robot.joint_names, settings)
        self._assumed = self._joints.at(0)
        self._leading = set[str]()
        """Parts of the joint topic that triggers."""
        self._pieces: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
        self._contacts: list[tuple[int, int, str, Array]] = []
        self._newest_ns = self._newest_joints_ns = 0
        self._late = {source.name: [0, 0] for source in router.sources[:-1]}
        self._origins: list[tuple[int, int]] = []

    def add(self, messages: Mapping[str, tuple[list[bytes], list[int]]]) -> None:
        """Take a piece of a log: messages of each topic, and their places in the log."""
        found: list[tuple[Source, Stamps, Indices]] = []
        for source in self._router.sources:
            data, places = messages.get(source.topic, ([], []))
            if (blocks := read_blocks(source, data)) is None:
                raise Irregular
            order, stamps = np.array(places, dtype=np.intp), np.zeros(len(data), dtype=np.int64)
            for block in blocks:
                stamps[block.rows] = block.stamps + source.offset_ns
                self._keep(source, block, stamps[block.rows], order[block.rows])
            if source.kind == 'ft' and len(data):
                first = int(stamps.min())
                self._origins.append((first, first - source.offset_ns))
            found.append((source, stamps, order))
        self._check_order(found)

    def _keep(self, source: Source, block: Block, stamps: Stamps, order: Indices) -> None:
        """Keep the readings of a block."""
        kind, values, n = source.kind, block.arrays[0], len(stamps)
        key: Any = kind, source.index
        if kind == 'joints':
            names = block.texts[1]
            sizes = [array.shape[1] for array in block.arrays]
            if problem := misfit(len(names), sizes):
                source.note(problem, n)
            if sizes[0] != len(names):
                return
            layout = self._joints.layout(source.index, names)
            if layout.part is None:
                return
            key = layout.part
            if source.index == 0:
                self._leading.add(key.name)
            values = np.full((n, 3, len(key.joint_rows)), np.nan)
            for k, given in enumerate(block.arrays):
                if given.shape[1] == len(names):
                    values[:, k] = given[:, layout.columns]
        elif kind == 'imu':
            nothing = values[:, [16, 28]] == -1.0
            if count := int(nothing.all(axis=1).sum()):
                source.note(NOTHING, count)
            values = np.concatenate([values[:, 13:16], values[:, 25:28]], axis=1)
            measures = self._robot.imus[source.index].measures
            values[nothing[:, 0] | (measures == 'accelerometer'), :3] = np.nan
            values[nothing[:, 1] | (measures == 'gyroscope'), 3:] = np.nan
        elif kind in CONTACTS:
            found = zip(stamps.tolist(), order.tolist(), values, strict=True)
            self._contacts += [(ns, at, block.texts[0], point) for ns, at, point in found]
            return
        self._pieces[key].append((stamps, order, values))

    def _check_order(self, found: Sequence[tuple[Source, Stamps, Indices]]) -> None:
        """Raise if time was set back; count readings that come behind their joint state."""
        stamps, order = (np.concatenate([one[k] for one in found]) for k in (1, 2))
        stamps = stamps[np.argsort(order, kind='stable')]
        newest = np.maximum.accumulate(np.append(self._newest_ns, stamps))
        if (stamps < newest[:-1] - HELD_NS).any():
            raise Irregular
        *others, (_, joints, joint_order) = found
        leading = np.append(self._newest_joints_ns, joints)
        for source, own, own_order in others:
            counts = self._late[source.name]
            counts[0] += int((own <= leading[np.searchsorted(joint_order, own_order)]).sum())
            counts[1] += len(own)
        self._newest_ns, self._newest_joints_ns = int(newest[-1]), int(leading[-1])

    def log(self) -> Log:
        """Return the log of all pieces."""
        parts = [(part, _Stream(self._pieces.pop(part), 0)) for part in self._joints.parts]
        parts.sort(key=lambda one: (one[1].stamps[0], one[1].order[0]))
        rows = [row for part, _ in parts for row in part.joint_rows.tolist()]
        instants, newest = self._triggers([one for one in parts if one[0].name in self._leading])
        if not len(instants) or len(set(rows)) < len(rows):
            raise Irregular
        for part, stream in parts:
            stream.place(instants, self._settings.joint_states.max_age, newest.get(part.name))
        block, states, joints = self._at_joints(parts)
        fts, readings, ft_states = self._at_sensors('ft', instants)
        imus, motions, imu_states = self._at_sensors('imu', instants)
        w, a, dw = (np.ascontiguousarray(motions[:, :, k : k + 3]) for k in (0, 3, 6))
        samples = SampleBatch(
            instants, block[0], block[1], block[2], w, a, dw, readings,
            states, imu_states, ft_states, block[EFFORT],
        )  # fmt: skip
        rates = np.full(len(self._robot.joint_names), np.nan)
        for part, _ in parts:
            rates[part.rows] = joints[part.name].rate
        sensors = (np.array([one.rate for one in kind.values()]) for kind in (imus, fts))
        return Log(
            samples,
            min(self._origins, default=(0, int(instants[0])))[1],
            AssemblerStatistics(len(instants), 0, self._joints.ignored, joints, fts, imus),
            self._touches(instants),
            StreamRates(rates, *sensors),
            late={name: late / n for name, (late, n) in self._late.items() if late},
        )

    def _triggers(
        self, leading: Sequence[tuple[JointPart, _Stream]]
    ) -> tuple[Stamps, dict[str, Indices]]:
        """Return the stamps of the samples, and the newest message of each leading part there."""
        if not leading:
            return np.zeros(0, dtype=np.int64), {}
        owners = np.repeat(np.arange(len(leading)), [len(one.stamps) for _, one in leading])
        stamps = np.concatenate([one.stamps for _, one in leading])
        rows = np.lexsort((np.concatenate([one.order for _, one in leading]), stamps))
        stamps, owners, taken = stamps[rows], owners[rows], np.arange(len(rows))
        if len(leading) > 1:
            taken = self._leads(stamps, owners, [part.first_row for part, _ in leading])
        return stamps[taken], {
            part.name: np.cumsum(owners == k)[taken] - 1 for k, (part, _) in enumerate(leading)
        }

    def _leads(self, stamps: Stamps, owners: Indices, firsts: Sequence[int]) -> Indices:
        """Return the messages that hold the lead joint, as `SampleAssembler.push_joints`."""
        max_age_ns = round(1e9 * self._settings.joint_states.max_age)
        lead, last, taken = len(self._robot.joint_names), 0, []
        for k, (stamp, owner) in enumerate(zip(stamps.tolist(), owners.tolist(), strict=True)):
            if firsts[owner] <= lead or stamp - last > max_age_ns:
                lead = firsts[owner]
                if stamp > last:
                    last = stamp
                    taken.append(k)
        return np.array(taken, dtype=np.intp)

    def _at_joints(
        self, parts: Sequence[tuple[JointPart, _Stream]]
    ) -> tuple[Array, States, dict[str, StreamStatistics]]:
        """Return the values of all joints (4, n, n_joints), their states, and the counters."""
        n, given, statistics = len(parts[0][1].newest), self._settings.joint_states, {}
        block: Array = np.repeat(self._assumed[0][:, None], n, axis=1)
        states: States = np.repeat(self._assumed[1][None], n, axis=0)
        derived = {
            VELOCITY + k: k
            for k, source in enumerate((given.velocity_source, given.acceleration_source))
            if source == 'filter'
        }
        for part, stream in parts:
            fresh = stream.states == State.FRESH
            at: Any = np.ix_(fresh, part.joint_rows)
            if fresh.all():
                at = slice(None), part.rows
            taken, used = stream.newest[fresh], fresh
            block[:, at[0], at[1]] = 0.0
            for row, k in ((POSITION, 0), (VELOCITY, 1), (EFFORT, 2)):
                block[row][at] = stream.values[taken, k]
            if derived:
                none = np.zeros(len(stream.stamps), dtype=bool)
                found = stream.derive(stream.values[:, 0], self._settings, none, fresh)
                for row, k in derived.items():
                    block[row][at] = found[k, fresh]
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
        self, kind: str, instants: Stamps
    ) -> tuple[dict[str, StreamStatistics], Array, States]:
        """Return counters, readings (n, n_fts, 6) or (n, n_imus, 9), and states of sensors."""
        settings, statistics = self._settings, {}
        sensors: list[tuple[str, FtSettings | ImuSettings, str]]
        if kind == 'ft':
            sensors = [(one.name, settings.ft_of(one.name), '') for one in self._robot.ft_sensors]
        else:
            sensors = [
                (one.name, settings.imu_of(one.name), one.measures) for one in self._robot.imus
            ]
        readings = np.full((len(instants), len(sensors), 9 if kind == 'imu' else 6), np.nan)
        states = np.empty(readings.shape[:2], dtype=np.uint8)
        limit_ns = round(1e9 * settings.frozen_after)
        for index, (name, given, measures) in enumerate(sensors):
            stream = _Stream(self._pieces[kind, index], 6)
            stream.place(instants, given.max_age)
            if isinstance(given, FtSettings) and given.range:
                stream.values[(np.abs(stream.values) >= given.range).any(axis=1)] = np.nan
            since, judged = _unchanged_since(stream.values), _judged(stream.values, measures)
            frozen = (limit_ns > 0) & (stream.stamps - stream.stamps[since] >= limit_ns)
            code, values = stream.states, readings[:, index]
            fresh = code == State.FRESH
            code[fresh] = np.where(frozen & (judged != State.INVALID), State.FROZEN, judged)[
                stream.newest[fresh]
            ]
            used = (code == State.FRESH) | (code == State.PARTIAL)
            values[used, :6] = stream.values[stream.newest[used]]
            if kind == 'imu':
                values[used, 6:] = 0.0
                source = settings.angular_acceleration_source
                if measures in ('both', 'gyroscope') and source == 'filter':
                    asked = fresh & (code != State.FROZEN)
                    found = stream.derive(stream.values[:, :3], settings, frozen, asked)
                    values[used, 6:] = found[0, used]
                turns, known = np.isfinite(values.reshape(-1, 3, 3)).all(axis=2)[:, ::2].T
                values[~(turns & known), 6:] = np.nan
                code[used & turns & ~known] = State.WARMING
                used &= code != State.WARMING
            statistics[name] = stream.statistics(
                used=int(used.sum()), invalid=int((code == State.INVALID).sum()),
                repeated=int((since < np.arange(len(since))).sum()),
                frozen_intervals=_frozen_intervals(stream.stamps, since, judged, limit_ns),
            )  # fmt: skip
            states[:, index] = code
        return statistics, readings, states

    def _touches(self, instants: Stamps) -> Touches:
        """Return the contacts at each instant."""
        stream, present = ContactStream(self._robot, self._settings), []
        waiting = sorted(self._contacts, key=lambda one: one[:2], reverse=True)
        for instant in (*instants.tolist(), None):
            while waiting and (instant is None or waiting[-1][0] <= instant):
                stamp, _, frame, point = waiting.pop()
                stream.push(stamp, frame, point)
            if instant is not None:
                present.append(stream.at(instant))
        return touches_of(present, stream)


def touches_of(present: Sequence[tuple[Contact, ...]], contacts: ContactStream) -> Touches:
    """Return the contacts that a stream had at each sample."""
    problems = dict(contacts.problems)
    if dropped := contacts.statistics().dropped:
        problems['more contacts at a time than allowed'] = dropped
    return Touches.of(present, problems, contacts.senders.ever_slow)


def _unchanged_since(values: Array) -> Indices:
    """Return the first row with the bits of each row."""
    bits = values.view(np.int64)
    new = np.append(True, (bits[1:] != bits[:-1]).any(axis=1))[: len(values)]
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))


def _judged(values: Array, measures: str) -> States:
    """Return the states of readings (n, 6) by their finite numbers, as `SensorStream.judge`."""
    halves = values.reshape(-1, 2, 3)
    finite: Mask = np.asarray(np.isfinite(halves).all(axis=2))
    absent: Mask = np.asarray(np.isnan(halves).all(axis=2))
    (turn, shift), (no_turn, no_shift) = finite.T, absent.T
    declared = {'accelerometer': shift, 'gyroscope': turn}.get(measures, turn & shift)
    in_part = (measures == 'both') & ((shift & no_turn) | (turn & no_shift))
    states = np.where(in_part, State.PARTIAL, State.INVALID)
    return np.where(declared | (turn & shift), State.FRESH, states).astype(np.uint8)


def _frozen_intervals(
    stamps: Stamps, since: Indices, judged: States, limit_ns: int
) -> tuple[FrozenInterval, ...]:
    """Return the intervals of bit-equal values that `SensorStream` keeps."""
    last = np.flatnonzero(np.diff(since, append=-1))
    first = since[last]
    frozen = (limit_ns > 0) & (stamps[last] - stamps[first] >= limit_ns)
    frozen &= judged[last] != State.INVALID
    # The one that is open comes on top.
    rows = np.flatnonzero(frozen)[-MAX_INTERVALS - int(frozen[-1:].sum()) :]
    ends = (stamps[first[rows]], stamps[first[rows] + 1], stamps[last[rows]])
    return tuple(FrozenInterval(*one) for one in zip(*(x.tolist() for x in ends), strict=True))
