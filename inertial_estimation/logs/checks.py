# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of logs and of replays: each yields findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.identification.equations.wrenches import COMPONENTS as CHANNELS
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.results import Replay
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor
from inertial_estimation.model.urdf import parse
from inertial_estimation.sample import SampleBatch, SensorState

Array = NDArray[np.float64]
Record = Mapping[str, Any]

MIN_MOTION = 0.01
"""A joint that moves by less stands still [rad or m]."""
MAX_EXCESS = 1.0
"""Beyond an end stop by the range of a joint, and by so much, a unit is wrong [rad or m]."""
MIN_EXCESS = 0.1
"""Beyond an end stop by so much is reported [rad or m]."""
OUTLIER_SHARE = 0.01
"""Share of the samples that may be anything."""
VELOCITY_SPAN = 0.2
"""Time over which changes of positions and integrals of velocities are compared [s]."""
VELOCITY_FACTOR, MIN_CORRELATION = 2.0, 0.5
"""Limits of the ratio of the two, and of their correlation."""
RATING_FACTOR, RATING_SHARE = 3.0, 0.1
"""Factor of a limit of the URDF, and share of the samples that may be beyond it."""
MIN_CONSTANT = 5
"""Samples from which a value that never changes is no chance."""
MIN_RATE, MAX_RATE = 5.0, 5e4
"""Of logs of robots in motion [Hz]."""

WEIGHT_ERROR_LIMIT = 0.05
"""Share of the weight by which the force at the fixed link may differ from it."""
MAX_GROUPS = 4
"""Groups of torques without FT sensor that are reported."""
MIN_SHARE = 0.01
"""Share of the samples or messages below which a fault is not reported."""
UNUSABLE = (SensorState.ABSENT, SensorState.STALE, SensorState.INVALID)
STARTUP = 2.0
"""Streams that come later than this after the first sample are missing [s]."""


def replay_findings(replay: Replay) -> Iterator[Finding]:
    """Yield what is not as it should be in a replay."""
    summary = replay.summary
    yield from missing_streams(replay)
    for key in ('fts', 'imus', 'joint_states'):
        for stream in summary[key]:
            yield from stream_findings(stream, replay.times)
    yield from reported_assumed(replay)
    yield from contact_messages(replay)
    for source, problems in replay.recording.problems.items():
        for what, count in problems.items():
            yield finding('refused_message', source, count=count, what=what)
    yield from replay.offsets.findings
    yield from weight(summary['support'])
    yield from momentum(summary['checks']['momentum'])
    for record in summary['checks']['sensor_residuals']:
        yield from sensor_residual(record)
    yield from uninformed_torques(summary['checks']['uninformed'])


def missing_streams(replay: Replay) -> Iterator[Finding]:
    """Yield joints and sensors without values after the start of the log."""
    samples, robot = replay.recording.samples, replay.robot
    late = replay.times > replay.times[0] + STARTUP + replay.settings.derivative_window
    if not late.any():
        return
    for names, states in (
        (robot.joint_names, samples.joint_states),
        ([imu.name for imu in robot.imus], samples.imu_states),
        ([sensor.name for sensor in robot.ft_sensors], samples.ft_states),
    ):
        if states is not None:
            shares = np.isin(states[late], UNUSABLE).mean(axis=0)
            for k in np.flatnonzero(shares > 0.0):
                found = SensorState(
                    int(states[late][:, k][np.isin(states[late][:, k], UNUSABLE)][0])
                )
                yield finding('missing', names[k], what=found.name.lower(), share=shares[k])


def stream_findings(stream: Record, times: np.ndarray) -> Iterator[Finding]:
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


def reported_assumed(replay: Replay) -> Iterator[Finding]:
    """Yield assumed joints that the log reports."""
    for joint in replay.recording.reported_assumed:
        yield finding(
            'assumed_reported', joint.joint, position=joint.assumed_position,
            count=joint.n_messages, error=joint.largest_difference,
        )  # fmt: skip


def contact_messages(replay: Replay) -> Iterator[Finding]:
    """Yield messages of the contacts topic that are not used, and senders that are too slow."""
    touches = replay.recording.touches
    if touches is None:
        return
    for what, count in touches.problems.items():
        yield finding('refused_message', 'contacts', count=count, what=what)
    for sender in touches.slow_senders:
        yield finding('slow_contacts', sender.frame, count=sender.n_gaps, period=sender.period)


