# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a replay as records, and findings of what is not as it should be in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.fault_hypotheses import Fault
from inertial_estimation.findings import Finding, few, finding, limit_of
from inertial_estimation.logs.results import Replay
from inertial_estimation.logs.sensor_agreement import (
    GONE,
    MomentumRecords,
    Record,
    Situation,
    find_situations,
    uninformed_torques,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.stream_statistics import StreamStatistics

UNFIT = ~np.uint8(Quality.ASSUMED)
"""Results with another flag than that are not judged."""
QUALITIES = {
    'wrenches': 'contact_quality', 'torques': 'torque_quality',
    'external_torques': 'external_torque_quality', 'residuals': 'submodel_quality',
}  # fmt: skip
"""Of each result that is judged."""
MIN_SHARE, MAX_GROUPS = 0.01, 4
"""Share and number of the groups of torques without FT sensor that are reported."""
ASSUMED = np.uint8(Quality.ASSUMED)
UNUSABLE = np.isin(
    list(SensorState),
    [SensorState.ABSENT, SensorState.STALE, SensorState.INVALID, SensorState.PARTIAL],
)
"""By state."""
STARTUP = 2.0
"""Streams that come later than this after the first sample are missing [s]."""


class Figures:
    """Number, mean and root mean square of values, from their sums."""

    def __init__(self) -> None:
        self.n, self.sums = 0, np.zeros(2)
        """Number of values; their sum and that of their squares, (2, ...)."""

    @property
    def means(self) -> Array:
        """Mean of the values and of their squares, (2, ...); NaN without values."""
        return self.sums / (self.n or np.nan)

    def record(self) -> Record:
        """Return the figures."""
        mean, square = self.means
        return {'n_samples': self.n, 'mean': mean.tolist(), 'rms': np.sqrt(square).tolist()}


class Summary:
    """Figures of a replay, from one piece of the log after the other."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._robot, self._settings = robot, settings
        self._contacts: dict[str, Contact] = {}
        self._figures: defaultdict[tuple[str, ...], Figures] = defaultdict(Figures)
        """By kind of the result and name."""
        self._assumed = set[tuple[str, str]]()
        """Results that depend on assumed joints."""
        self._free: Mask = np.zeros(len(robot.submodels), dtype=bool)
        """Submodels that are without a contact of six unknowns at times."""
        self._zero: Mask = np.ones(len(robot.joint_names), dtype=bool)
        self._measured = np.zeros_like(self._zero)
        """Joints that report a position of exactly zero."""
        self._reported = np.full((2, len(robot.joint_names)), np.nan)
        """Least and greatest torque that the robot reports of each joint."""
        self._times: list[float] = []
        """First and last time of each piece [s]."""
        self.start_ns = 0
        """Stamp of the first sample."""
        self._n_samples, self._judged, self._periods = 0, 0, list[float]()
        self._lacking: dict[tuple[str, str], list[Any]] = {}
        """Of joints and sensors after the start: samples, those that lack, what first."""
        self._momentum = MomentumRecords(robot, settings)
        self._lack = ''
        """Reason that standard deviations are unknown."""
        self._situations = Counter[tuple[Any, ...]]()

    def add(self, part: Replay, averaged: Indices) -> None:
        """Take a piece; averaged: samples whose standard deviations count."""
        times, samples, clean = part.times, part.recording.samples, part.clean
        self.start_ns = self.start_ns or int(samples.stamp_ns[0])
        self._times += [float(times[0]), float(times[-1])]
        self._periods += [float(np.median(np.diff(times)))] if len(times) > 1 else []
        self._n_samples += len(times)
        self._judged += int(part.judged.sum())
        measured = np.isfinite(samples.positions)
        if samples.joint_states is not None:
            measured &= samples.joint_states != SensorState.ASSUMED
        self._zero &= ((samples.positions == 0.0) | ~measured).all(axis=0)
        self._measured |= measured.any(axis=0)
        self._contacts |= {one.name: one for one in clean.contacts}
        spreads = part.deviations
        self._lack = self._lack or (spreads.lack if spreads else '')
        for kind, names, good in self._results(part):
            assumed = ((getattr(clean, QUALITIES[kind]) & ASSUMED != 0) & good).any(axis=0)
            self._assumed |= {(kind, name) for name, yes in zip(names, assumed) if yes}
            self._add([(kind, name) for name in names], getattr(clean, kind), good)
            if spreads is not None:
                values = getattr(spreads, kind)
                known = ~np.isnan(values).any(axis=tuple(range(2, values.ndim)))
                keys = [(kind, name, 'deviation') for name in names]
                counted = np.isin(spreads.rows, averaged)[:, None]
                self._add(keys, values, known & good[spreads.rows] & counted)
        self._compare(part)
        for kind, found in (('joint', part.through), ('link', part.net)):
            if found is not None:
                keys = [(kind, *one) for one in zip(found.names, found.frames, strict=True)]
                self._add(
                    keys, found.wrenches, np.asarray(np.isfinite(found.wrenches).all(axis=2))
                )
        late = times > self._times[0] + STARTUP + self._settings.filter.window
        for names, kind in (
            (self._robot.joint_names, 'joint'),
            ([imu.name for imu in self._robot.imus], 'imu'),
            ([sensor.name for sensor in self._robot.ft_sensors], 'ft'),
        ):
            states = getattr(samples, f'{kind}_states')
            for k, name in enumerate(() if states is None else names):
                counts = self._lacking.setdefault((kind, name), [0, 0, ''])
                lacking = np.flatnonzero(late & UNUSABLE[states[:, k]])
                if len(lacking) and not counts[2]:
                    state = SensorState(states[lacking[0], k])
                    counts[2] = f'reading ({state.name.lower()})'
                    if state is SensorState.PARTIAL:
                        turns = np.isfinite(samples.angular_velocities[lacking[0], k]).all()
                        counts[2] = 'accelerometer' if turns else 'gyroscope'
                counts[:2] = counts[0] + int(late.sum()), counts[1] + len(lacking)
        self._momentum.add(part)
        self._situations.update({one[:3]: len(one.rows) for one in find_situations(part)})

    def _add(self, keys: Sequence[tuple[str, ...]], values: Array, used: Mask) -> None:
        """Add columns of values (n, k, ...) to the figures of their keys, where used (n, k)."""
        counts, used = used.sum(axis=0), used.reshape(*used.shape, *[1] * (values.ndim - 2))
        known = np.where(used, values, 0.0)
        sums = known.sum(axis=0), np.einsum('i...,i...->...', known, known)
        for key, n, *own in zip(keys, counts.tolist(), *sums, strict=True):
            figures = self._figures[key]
            figures.n, figures.sums = figures.n + n, (figures.sums.T + np.array(own).T).T

    def _results(self, part: Replay) -> Iterator[tuple[str, Sequence[str], Mask]]:
        """Yield each kind of results, their names, and the samples at which each is judged."""
        robot, clean = self._robot, part.clean
        names = {
            'wrenches': [contact.name for contact in clean.contacts],
            'torques': robot.joint_names,
            'external_torques': robot.joint_names,
            'residuals': [submodel.name for submodel in robot.submodels],
        }
        for kind, flags in QUALITIES.items():
            quality = getattr(clean, flags)
            good = part.judged[:, None] & (quality & UNFIT == 0)
            if kind == 'residuals':
                # No contact with six unknowns; a merged submodel may have that of the other one.
                merged = (clean.submodel_quality & np.uint8(Quality.MERGED)) != 0
                used = np.ones(merged.shape, dtype=bool)
                for c, contact in enumerate(clean.contacts):
                    if contact.kind == 'wrench':
                        s = self._robot.submodel_of(contact.frame)
                        used[:, s] &= (clean.contact_quality[:, c] & GONE) != 0
                        used[:, s] &= ~merged[:, s]
                self._free |= used.any(axis=0)
                good &= used
            yield kind, names[kind], good

    def _compare(self, part: Replay) -> None:
        """Compare torques with those that the robot reports."""
        torques, reported = part.clean.torques, part.recording.samples.efforts
        if reported is None:
            return
        self._reported[0] = np.fmin(self._reported[0], np.fmin.reduce(reported, axis=0))
        self._reported[1] = np.fmax(self._reported[1], np.fmax.reduce(reported, axis=0))
        good = part.judged[:, None] & (part.clean.torque_quality & UNFIT == 0)
        good &= np.isfinite(torques + reported)
        both = np.stack([torques, reported, torques - reported, torques * reported], axis=2)
        self._add([('compared', name) for name in self._robot.joint_names], both, good)

    def record(self, replay: Replay) -> Record:
        """Return all figures: numbers, and lists of records; of the replay some samples."""
        robot, offsets, log = self._robot, replay.offsets, replay.recording
        statistics, share = log.statistics, len(replay.times) / self._n_samples
        found = self._situations.most_common()
        situations = [Situation._make((*key, np.arange(n))) for key, n in found]
        uninformed = uninformed_torques(replay, situations)
        fts, imus, joints = (
            list(_streams(getattr(statistics, kind, {}), log.origin_ns, self._times))
            for kind in ('fts', 'imus', 'joints')
        )
        for one in joints:
            # The name of a part is the index of its topic and its joints.
            part, _, names = one['name'].partition(': ')
            topic = self._settings.joint_states.topics[int(part)]
            one |= {'name': topic, 'joints': names.split()}
        contacts = self._contacts
        free = [one.name for one, is_free in zip(robot.submodels, self._free) if is_free]
        return {
            'robot': robot.name,
            'n_samples': self._n_samples,
            'time_range_s': [self._times[0], self._times[-1]],
            'judged_s': float(self._judged * np.median(self._periods or [0.0])),
            'offset_source': offsets.request.source,
            'offset_support': offsets.support,
            'offsets': [
                {'sensor': s.name, 'assumed': bool(assumed), 'offset': o.tolist()}
                for s, assumed, o in zip(
                    robot.ft_sensors, offsets.assumed, offsets.calibration.offsets, strict=True
                )
            ],
            'fts': fts,
            'imus': imus,
            'joint_states': joints,
            'wrenches': [
                one | {'frame': contact.frame}
                for one, contact in zip(
                    self._records('wrenches', 'contact', contacts), contacts.values(), strict=True
                )
            ],
            'residuals': list(self._records('residuals', 'submodel', free)),
            'torques': list(self._torques()),
            'support': self._support(),
            'external_torques': list(
                self._records('external_torques', 'joint', robot.joint_names) if contacts else ()
            ),
            'deviations_lack': self._lack,
            **{
                key: [
                    {kind: of[1], 'frame': of[2], **figures.record()}
                    for of, figures in self._figures.items()
                    if of[0] == kind
                ]
                for key, kind in (('through', 'joint'), ('net', 'link'))
            },
            'momentum': self._momentum.records(),
            'uninformed': [
                one | {'sample_share': share * one['sample_share']} for one in uninformed
            ],
        }  # fmt: skip

    def _records(self, kind: str, of: str, names: Iterable[str]) -> Iterator[Record]:
        """Yield the figures of columns of a result."""
        for name in names:
            figures, deviations = self._figures[kind, name], self._figures[kind, name, 'deviation']
            yield {
                of: name,
                'assumed': (kind, name) in self._assumed,
                **figures.record(),
                'standard_deviation': np.broadcast_to(
                    deviations.means[0], figures.means[0].shape
                ).tolist(),
            }

    def _torques(self) -> Iterator[Record]:
        """Yield each torque, and its error against the one that the robot reports."""
        changes = dict(zip(self._robot.joint_names, self._reported[1] > self._reported[0]))
        for one in self._records('torques', 'joint', self._robot.joint_names):
            name = one['joint']
            figures = self._figures['compared', name] if changes[name] else Figures()
            mean, square = (np.resize(x, 4) for x in figures.means)
            spread = np.prod(np.maximum(square[:2] - mean[:2] ** 2, 0.0))
            with np.errstate(invalid='ignore', divide='ignore'):
                correlation = (mean[3] - mean[0] * mean[1]) / np.sqrt(spread)
            yield {
                **one,
                'n_compared': figures.n,
                'error_mean': float(mean[2]),
                'error_rms': float(np.sqrt(square[2])),
                'correlation': float(correlation),
            }

    def _support(self) -> Record | None:
        """Compare the force at a contact in the fixed link's frame with the weight."""
        robot, gravity = self._robot, float(np.linalg.norm(self._robot.gravity))
        weight = robot.mass * gravity
        for contact in self._contacts.values():
            figures = self._figures['wrenches', contact.name]
            if contact.frame == robot.fixed_frame and weight and figures.n:
                mean = float(-figures.means[0, :3] @ robot.gravity / gravity)
                return {
                    'contact': contact.name,
                    'mean_upward_force_n': mean,
                    'weight_n': weight,
                    'relative_error': mean / weight - 1.0,
                }
        return None

    def findings(self) -> Iterator[Finding]:
        """Yield joints and sensors without values after the start, or of exact zeros."""
        for (_, name), (n, lacking, what) in self._lacking.items():
            if lacking:
                yield finding('missing', name, what=what, share=lacking / n)
        zero = self._zero & self._measured
        for k in np.flatnonzero(zero & (zero != self._measured).any()):
            name = self._robot.joint_names[k]
            yield finding('constant', name, what='position', value=0.0, count=self._n_samples)


def _streams(
    streams: Mapping[str, StreamStatistics], origin_ns: int, times: Sequence[float]
) -> Iterator[Record]:
    """Yield counts and rate of each stream, and when it was frozen, after the first FT message."""
    for name, s in streams.items():
        frozen = [
            np.clip((np.array([one.first_ns, one.last_ns]) - origin_ns) / 1e9, times[0], times[-1])
            for one in s.frozen_intervals
        ]
        intervals = [one.tolist() for one in frozen if one[1] > one[0]]
        counts = ('received', 'repeated', 'invalid', 'refused', 'restarts', 'unfiltered')
        yield {
            'name': name,
            **{key: getattr(s, key) for key in counts},
            'rate_hz': s.rate,
            'longest_gap_s': s.longest_gap,
            'never_filtered': s.filter_lack if s.unfiltered and not s.used else '',
            'frozen_s': sum(stop - start for start, stop in intervals),
            'frozen_intervals_s': intervals,
        }


def replay_findings(replay: Replay) -> Iterator[Finding]:
    """Yield what the summary of a replay shows that is not as it should be."""
    summary, log = replay.summary, replay.recording
    for stream in (*summary['fts'], *summary['imus'], *summary['joint_states']):
        yield from stream_findings(stream, float(np.ptp(summary['time_range_s'])))
    problems = dict(log.problems)
    if log.touches is not None:
        problems = {'contacts': log.touches.problems, **problems}
        for sender in log.touches.slow_senders:
            yield finding('slow_contacts', sender.frame, count=sender.n_gaps, period=sender.period)
    for source, counts in problems.items():
        for what, count in counts.items():
            yield finding('refused_message', source, count=count, what=what)
    for source, share in log.late.items():
        if share > limit_of('late_message'):
            yield finding('late_message', source, share=share)
    yield from replay.offsets.findings
    support = summary['support']
    if support is not None and abs(support['relative_error']) > limit_of('weight'):
        yield finding(
            'weight', support['contact'], force=support['mean_upward_force_n'],
            weight=support['weight_n'], error=support['relative_error'],
        )  # fmt: skip
    weight = replay.robot.mass * float(np.linalg.norm(replay.robot.gravity))
    robot, contacts = replay.robot, replay.clean.contacts
    held = {robot.submodels[robot.submodel_of(one.frame)].name for one in contacts}
    for one in summary['residuals'] if contacts else ():
        force = float(np.linalg.norm(one['mean'][:3]))
        if one['submodel'] not in held and force > limit_of('weight') * weight > 0.0:
            yield finding('weight', one['submodel'], force=force, weight=0.0, error=force / weight)
    if doubtful := [one for one in summary['momentum'] if one['doubtful']]:
        keys = 'unexplained_force_n', 'unexplained_moment_nm'
        force, moment = np.sqrt([np.mean([one[k] ** 2 for one in doubtful]) for k in keys])
        time = sum(one['to_s'] - one['from_s'] for one in doubtful)
        yield finding('momentum', '', force=float(force), moment=float(moment), time=time)
    if faults := summary['faults']:
        first, *others = (Fault(**one) for one in faults)
        also = ''.join(f'; or {one.subject}: {one.what}' for one in others)
        yield finding(
            'fault', first.subject, kind=first.what, explained=first.explained, others=also,
        )  # fmt: skip
    notable = [group for group in summary['uninformed'] if group['sample_share'] >= MIN_SHARE]
    for group in notable[:MAX_GROUPS]:
        joints = few(group['joints'])
        yield finding('uninformed', group['submodel'], joints=joints, share=group['sample_share'])


def stream_findings(stream: Record, duration: float) -> Iterator[Finding]:
    """Yield frozen intervals, unfilled filters and clock jumps of a stream; duration [s]."""
    name, frozen = stream['name'], stream['frozen_s']
    if frozen > 0.0:
        share = frozen / max(duration, frozen)
        yield finding('frozen', name, what='reading', share=share, time=frozen)
    if stream['never_filtered']:
        yield finding('no_derivative', name, what=stream['never_filtered'])
    if stream['restarts']:
        yield finding('clock', name, what=f'stamps go back {stream["restarts"]} times')
    if stream['refused'] > MIN_SHARE * stream['received']:
        what = 'stamps are zero, repeated or earlier than the one before'
        yield finding('refused_message', name, count=stream['refused'], what=what)
