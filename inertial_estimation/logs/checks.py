# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of logs and of replays: each yields findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.results import Replay
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor
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


def replay_findings(replay: Replay) -> Iterator[Finding]:
    """Yield what is not as it should be in a replay."""
    summary, log = replay.summary, replay.recording
    yield from missing_streams(replay)
    for key in ('fts', 'imus', 'joint_states'):
        for stream in summary[key]:
            yield from stream_findings(stream, log.times)
    for joint in log.reported_assumed:
        yield finding(
            'assumed_reported', joint.joint, position=joint.assumed_position,
            count=joint.n_messages, error=joint.largest_difference,
        )  # fmt: skip
    if log.touches is not None:
        for what, count in log.touches.problems.items():
            yield finding('refused_message', 'contacts', count=count, what=what)
        for sender in log.touches.slow_senders:
            yield finding('slow_contacts', sender.frame, count=sender.n_gaps, period=sender.period)
    for source, problems in log.problems.items():
        for what, count in problems.items():
            yield finding('refused_message', source, count=count, what=what)
    yield from replay.offsets.findings
    support, change = summary['support'], summary['momentum']
    if support is not None and abs(support['relative_error']) > limit_of('weight'):
        yield finding(
            'weight', support['contact'], force=support['mean_upward_force_n'],
            weight=support['weight_n'], error=support['relative_error'],
        )  # fmt: skip
    if change is not None and change['doubtful_s']:
        yield finding(
            'momentum', '', force=change['unexplained_force_n'],
            moment=change['unexplained_moment_nm'],
            time=sum(stop - start for start, stop in change['doubtful_s']),
        )  # fmt: skip
    for record in summary['sensor_residuals']:
        if record['doubtful']:
            yield finding(
                'sensor_residual', record['sensor'], what=record['quantity'].replace('_', ' '),
                **{key: record[key] for key in ('rms', 'unit', 'noise', 'constant')},
            )  # fmt: skip
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
                what = SensorState(int(lacking[0])).name.lower()
                yield finding('missing', name, what=what, share=len(lacking) / len(own))


def stream_findings(stream: Record, times: Array) -> Iterator[Finding]:
    """Yield frozen intervals, unfilled filters and clock jumps of a stream."""
    name = stream['name']
    if stream['frozen_s'] > 0.0:
        share = stream['frozen_s'] / max(float(times[-1] - times[0]), stream['frozen_s'])
        yield finding('frozen', name, what='reading', share=share, time=stream['frozen_s'])
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


def span(values: Array) -> float:
    """Return the range of the known values (n,)."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def joints_around(robot: Robot, sensor: FtSensor) -> list[int]:
    """Return the joints between the root link and a sensor, and those beyond it."""
    before, link = set(), sensor.parent
    while link >= 0:
        before.add(link)
        link = robot.links[link].parent
    beyond = {sensor.child}
    for k, one in enumerate(robot.links):  # parents come before children
        if one.parent in beyond:
            beyond.add(k)
    return sorted({robot.links[k].joint for k in before | beyond} - {-1})


def urdf_limits(robot: Robot, samples: SampleBatch, torques: Collection[str]) -> Iterator[Finding]:
    """
    Yield joints beyond their end stops, faster or stronger than the URDF states.

    torques: joints whose efforts are torques. ERROR: beyond end stops by more than their range.
    """
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for k, name in enumerate(robot.joint_names):
        tag = tags[name].find('limit')
        values = samples.positions[:, k]
        values = values[np.isfinite(values)]
        lower, upper, rate, effort = (
            _float('nan' if tag is None else tag.get(key, default))
            for key, default in (
                ('lower', '0'), ('upper', '0'), ('velocity', 'nan'), ('effort', 'nan')
            )
        )  # fmt: skip
        ends = tags[name].get('type') != 'continuous' and 0.0 < upper - lower < np.inf
        off = np.maximum(lower - values, values - upper) if ends and len(values) else np.zeros(1)
        if off.max() > limit_of('joint_limit'):
            far = np.mean(off > max(upper - lower, MAX_EXCESS)) > OUTLIER_SHARE
            yield finding(
                'joint_limit', name, level=Level.ERROR if far else None,
                value=float(values[np.argmax(off)]), lower=lower, upper=upper,
            )  # fmt: skip
        signals = [('velocity', samples.velocities[:, k], rate)]
        if samples.efforts is not None and name in torques:
            signals.append(('effort', samples.efforts[:, k], effort))
        for what, signal, limit in signals:
            known = np.abs(signal[np.isfinite(signal)])
            beyond = known > limit_of('rating') * limit
            if limit > 0.0 and len(known) and beyond.mean() > RATING_SHARE:
                yield finding('rating', name, what=what, value=float(known.max()), limit=limit)


def _float(text: str) -> float:
    """Return a number of the URDF, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def velocities_against_positions(
    robot: Robot, samples: SampleBatch, largest_gap: float, level: Level
) -> Iterator[Finding]:
    """Yield joints whose velocities are not the derivatives of their positions."""
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    if len(t) < 2 or not (np.diff(t) > 0).all():
        return
    for k, name in enumerate(robot.joint_names):
        changes = _changes(t, samples.positions[:, k], samples.velocities[:, k], largest_gap)
        moved, stated = (float(np.sqrt(np.mean(x**2))) if len(x) else 0.0 for x in changes)
        if max(moved, stated) < MIN_MOTION:
            continue
        factor = moved / stated if stated else np.inf
        product = float(np.mean(changes[0] * changes[1]))
        alike = product / (moved * stated) if moved and stated else 0.0
        if max(factor, 1.0 / factor if factor else np.inf) > limit_of('velocity') or (
            alike < MIN_CORRELATION
        ):
            yield finding('velocity', name, level=level, factor=factor, correlation=alike)


