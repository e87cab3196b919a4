# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of logs and of replays: each yields findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.log import Log
from inertial_estimation.model.joint_limits import limits_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse
from inertial_estimation.sample import SampleBatch, SensorState

Record = Mapping[str, Any]

MIN_MOTION = limit_of('motion')
MAX_EXCESS = 1.0
"""Beyond an end stop by the range of a joint, and by so much, a unit is wrong [rad or m]."""
OUTLIER_SHARE, RATING_SHARE, MIN_SHARE = 0.01, 0.1, 0.01
"""Shares of the samples that may be anything, that may exceed a rating, that are reported."""
VELOCITY_SPAN, MIN_CORRELATION = 0.2, 0.5
"""Time over which positions and velocities are compared [s], and least correlation."""
MIN_RATE, MAX_RATE = 5.0, 5e4
"""Of logs of robots in motion [Hz]."""
MAX_GROUPS, MAX_NAMES = 4, 6
"""Groups of torques without FT sensor, and their joints, that are reported."""
UNUSABLE = (SensorState.ABSENT, SensorState.STALE, SensorState.INVALID)
STARTUP = 2.0
"""Streams that come later than this after the first sample are missing [s]."""


def replay_findings(
    summary: Record, log: Log, robot: Robot, settings: EstimatorSettings
) -> Iterator[Finding]:
    """Yield what is not as it should be in the summary of a replay, and in its log."""
    yield from missing_streams(log, robot, STARTUP + settings.filter.window)
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
    for record in summary['sensor_residuals']:
        if record['doubtful']:
            what = record['quantity'].replace('_', ' ')
            figures = {key: record[key] for key in ('rms', 'unit', 'noise')}
            yield finding('sensor_residual', record['sensor'], what=what, **figures)
    notable = [group for group in summary['uninformed'] if group['sample_share'] >= MIN_SHARE]
    for group in notable[:MAX_GROUPS]:
        joints = few(group['joints'])
        yield finding('uninformed', group['submodel'], joints=joints, share=group['sample_share'])


def missing_streams(log: Log, robot: Robot, startup: float) -> Iterator[Finding]:
    """Yield joints and sensors without values after the start of the log [s]."""
    samples, late = log.samples, log.times > log.times[0] + startup
    for names, states in (
        (robot.joint_names, samples.joint_states),
        ([imu.name for imu in robot.imus], samples.imu_states),
        ([sensor.name for sensor in robot.ft_sensors], samples.ft_states),
    ):
        for name, own in zip(names, () if states is None else states[late].T, strict=False):
            lacking = own[np.isin(own, UNUSABLE)]
            if len(lacking):
                what = SensorState(int(lacking[0])).name.lower()
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


def few(names: Sequence[str]) -> str:
    """Return the first of some names, and the number of the others."""
    more = f' and {len(names) - MAX_NAMES} more' if len(names) > MAX_NAMES else ''
    return ', '.join(names[:MAX_NAMES]) + more


# ---- Logs of identification ---------------------------------------------------------------------


class Signal(NamedTuple):
    """A measured signal of equations."""

    subject: str
    what: str
    values: Array
    """Shape (n, k), a view of the samples."""
    joints: list[int]
    """Those whose motion changes it."""

    def moves(self, positions: Array) -> bool:
        """Return true if one of its joints moves; positions (n, n_joints)."""
        return any(span(positions[:, k]) > MIN_MOTION for k in self.joints)


def signals(
    robot: Robot, samples: SampleBatch, joints: Collection[str], *, velocities: bool
) -> Iterator[Signal]:
    """Yield joint positions, velocities if asked for, efforts of some joints, and FT readings."""
    for k, name in enumerate(robot.joint_names):
        yield Signal(name, 'position', samples.positions[:, k, None], [k])
        if velocities:
            yield Signal(name, 'velocity', samples.velocities[:, k, None], [k])
        if samples.efforts is not None and name in joints:
            yield Signal(name, 'effort', samples.efforts[:, k, None], [k])
    for s, sensor in enumerate(robot.ft_sensors):
        # Between the root link and the sensor, and beyond it.
        before, link = set(), sensor.parent
        while link >= 0:
            before.add(link)
            link = robot.links[link].parent
        beyond = {sensor.child}
        for k, one in enumerate(robot.links):  # parents come before children
            if one.parent in beyond:
                beyond.add(k)
        around = sorted({robot.links[k].joint for k in before | beyond} - {-1})
        yield Signal(sensor.name, 'wrench', samples.ft_readings[:, s], around)


