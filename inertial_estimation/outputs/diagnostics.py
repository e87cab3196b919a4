# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of inputs and results as findings and key-values, and the findings that are logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from inertial_estimation.estimation.contact_stream import ContactStatistics
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.sender_rates import SlowSender
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.cdr import Writer
from inertial_estimation.signals.router import CONTACTS, Source
from inertial_estimation.signals.stream_statistics import AssemblerStatistics, StreamStatistics

MAX_SKEW = 1.0
"""Difference of clocks that is a finding [s]."""
MIN_RATE_RATIO = 1.5
"""Of a topic to the rate with as many publishers as there should be, if more of them send."""
REPORTS_TO_END = 10
"""Consecutive reports without a finding after which it has ended."""


@dataclass(frozen=True)
class Status:
    """One status of /diagnostics."""

    name: str
    findings: tuple[Finding, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    note: str = 'ok'
    """Message where there are no findings."""
    least: Level = Level.INFO
    """Level where no finding has a higher one."""

    @property
    def level(self) -> Level:
        """Highest level of the findings."""
        return max((self.least, *(one.level for one in self.findings)))

    @property
    def message(self) -> str:
        """Texts of the findings."""
        return '; '.join(one.text for one in self.findings) or self.note


class FindingLog:
    """Findings that appear or end, each once."""

    def __init__(self) -> None:
        self._absent: dict[tuple[str, str], int] = {}
        """Reports since each finding, by subject and code."""

    def update(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
        """Return new findings, and subjects and codes of those that ended."""
        now = {(one.subject, one.code): one for one in findings}
        begun = [one for key, one in now.items() if key not in self._absent]
        self._absent = {key: n + 1 for key, n in self._absent.items()} | dict.fromkeys(now, 0)
        ended = [key for key, n in self._absent.items() if n >= REPORTS_TO_END]
        for key in ended:
            del self._absent[key]
        return begun, [f'{subject}: {code}' for subject, code in ended]


class SourceStatus:
    """Status of each topic, from its messages since the last report."""

    def __init__(self, robot: Robot, timeout: float) -> None:
        self._robot, self.timeout = robot, timeout
        self._before: dict[str, StreamStatistics] = {}
        self._problems: dict[int, dict[str, int]] = {}
        self._usual: dict[str, float] = {}
        """Rates while there were no more publishers than there should be [Hz]."""
        self.mixed = frozenset[tuple[str, str]]()
        """Names and kinds of sources of samples to which more publishers send."""

    def statuses(
        self,
        sources: Sequence[Source],
        statistics: AssemblerStatistics,
        sample: Sample | None,
        contacts: ContactStatistics,
        contact_problems: Mapping[str, int],
        slow: Sequence[SlowSender],
        publishers: Mapping[str, int],
    ) -> Iterator[Status]:
        """Yield the status of the clock and of each topic; publishers: their number by topic."""
        skew = common_skew(sources)
        # One for each sensor, or each set of joints that messages name.
        expected = Counter[str]()
        for one in sources:
            streams = () if one.kind in CONTACTS else _streams_of(one, statistics)
            expected[one.topic] += max(1, len(streams))
        mixed = set()
        yield clock_status(skew)
        for source in sources:
            kind = 'joint states' if source.kind == 'joints' else source.kind
            name = kind if kind in CONTACTS else f'{kind} {source.name}'
            problems = dict(source.problems)
            if kind == 'contacts':
                problems |= contact_problems
            before, self._problems[id(source)] = self._problems.get(id(source), {}), problems
            new = {text: count - before.get(text, 0) for text, count in problems.items()}
            found = list(check_problems(name, {text: n for text, n in new.items() if n}))
            if kind == 'contacts':
                yield contacts_status(contacts, found, slow, self.timeout)
                continue
            if kind in CONTACTS:
                yield Status(kind, tuple(found), {})
                continue
            found += check_skew(name, source, skew)
            streams = _streams_of(source, statistics)
            last = {part: self._before.get(f'{name} {part}', one) for part, one in streams.items()}
            rates = [self._rate(f'{name} {part}', one) for part, one in streams.items()]
            if (count := publishers[source.topic]) <= (most := expected[source.topic]):
                self._usual[name] = sum(rates)
            else:
                what = f'{count} publishers, expected {most}: their messages mix'
                found.append(finding('clock', name, what=what))
                # One that has died is counted for some time.
                if not sum(rates) < MIN_RATE_RATIO * self._usual.get(name, np.nan):
                    mixed.add((source.name, source.kind))
            note = 'ok'
            if kind == 'joint states':
                found += check_joints(name, source, streams.values(), rates)
            else:
                state = sensor_state(source, sample)
                found += check_sensor(name, source, streams[''], rates[0], state)
                count = streams[''].invalid - last[''].invalid
                if count and state == SensorState.FRESH:
                    share = count / max(1, streams[''].received - last[''].received)
                    what = 'reading (invalid at times)'
                    found.append(finding('missing', name, what=what, share=share))
                if kind == 'imu' and (only := self._robot.imus[source.index].measures) != 'both':
                    note = f'ok, {only} only'
            values: dict[str, object] = {}
            for (part, stream), rate in zip(streams.items(), rates):
                end = f' ({part})' if len(streams) > 1 else ''
                for key, value in _stream_values(source, stream, rate, problems).items():
                    values[f'{key}{end}'] = value
            yield Status(name, tuple(found), values, note)
        self.mixed = frozenset(mixed)

    def _rate(self, name: str, now: StreamStatistics) -> float:
        """Return the rate of the stamps since the last call [Hz]; NaN: nothing came."""
        before, self._before[name] = self._before.get(name), now
        if before is None or not before.last_stamp_ns:
            return now.rate
        span = 1e-9 * (now.last_stamp_ns - before.last_stamp_ns)
        return (now.received - before.received) / span if span > 0.0 else float('nan')


def _streams_of(source: Source, statistics: AssemblerStatistics) -> Mapping[str, StreamStatistics]:
    """Return the streams of a topic: of joint states by part, of a sensor that of no name."""
    if source.kind == 'joints':
        begin = f'{source.index}: '
        return {p: one for p, one in statistics.joints.items() if p.startswith(begin)}
    sensors = {'ft': statistics.fts, 'imu': statistics.imus}
    return {'': sensors.get(source.kind, statistics.temperatures)[source.name]}


def sensor_state(source: Source, sample: Sample | None) -> SensorState | None:
    """Return the state of a sensor in the last sample; None: not known."""
    if sample is None:
        return None
    if source.kind == 'temperature':
        if sample.ft_temperatures is None:
            return None
        known = np.isfinite(sample.ft_temperatures[source.index])
        return SensorState.FRESH if known else SensorState.STALE
    states = sample.ft_states if source.kind == 'ft' else sample.imu_states
    return None if states is None else SensorState(int(states[source.index]))


def check_sensor(
    name: str,
    source: Source,
    statistics: StreamStatistics,
    rate: float,
    state: SensorState | None,
) -> Iterator[Finding]:
    """Find sensors that are silent or not used as a whole; rate [Hz]."""
    if (not statistics.received and not source.problems) or (state is None and np.isnan(rate)):
        what = f'topic {source.topic}'
        yield finding('missing', name, level=Level.ERROR, what=what, share=1.0)
    elif state == SensorState.FROZEN:
        yield finding('frozen', name, level=Level.ERROR, what='reading', share=1.0)
    elif state == SensorState.WARMING:
        lack = statistics.filter_lack or 'the window fills'
        yield finding('no_derivative', name, level=Level.ERROR, what=lack)
    elif state not in (None, SensorState.FRESH):
        level = Level.WARNING if state == SensorState.PARTIAL else Level.ERROR
        yield finding('missing', name, level=level, what=f'reading ({state.name.lower()})',
                      share=1.0)  # fmt: skip


def check_problems(name: str, new: Mapping[str, int]) -> Iterator[Finding]:
    """Find messages that were refused since the last report."""
    if new:
        what, more = next(iter(new)), f' and {len(new) - 1} other causes' if len(new) > 1 else ''
        yield finding('refused_message', name, count=sum(new.values()), what=what + more)


def common_skew(sources: Iterable[Source]) -> float:
    """Return the delay of all stamps behind the clock of the node if it is one [s], else NaN."""
    skews = [source.skew for source in sources if source.skew is not None]
    if len(skews) < 2 or max(skews) - min(skews) > MAX_SKEW:
        return float('nan')
    return float(np.mean(skews))


def clock_status(skew: float) -> Status:
    """Return the status of the clock of the node, given the skew of all stamps [s]."""
    findings: tuple[Finding, ...] = ()
    if abs(skew) > MAX_SKEW:
        what = f'all stamps are {skew:.1f} s behind the clock of the node: set use_sim_time'
        findings = (finding('clock', 'clock', what=what),)
    return Status('clock', findings, {'mean skew [ms]': f'{1e3 * skew:.3f}'})


def check_skew(name: str, source: Source, common: float) -> Iterator[Finding]:
    """Find a source whose clock alone is off."""
    if source.skew is not None and abs(source.skew) > MAX_SKEW and not abs(common) > MAX_SKEW:
        what = f'stamps are {source.skew:.1f} s behind the clock of the node'
        yield finding('clock', name, what=what)


def check_joints(
    name: str, source: Source, streams: Iterable[StreamStatistics], rates: Sequence[float]
) -> Iterator[Finding]:
    """Find joint topics that are silent or have no derivatives; rates [Hz]."""
    if np.isnan(rates).all():
        what = f'topic {source.topic}'
        yield finding('missing', name, level=Level.ERROR, what=what, share=1.0)
    elif lacks := [stream.filter_lack for stream in streams if stream.filter_lack]:
        yield finding('no_derivative', name, what=lacks[0])


def contacts_status(
    statistics: ContactStatistics,
    findings: Sequence[Finding],
    slow: Sequence[SlowSender],
    timeout: float,
) -> Status:
    """Return the status of the reported contacts; timeout [s]."""
    found = list(findings)
    found += [
        finding('slow_contacts', 'contacts', count=one.n_gaps, period=one.period, timeout=timeout,
                frame=one.frame) for one in slow
    ]  # fmt: skip
    values = {
        'live': statistics.live,
        'received': statistics.received,
        'dropped': statistics.dropped,
        **{f'period of {one.frame} [ms]': f'{1e3 * one.period:.3f}' for one in slow},
    }
    return Status('contacts', tuple(found), values)


def known_joints_status(
    robot: Robot, sample: Sample | None, statistics: AssemblerStatistics
) -> Status:
    """Return the status of the joints, by the state of each."""
    by_state: dict[str, list[str]] = {}
    if sample is not None and sample.joint_states is not None:
        for name, state in zip(robot.joint_names, sample.joint_states.tolist()):
            by_state.setdefault(SensorState(state).name.lower(), []).append(name)
    found = []
    for state, names in by_state.items():
        if state not in ('fresh', 'assumed'):
            what = f'{state} position of {", ".join(names)}'
            found.append(finding('missing', 'joints', level=Level.ERROR, what=what, share=1.0))
    if sample is not None and not found and np.isnan(sample.velocities).any():
        names = [robot.joint_names[k] for k in np.flatnonzero(np.isnan(sample.velocities))]
        what = f'velocity of {", ".join(names)}'
        found.append(finding('missing', 'joints', level=Level.ERROR, what=what, share=1.0))
    if sample is None and statistics.samples:
        what = 'joint states'
        found.append(finding('missing', 'joints', level=Level.ERROR, what=what, share=1.0))
    values: dict[str, object] = {state: ' '.join(names) for state, names in by_state.items()}
    values |= {'not estimated': ' '.join(statistics.ignored_joints), 'resets': statistics.resets}
    least = Level.WARNING if 'assumed' in by_state else Level.INFO
    return Status('joints', tuple(found), values, least=least)


def submodel_statuses(robot: Robot, estimate: WrenchEstimate) -> Iterator[Status]:
    """Yield the status of each submodel: the quality of its results."""
    for k, submodel in enumerate(robot.submodels):
        quality = int(estimate.submodel_quality[k])
        flags = ' '.join(flag.name.lower() for flag in Quality if quality & flag and flag.name)
        least = Level.WARNING if flags else Level.INFO
        if quality & Quality.MISSING:
            least = Level.ERROR
        force, moment = np.linalg.norm(estimate.residuals[k].reshape(2, 3), axis=1)
        values = {
            'rank': int(estimate.ranks[k]),
            'residual force [N]': f'{force:.3f}',
            'residual moment [Nm]': f'{moment:.4f}',
            'quality': flags,
        }
        yield Status(f'submodel {submodel.name}', (), values, flags or 'measured', least)


def _stream_values(
    source: Source, statistics: StreamStatistics, rate: float, problems: Mapping[str, int]
) -> dict[str, object]:
    """Return the figures of a stream; rate [Hz]."""
    skew = float('nan') if source.skew is None else source.skew
    return {
        'topic': source.topic,
        'rate [Hz]': f'{rate:.1f}',
        'age [ms]': f'{1e3 * statistics.age:.3f}',
        'skew [ms]': f'{1e3 * skew:.3f}',
        'longest gap [ms]': f'{1e3 * statistics.longest_gap:.3f}',
        'received': statistics.received,
        'used': statistics.used,
        'frozen intervals': len(statistics.frozen_intervals),
        'invalid': statistics.invalid,
        'refused (stamp)': statistics.refused,
        'dropped': statistics.dropped,
        'unfiltered': statistics.unfiltered,
        'filter lacks': statistics.filter_lack,
        'decode fallbacks': source.fallbacks,
        **{f'problem: {text}': count for text, count in problems.items()},
    }


def diagnostic_array(stamp_ns: int, node: str, robot: str, statuses: Iterable[Status]) -> bytes:
    """Return the serialized message of some statuses."""
    every = list(statuses)
    writer = Writer()
    writer.time(stamp_ns)
    writer.text('')
    writer.count(len(every))
    for status in every:
        writer.data.append(status.level)
        writer.text(f'{node}: {status.name}')
        writer.text(status.message)
        writer.text(robot)
        writer.count(len(status.values))
        for key, value in status.values.items():
            writer.text(key)
            writer.text(str(value))
    return bytes(writer.data)
