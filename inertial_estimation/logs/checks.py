# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of logs and replays: each yields findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from inertial_estimation.findings import Finding, finding
from inertial_estimation.logs.results import Replay
from inertial_estimation.sample import SensorState

Record = Mapping[str, Any]

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
    for doubt in replay.offsets.doubts:
        yield doubt.finding
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