def weight(support: Record | None) -> Iterator[Finding]:
    """Yield a force at the fixed link that is not the weight."""
    if support is not None and abs(support['relative_error']) > WEIGHT_ERROR_LIMIT:
        yield finding(
            'weight', support['contact'], force=support['mean_upward_force_n'],
            weight=support['weight_n'], error=support['relative_error'],
        )  # fmt: skip


def momentum(found: Record | None) -> Iterator[Finding]:
    """Yield momentum that does not change as the wrenches imply."""
    if found is not None and found['doubtful_s']:
        yield finding(
            'momentum', '', force=found['unexplained_force_n'],
            moment=found['unexplained_moment_nm'],
            time=sum(stop - start for start, stop in found['doubtful_s']),
        )  # fmt: skip


def sensor_residual(record: Record) -> Iterator[Finding]:
    """Yield a sensor that the others contradict."""
    if record['doubtful']:
        yield finding(
            'sensor_residual', record['sensor'], what=record['quantity'].replace('_', ' '),
            rms=record['rms'], unit=record['unit'], noise=record['noise'],
            constant=record['constant'],
        )  # fmt: skip


def uninformed_torques(groups: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield torques that no FT sensor informs."""
    notable = [group for group in groups if group['sample_share'] >= MIN_SHARE]
    for group in notable[:MAX_GROUPS]:
        yield finding(
            'uninformed', group['submodel'], joints=_few(group['joints']),
            share=group['sample_share'],
        )  # fmt: skip


def _few(names: tuple[str, ...], most: int = 6) -> str:
    """Return the first of some names, and the number of the others."""
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return ', '.join(names[:most]) + more


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


def position_limits(robot: Robot, samples: SampleBatch) -> Iterator[Finding]:
    """Yield joints beyond their end stops; ERROR: by more than their range."""
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for k, name in enumerate(robot.joint_names):
        values = samples.positions[:, k]
        values = values[np.isfinite(values)]
        limits = joint_range(tags[name])
        if limits is None or not len(values):
            continue
        lower, upper = limits
        off = np.maximum(lower - values, values - upper)
        far = np.mean(off > max(upper - lower, MAX_EXCESS)) > OUTLIER_SHARE
        if off.max() > MIN_EXCESS:
            yield finding(
                'joint_limit', name, level=Level.ERROR if far else None,
                value=float(values[np.argmax(off)]), lower=lower, upper=upper,
            )  # fmt: skip


def joint_range(tag: Element) -> tuple[float, float] | None:
    """Return the end stops of a joint of the URDF; None: it has none."""
    limit = tag.find('limit')
    if limit is None or tag.get('type') == 'continuous':
        return None
    lower, upper = (as_float(limit.get(key, '0')) for key in ('lower', 'upper'))
    return (lower, upper) if lower < upper and np.isfinite(upper - lower) else None


def velocities_against_positions(
    robot: Robot, samples: SampleBatch, largest_gap: float, level: Level = Level.WARNING
) -> Iterator[Finding]:
    """Yield joints whose velocities are not the derivatives of their positions."""
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    if len(t) < 2 or not (np.diff(t) > 0).all():
        return
    for k, name in enumerate(robot.joint_names):
        moved, stated = _changes(t, samples.positions[:, k], samples.velocities[:, k], largest_gap)
        sizes = [float(np.sqrt(np.mean(x**2))) if len(x) else 0.0 for x in (moved, stated)]
        if max(sizes) < MIN_MOTION:
            continue
        factor = sizes[0] / sizes[1] if sizes[1] else np.inf
        product = sizes[0] * sizes[1]
        alike = float(np.mean(moved * stated)) / product if product else 0.0
        if not 1 / VELOCITY_FACTOR <= factor <= VELOCITY_FACTOR or alike < MIN_CORRELATION:
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


def ratings(robot: Robot, samples: SampleBatch, joints: Collection[str]) -> Iterator[Finding]:
    """Yield joints that are faster or stronger than the URDF states."""
    tags = {tag.get('name', ''): tag.find('limit') for tag in parse(robot.urdf).findall('joint')}
    for k, name in enumerate(robot.joint_names):
        signals = {'velocity': samples.velocities[:, k]}
        if samples.efforts is not None and name in joints:
            signals['effort'] = samples.efforts[:, k]
        for what, values in signals.items():
            tag = tags.get(name)
            limit = as_float('nan' if tag is None else tag.get(what, 'nan'))
            known = np.abs(values[np.isfinite(values)])
            often = len(known) and np.mean(known > RATING_FACTOR * limit) > RATING_SHARE
            if limit > 0.0 and often:
                yield finding('rating', name, what=what, value=float(known.max()), limit=limit)


def as_float(text: str) -> float:
    """Return a number of the URDF, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def constant_efforts(
    robot: Robot, samples: SampleBatch, joints: Sequence[str]
) -> Iterator[Finding]:
    """Yield efforts that never change; INFO where the joint does not move either."""
    for name in joints if samples.efforts is not None else ():
        assert samples.efforts is not None
        k = robot.joint_names.index(name)
        known = samples.efforts[:, k][np.isfinite(samples.efforts[:, k])]
        if len(known) >= MIN_CONSTANT and not np.ptp(known):
            moves = span(samples.positions[:, k]) > MIN_MOTION
            yield finding(
                'constant', name, level=None if moves else Level.INFO, what='effort',
                value=float(known[0]), count=len(known),
            )  # fmt: skip


def constant_wrenches(robot: Robot, samples: SampleBatch) -> Iterator[Finding]:
    """Yield FT channels that never change; ERROR: all of a sensor that is moved."""
    for s, sensor in enumerate(robot.ft_sensors):
        known = samples.ft_readings[:, s]
        known = known[np.isfinite(known).all(axis=1)]
        stuck = np.ptp(known, axis=0) == 0.0 if len(known) >= MIN_CONSTANT else np.zeros(6, bool)
        moves = any(
            span(samples.positions[:, k]) > MIN_MOTION for k in joints_around(robot, sensor)
        )
        for k in np.flatnonzero(stuck):
            yield finding(
                'constant', sensor.name, level=Level.ERROR if stuck.all() and moves else None,
                what=CHANNELS[k], value=float(known[0, k]), count=len(known),
            )  # fmt: skip


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


def gaps(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], *, velocities: bool
) -> Iterator[Finding]:
    """Yield signals that are missing in some samples."""
    for name, what, values in signals_of(robot, samples, joints, velocities=velocities):
        share = float((~np.isfinite(values)).any(axis=1).mean())
        if 0.0 < share < 1.0:
            yield finding('missing', name, what=what, share=share)