def _changes(t: Array, q: Array, v: Array, largest_gap: float) -> tuple[Array, Array]:
    """Return changes of a position, and the integrals of its velocity over the same times."""
    steps = np.diff(t)
    lag = min(max(1, round(VELOCITY_SPAN / float(np.median(steps)))), len(t) - 1)
    known = np.isfinite(q) & np.isfinite(v)
    q, v = np.where(known, q, 0.0), np.where(known, v, 0.0)
    area = 0.5 * (v[1:] + v[:-1]) * steps
    usable = known[1:] & known[:-1] & (steps <= largest_gap)
    travelled = np.append(0.0, np.cumsum(np.where(usable, area, 0.0)))
    broken = np.append(0, np.cumsum(~usable))
    whole = broken[lag:] == broken[:-lag]
    return (q[lag:] - q[:-lag])[whole], (travelled[lag:] - travelled[:-lag])[whole]


def constant_signals(
    robot: Robot, samples: SampleBatch, joints: Sequence[str]
) -> Iterator[Finding]:
    """
    Yield efforts and FT channels that never change.

    INFO: an effort of a joint at rest. ERROR: all channels of a sensor that is moved.
    """
    moves = np.array([span(q) > MIN_MOTION for q in samples.positions.T], dtype=bool)
    for s, sensor in enumerate(robot.ft_sensors):
        known = samples.ft_readings[:, s]
        known = known[np.isfinite(known).all(axis=1)]
        stuck = np.flatnonzero(_is_constant(known))
        dead = len(stuck) == 6 and moves[joints_around(robot, sensor)].any()
        for k in stuck:
            yield finding(
                'constant', sensor.name, level=Level.ERROR if dead else None,
                what=COMPONENTS[k], value=float(known[0, k]), count=len(known),
            )  # fmt: skip
    for name in joints if samples.efforts is not None else ():
        assert samples.efforts is not None
        j = robot.joint_names.index(name)
        known = samples.efforts[:, j][np.isfinite(samples.efforts[:, j])]
        if _is_constant(known[:, None]).any():
            yield finding(
                'constant', name, level=None if moves[j] else Level.INFO, what='effort',
                value=float(known[0]), count=len(known),
            )  # fmt: skip


def _is_constant(values: Array) -> NDArray[np.bool_]:
    """Return the columns of values (n, k) that never change."""
    if len(values) < limit_of('constant'):
        return np.zeros(values.shape[1], dtype=bool)
    return np.asarray(np.ptp(values, axis=0) == 0.0)


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
        yield finding('clock', 'time', level=Level.ERROR, what=what, rate=1.0 / period)


def missing_values(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], *, velocities: bool
) -> Iterator[Finding]:
    """Yield signals of equations, with efforts of some joints, that samples lack."""
    signals = []
    for k, name in enumerate(robot.joint_names):
        signals.append((name, 'position', samples.positions[:, k, None]))
        if velocities:
            signals.append((name, 'velocity', samples.velocities[:, k, None]))
        if samples.efforts is not None and name in joints:
            signals.append((name, 'effort', samples.efforts[:, k, None]))
    for k, sensor in enumerate(robot.ft_sensors):
        signals.append((sensor.name, 'wrench', samples.ft_readings[:, k]))
    for name, what, values in signals:
        share = float((~np.isfinite(values)).any(axis=1).mean())
        if share:
            yield finding('missing', name, what=what, share=share)
    if samples.efforts is None:
        for name in joints:
            yield finding('missing', name, what='effort', share=1.0)
    rates, accelerations = samples.angular_velocities, samples.proper_accelerations
    for k, imu in enumerate(robot.imus):
        both = (rates[:, k], accelerations[:, k])
        if not any(np.isfinite(values).all(axis=1).any() for values in both):
            yield finding('missing', imu.name, what='reading', share=1.0)


def frozen_wrenches(robot: Robot, frozen: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield FT sensors of a bag that repeat themselves, frozen (n, n_fts)."""
    for sensor, own in zip(robot.ft_sensors, frozen.T, strict=False):
        if own.any():
            yield finding('frozen', sensor.name, what='wrench', share=float(own.mean()))
