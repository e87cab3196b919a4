# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a replay as records, and findings of what is not as it should be in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.fault_hypotheses import Fault
from inertial_estimation.estimation.reading_checks import find_impossible
from inertial_estimation.findings import Finding, few, finding, limit_of
from inertial_estimation.logs.log import changing
from inertial_estimation.logs.results import Inside, Replay
from inertial_estimation.logs.sensor_agreement import GONE, Record
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
UNUSABLE = (SensorState.ABSENT, SensorState.STALE, SensorState.INVALID, SensorState.PARTIAL)
STARTUP = 2.0
"""Streams that come later than this after the first sample are missing [s]."""


def summarize(replay: Replay) -> Record:
    """Return the figures of a replay: numbers, and lists of records."""
    robot, log, clean, offsets = replay.robot, replay.recording, replay.clean, replay.offsets
    times, statistics = log.times, log.statistics
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    fts, imus, joints = (
        list(_streams(getattr(statistics, kind, {}), log.origin_ns, times))
        for kind in ('fts', 'imus', 'joints')
    )
    for one in joints:
        # The name of a part is the index of its topic and its joints.
        part, _, names = one['name'].partition(': ')
        one |= {'name': replay.settings.joint_states.topics[int(part)], 'joints': names.split()}
    contacts = [contact.name for contact in clean.contacts]
    return {
        'robot': robot.name,
        'n_samples': len(times),
        'time_range_s': [float(times[0]), float(times[-1])],
        'judged_s': float(replay.judged.sum()) * usual,
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
                _columns(replay, 'wrenches', 'contact', contacts), clean.contacts, strict=True
            )
        ],
        'residuals': list(_residuals(replay)),
        'torques': list(_torques(replay)),
        'support': _support(replay),
        'external_torques': list(
            _columns(replay, 'external_torques', 'joint', robot.joint_names) if contacts else ()
        ),
        'deviations_lack': replay.deviations.lack if replay.deviations else '',
        'through': list(_inside('joint', replay.through)),
        'net': list(_inside('link', replay.net)),
    }


def _streams(
    streams: Mapping[str, StreamStatistics], origin_ns: int, times: Array
) -> Iterator[Record]:
    """
    Yield counts and rate of each stream, and when it was frozen at the times of the samples.

    Times are in seconds after the first FT message.
    """
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


def _figures(values: Array) -> Record:
    """Return number, mean and root mean square of values, (n,) or (n, 6)."""
    n = len(values)
    mean, square = (np.sum(one, axis=0) / (n or np.nan) for one in (values, values**2))
    return {'n_samples': n, 'mean': mean.tolist(), 'rms': np.sqrt(square).tolist()}


def _good(replay: Replay, kind: str) -> Mask:
    """Return the samples at which each column of a result is judged, shape (n, m)."""
    quality = getattr(replay.clean, QUALITIES[kind])
    return np.asarray(replay.judged[:, None] & (quality & UNFIT == 0))


def _columns(
    replay: Replay, kind: str, of: str, names: Sequence[str], used: Mask | bool = True
) -> Iterator[Record]:
    """Yield the figures of each column of a result, at used samples (n, n_names)."""
    results, qualities = getattr(replay.clean, kind), getattr(replay.clean, QUALITIES[kind])
    good, spreads = _good(replay, kind) & used, replay.deviations
    for k, name in enumerate(names):
        rows = good[:, k]
        known = np.full((0, *results.shape[2:]), np.nan)
        if spreads is not None:
            known = getattr(spreads, kind)[rows[spreads.rows], k]
            known = known[~np.isnan(known).any(axis=tuple(range(1, known.ndim)))]
        yield {
            of: name,
            'assumed': bool((qualities[rows, k] & Quality.ASSUMED).any()),
            **_figures(results[rows, k]),
            'standard_deviation': _figures(known)['mean'],
        }