def never_known(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], assumed: Collection[str]
) -> Iterator[Finding]:
    """Yield signals that are missing in all samples."""
    for name, what, values in signals_of(robot, samples, joints, velocities=False):
        if not np.isfinite(values).all(axis=1).any() and not (
            what == 'position' and name in assumed
        ):
            yield finding('missing', name, what=what, share=1.0)
    if samples.efforts is None:
        for name in joints:
            yield finding('missing', name, what='effort', share=1.0)
    for k, imu in enumerate(robot.imus):
        both = (samples.angular_velocities[:, k], samples.proper_accelerations[:, k])
        if not any(np.isfinite(values).all(axis=1).any() for values in both):
            yield finding('missing', imu.name, what='reading', share=1.0)


def signals_of(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], *, velocities: bool
) -> Iterator[tuple[str, str, Array]]:
    """Yield subject, quantity and values (n, k) of each signal that equations are made of."""
    for k, name in enumerate(robot.joint_names):
        yield name, 'position', samples.positions[:, k : k + 1]
        if velocities:
            yield name, 'velocity', samples.velocities[:, k : k + 1]
        if samples.efforts is not None and name in joints:
            yield name, 'effort', samples.efforts[:, k : k + 1]
    for k, sensor in enumerate(robot.ft_sensors):
        yield sensor.name, 'wrench', samples.ft_readings[:, k]


def frozen_wrenches(robot: Robot, frozen: NDArray[np.bool_] | None) -> Iterator[Finding]:
    """Yield FT sensors of a bag that repeat themselves, frozen (n, n_fts)."""
    for k, sensor in enumerate(robot.ft_sensors if frozen is not None else ()):
        assert frozen is not None
        if frozen[:, k].any():
            yield finding('frozen', sensor.name, what='wrench', share=float(frozen[:, k].mean()))