def span(values: Array) -> float:
    """Return the range of the known values (n,)."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def missing_values(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], *, velocities: bool
) -> Iterator[Finding]:
    """Yield signals of equations, with efforts of some joints, that samples lack."""
    for one in signals(robot, samples, joints, velocities=velocities):
        share = float((~np.isfinite(one.values)).any(axis=1).mean())
        if share:
            yield finding('missing', one.subject, what=one.what, share=share)
    for name in joints if samples.efforts is None else ():
        yield finding('missing', name, what='effort', share=1.0)
    for k, imu in enumerate(robot.imus):
        both = samples.angular_velocities[:, k], samples.proper_accelerations[:, k]
        if not any(np.isfinite(values).all(axis=1).any() for values in both):
            yield finding('missing', imu.name, what='reading', share=1.0)


def constant_signals(
    robot: Robot, samples: SampleBatch, joints: Sequence[str]
) -> Iterator[Finding]:
    """
    Yield efforts and FT channels that never change.

    INFO: an effort of a joint at rest. ERROR: all channels of a sensor that is moved.
    """
    names = {'effort': ('effort',), 'wrench': COMPONENTS}
    for one in signals(robot, samples, joints, velocities=False):
        known = one.values[np.isfinite(one.values).all(axis=1)]
        if one.what not in names or len(known) < limit_of('constant'):
            continue
        stuck, moves = np.flatnonzero(np.ptp(known, axis=0) == 0.0), one.moves(samples.positions)
        level = None
        if one.what == 'wrench' and moves and len(stuck) == len(COMPONENTS):
            level = Level.ERROR
        elif one.what == 'effort' and not moves:
            level = Level.INFO
        for k in stuck:
            yield finding(
                'constant', one.subject, level=level, what=names[one.what][k],
                value=float(known[0, k]), count=len(known),
            )  # fmt: skip


def urdf_limits(robot: Robot, samples: SampleBatch, torques: Collection[str]) -> Iterator[Finding]:
    """
    Yield joints beyond their end stops, faster or stronger than the URDF states.

    torques: joints whose efforts are torques. ERROR: beyond end stops by more than their range.
    """
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for one in signals(robot, samples, torques, velocities=True):
        if one.what == 'wrench':
            continue
        limits = limits_of(one.subject, tags[one.subject])
        values = one.values[np.isfinite(one.values)]
        if not len(values):
            continue
        if one.what != 'position':
            limit = limits.get(one.what, np.nan)
            beyond = np.abs(values) > limit_of('rating') * limit
            if limit > 0.0 and beyond.mean() > RATING_SHARE:
                most = float(np.abs(values).max())
                yield finding('rating', one.subject, what=one.what, value=most, limit=limit)
            continue
        lower, upper = limits.get('lower', 0.0), limits.get('upper', 0.0)
        off = np.maximum(lower - values, values - upper)
        if 0.0 < upper - lower < np.inf and off.max() > limit_of('joint_limit'):
            far = np.mean(off > max(upper - lower, MAX_EXCESS)) > OUTLIER_SHARE
            yield finding(
                'joint_limit', one.subject, level=Level.ERROR if far else None,
                value=float(values[np.argmax(off)]), lower=lower, upper=upper,
            )  # fmt: skip


def velocities_against_positions(
    robot: Robot, samples: SampleBatch, largest_gap: float, level: Level
) -> Iterator[Finding]:
    """Yield joints whose velocities are not the derivatives of their positions."""
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    if len(t) < 2 or not (np.diff(t) > 0).all():
        return
    steps = np.diff(t)
    lag = min(max(1, round(VELOCITY_SPAN / float(np.median(steps)))), len(t) - 1)
    for k, name in enumerate(robot.joint_names):
        q, v = samples.positions[:, k], samples.velocities[:, k]
        known = np.isfinite(q) & np.isfinite(v)
        usable = known[1:] & known[:-1] & (steps <= largest_gap)
        # Changes over the span, and the integrals of the velocities over the same times.
        area = np.where(usable, 0.5 * (v[1:] + v[:-1]) * steps, 0.0)
        travelled, broken = (np.append(0.0, np.cumsum(one)) for one in (area, ~usable))
        whole = broken[lag:] == broken[:-lag]
        changes, integrals = ((one[lag:] - one[:-lag])[whole] for one in (q, travelled))
        moved, stated = (
            float(np.sqrt(np.mean(one**2))) if len(one) else 0.0 for one in (changes, integrals)
        )
        if max(moved, stated) < MIN_MOTION:
            continue
        factor = moved / stated if stated else np.inf
        product = float(np.mean(changes * integrals))
        alike = product / (moved * stated) if moved and stated else 0.0
        limit = limit_of('velocity')
        if not 1.0 / limit <= factor <= limit or alike < MIN_CORRELATION:
            yield finding('velocity', name, level=level, factor=factor, correlation=alike)


def sample_rate(samples: SampleBatch, how: Preparation) -> Iterator[Finding]:
    """Yield stamps whose unit is wrong, by the rate that follows."""
    steps = np.abs(np.diff(samples.stamp_ns))
    if not steps.any():
        return
    # Stamps that are rounded stand still most of the time.
    period = float(np.median(steps) or np.mean(steps)) * 1e-9
    slow = 1.0 / period < MIN_RATE and (how.cutoff >= 0.5 / period or period > how.largest_gap)
    if 1.0 / period > MAX_RATE or slow:
        what = (
            f'rate {1.0 / period:.4g} Hz, expected {MIN_RATE:g} to {MAX_RATE:g} Hz, or cutoff '
            'below half of it and no longer gaps than largest_gap'
        )
        yield finding('clock', 'time', level=Level.ERROR, what=what)