def _residuals(replay: Replay) -> Iterator[Record]:
    """Yield the figures of submodels at samples in which no contact has six unknowns."""
    robot, estimate = replay.robot, replay.clean
    merged = (estimate.submodel_quality & np.uint8(Quality.MERGED)) != 0
    used: Mask = np.ones(merged.shape, dtype=bool)
    for c, contact in enumerate(estimate.contacts):
        if contact.kind == 'wrench':
            # A merged submodel may have the contact of the other one.
            s = robot.submodel_of(contact.frame)
            used[:, s] &= ((estimate.contact_quality[:, c] & GONE) != 0) & ~merged[:, s]
    names = [submodel.name for submodel in robot.submodels]
    records = _columns(replay, 'residuals', 'submodel', names, used)
    yield from (one for one, some in zip(records, used.T, strict=True) if some.any())


def _torques(replay: Replay) -> Iterator[Record]:
    """Yield each torque, and its error against the one that the robot reports."""
    torques, reported = replay.clean.torques, replay.recording.samples.efforts
    if reported is None:
        reported = np.full_like(torques, np.nan)
    good = _good(replay, 'torques') & np.isfinite(torques + reported) & changing(reported)
    records = _columns(replay, 'torques', 'joint', replay.robot.joint_names)
    for one, own, other, rows in zip(records, torques.T, reported.T, good.T, strict=True):
        error = _figures(own[rows] - other[rows])
        with np.errstate(invalid='ignore', divide='ignore'):
            both = np.corrcoef(own[rows], other[rows]) if rows.any() else np.full((2, 2), np.nan)
        yield {
            **one,
            'n_compared': error['n_samples'],
            'error_mean': error['mean'],
            'error_rms': error['rms'],
            'correlation': float(both[0, 1]),
        }


def _support(replay: Replay) -> Record | None:
    """Compare the force at a contact in the fixed link's frame with the weight."""
    robot, estimate = replay.robot, replay.clean
    gravity, good = float(np.linalg.norm(robot.gravity)), _good(replay, 'wrenches')
    weight = robot.mass * gravity
    for c, contact in enumerate(estimate.contacts):
        if contact.frame == robot.fixed_frame and weight and good[:, c].any():
            upward = -estimate.wrenches[good[:, c], c, :3] @ robot.gravity / gravity
            mean = float(upward.mean())
            return {
                'contact': contact.name,
                'mean_upward_force_n': mean,
                'weight_n': weight,
                'relative_error': mean / weight - 1.0,
            }
    return None


def _inside(kind: str, found: Inside | None) -> Iterator[Record]:
    """Yield the figures of wrenches inside the robot, where they are known."""
    if found is not None:
        for k, (name, frame) in enumerate(zip(found.names, found.frames, strict=True)):
            values = found.wrenches[:, k]
            known = np.isfinite(values).all(axis=1)
            yield {kind: name, 'frame': frame, **_figures(values[known])}


def replay_findings(replay: Replay) -> Iterator[Finding]:
    """Yield what is not as it should be in a replay."""
    summary, log = replay.summary, replay.recording
    yield from missing_streams(replay)
    yield from find_impossible(replay.robot, log.samples)
    for stream in (*summary['fts'], *summary['imus'], *summary['joint_states']):
        yield from stream_findings(stream, float(np.ptp(log.times)))
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
    for record in summary['sensor_residuals']:
        if record['doubtful']:
            what = record['quantity'].replace('_', ' ')
            figures = {key: record[key] for key in ('rms', 'unit', 'noise')}
            yield finding('sensor_residual', record['sensor'], what=what, **figures)
    notable = [group for group in summary['uninformed'] if group['sample_share'] >= MIN_SHARE]
    for group in notable[:MAX_GROUPS]:
        joints = few(group['joints'])
        yield finding('uninformed', group['submodel'], joints=joints, share=group['sample_share'])


def missing_streams(replay: Replay) -> Iterator[Finding]:
    """Yield joints and sensors without values after the start of the log."""
    samples, robot = replay.recording.samples, replay.robot
    late = replay.times > replay.times[0] + STARTUP + replay.settings.filter.window
    for names, states in (
        (robot.joint_names, samples.joint_states),
        ([imu.name for imu in robot.imus], samples.imu_states),
        ([sensor.name for sensor in robot.ft_sensors], samples.ft_states),
    ):
        for name, own in zip(names, () if states is None else states[late].T, strict=False):
            lacking = own[np.isin(own, UNUSABLE)]
            if len(lacking):
                what = f'reading ({SensorState(int(lacking[0])).name.lower()})'
                yield finding('missing', name, what=what, share=len(lacking) / len(own))


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
