# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a replay as records: streams, offsets, wrenches, torques, residuals, dependence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import compress
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.estimation.dependence import UninformedTorques
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.log import changing
from inertial_estimation.logs.results import Inside, Replay
from inertial_estimation.logs.sensor_agreement import momentum_record, sensor_records
from inertial_estimation.logs.situations import GONE, Situation, find_situations
from inertial_estimation.signals.stream import StreamStatistics

Record = dict[str, Any]

UNFIT = ~np.uint8(Quality.ASSUMED)
"""Results with another flag than that are not judged."""
QUALITIES = {
    'wrenches': 'contact_quality', 'torques': 'torque_quality',
    'external_torques': 'external_torque_quality', 'residuals': 'submodel_quality',
}  # fmt: skip
"""Of each result that is judged."""
MAX_SITUATIONS = 20
"""Most frequent sets of contacts and sensors whose dependence is computed."""
MIN_GRAVITY = 1e-9
"""Less gravity than this is none [m/s^2]."""
MAX_LAG, LAG_STEP = 0.1, 0.0025
"""Lags of reported torques that are tried, to both sides [s]."""
MIN_SAMPLES = 10
"""Of a comparison of torques."""


def summarize(replay: Replay) -> Record:
    """Return the figures of a replay: numbers, and lists of records."""
    robot, log, clean, offsets = replay.robot, replay.recording, replay.clean, replay.offsets
    times, statistics = log.times, log.statistics
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    estimator = build_estimator(replay.settings, robot, replay.calibration)
    situations = find_situations(estimator, log.samples, clean, log.touches)
    fts, imus, joints = (
        list(_streams(getattr(statistics, kind, {}), log.origin_ns))
        for kind in ('fts', 'imus', 'joints')
    )
    for one in joints:
        # The name of a part is the index of its topic and its joints.
        part, _, names = one['name'].partition(': ')
        one |= {'name': replay.settings.joint_states.topics[int(part)], 'joints': names.split()}
    spread = (
        offsets.fit.deviations.reshape(-1, 6).tolist()
        if offsets.fit is not None and offsets.request.source == 'model'
        else [None] * len(robot.ft_sensors)
    )
    contacts = [contact.name for contact in clean.contacts]
    return {
        'robot': robot.name,
        'n_samples': len(times),
        'time_range_s': [float(times[0]), float(times[-1])],
        'judged_s': float(replay.judged.sum()) * usual,
        'offset_source': offsets.request.source,
        'offset_support': offsets.support,
        'offsets': [
            {'sensor': s.name, 'assumed': bool(assumed), 'offset': o.tolist(), 'deviation': d}
            for s, assumed, o, d in zip(
                robot.ft_sensors, offsets.assumed, offsets.calibration.offsets, spread, strict=True
            )
        ],
        'fts': fts,
        'imus': imus,
        'joint_states': joints,
        'ignored_joints': list(statistics.ignored_joints if statistics else ()),
        'wrenches': [
            one | {'frame': contact.frame}
            for one, contact in zip(
                _columns(replay, 'wrenches', 'contact', contacts), clean.contacts, strict=True
            )
        ],
        'residuals': list(_residuals(replay)),
        'torques': list(_compared_torques(replay)),
        'support': _support(replay),
        'estimated_torques': list(_columns(replay, 'torques', 'joint', robot.joint_names)),
        'external_torques': list(
            _columns(replay, 'external_torques', 'joint', robot.joint_names) if contacts else ()
        ),
        'deviations_lack': replay.deviations.lack if replay.deviations else '',
        'momentum': momentum_record(replay),
        'sensor_residuals': sensor_records(replay, situations),
        'through': list(_inside('joint', replay.through)),
        'net': list(_inside('link', replay.net)),
        **_dependence(replay, situations[:MAX_SITUATIONS]),
    }


def _streams(streams: Mapping[str, StreamStatistics], origin_ns: int) -> Iterator[Record]:
    """Yield counts and rate of each stream; times in seconds after the first FT message."""
    for name, s in streams.items():
        intervals = [
            [(interval.first_ns - origin_ns) / 1e9, (interval.last_ns - origin_ns) / 1e9]
            for interval in s.frozen_intervals
        ]
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


def _means(values: Array) -> Array:
    """Return the mean of each column, NaN if there are no rows."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)


def _columns(
    replay: Replay, kind: str, of: str, names: Sequence[str], used: Mask | bool = True
) -> Iterator[Record]:
    """Yield the figures of each column of a result, at used samples (n, n_names)."""
    results, qualities = getattr(replay.clean, kind), getattr(replay.clean, QUALITIES[kind])
    good = replay.judged[:, None] & used & (qualities & UNFIT == 0)
    spreads = replay.deviations
    for k, name in enumerate(names):
        rows = good[:, k]
        values = results[:, k].reshape(len(results), -1)[rows]
        deviations = np.full((0, values.shape[1]), np.nan)
        if spreads is not None:
            known = getattr(spreads, kind)[rows[spreads.rows], k].reshape(-1, values.shape[1])
            deviations = known[~np.isnan(known).any(axis=1)]
        figures = {
            'mean': _means(values),
            'rms': np.sqrt(_means(values**2)),
            'standard_deviation': _means(deviations),
        }
        yield {
            of: name,
            'assumed': bool((qualities[rows, k] & Quality.ASSUMED).any()),
            'n_samples': len(values),
            **{key: v.tolist() if len(v) > 1 else float(v[0]) for key, v in figures.items()},
        }


def _residuals(replay: Replay) -> Iterator[Record]:
    """Yield the figures of submodels at samples in which no contact has six unknowns."""
    robot, estimate = replay.robot, replay.clean
    merged = (estimate.submodel_quality & np.uint8(Quality.MERGED)) != 0
    gone = (estimate.contact_quality & GONE) != 0
    used: Mask = np.ones(merged.shape, dtype=bool)
    for c, contact in enumerate(estimate.contacts):
        if contact.kind == 'wrench':
            # A merged submodel may have the contact of the other one.
            s = robot.submodel_of(contact.frame)
            used[:, s] &= gone[:, c] & ~merged[:, s]
    names = [submodel.name for submodel in robot.submodels]
    records = _columns(replay, 'residuals', 'submodel', names, used)
    yield from compress(records, np.any(used, axis=0).tolist())


def _compared_torques(replay: Replay) -> Iterator[Record]:
    """Yield each torque against the one that the robot reports."""
    reference, estimate = replay.recording.samples.efforts, replay.clean
    if reference is None:
        return
    torques = np.where(
        replay.judged[:, None] & (estimate.torque_quality & UNFIT == 0), estimate.torques, np.nan
    )
    records = _columns(replay, 'torques', 'joint', replay.robot.joint_names)
    for j, (one, changes) in enumerate(zip(records, changing(reference), strict=True)):
        if changes and (found := compare(replay.times, torques[:, j], reference[:, j])):
            known = {'joint': one['joint'], 'assumed': one['assumed']}
            yield known | found | {'standard_deviation_nm': one['standard_deviation']}


def compare(times: Array, estimate: Array, reference: Array) -> dict[str, float] | None:
    """
    Return errors of an estimate [Nm], and by how much the reference comes later [s].

    times (n,) [s]; estimate, reference (n,); None: too few samples, or a constant reference. The
    lag is where the error varies least; NaN: beyond the limit.
    """
    both = np.isfinite(estimate) & np.isfinite(reference)
    if both.sum() < MIN_SAMPLES or np.ptp(reference[both]) == 0.0:
        return None
    error = (estimate - reference)[both]
    most = round(MAX_LAG / LAG_STEP)
    lags = LAG_STEP * np.arange(-most, most + 1)
    delayed = np.array([np.interp(times - lag, times, estimate, np.nan, np.nan) for lag in lags])
    # All lags are judged on the same samples.
    usable = np.isfinite(delayed).all(axis=0) & np.isfinite(reference)
    errors = delayed[:, usable] - reference[usable]
    best = int(np.argmin(errors.std(axis=1))) if usable.sum() >= MIN_SAMPLES else 0
    known = best not in (0, len(lags) - 1)
    with np.errstate(invalid='ignore'):
        correlation = np.corrcoef(estimate[both], reference[both])[0, 1]
    return {
        'n_samples': int(both.sum()),
        'mean_error_nm': float(error.mean()),
        'rms_nm': float(np.sqrt(np.mean(error**2))),
        'correlation': float(correlation),
        'lag_s': float(lags[best]) if known else np.nan,
        'rms_at_lag_nm': float(np.sqrt(np.mean(errors[best] ** 2))) if known else np.nan,
    }


def _support(replay: Replay) -> Record | None:
    """Compare the force at a contact in the fixed link's frame with the weight."""
    robot, estimate = replay.robot, replay.clean
    gravity = float(np.linalg.norm(robot.gravity))
    for c, contact in enumerate(estimate.contacts):
        rows = replay.judged & (estimate.contact_quality[:, c] & UNFIT == 0)
        if contact.frame != robot.fixed_frame or gravity < MIN_GRAVITY or not rows.any():
            continue
        upward = -estimate.wrenches[rows, c, :3] @ robot.gravity / gravity
        mean, weight = float(upward.mean()), robot.mass * gravity
        return {
            'contact': contact.name,
            'n_samples': int(rows.sum()),
            'mean_upward_force_n': mean,
            'weight_n': weight,
            'relative_error': mean / weight - 1.0,
        }
    return None


def _inside(kind: str, found: Inside | None) -> Iterator[Record]:
    """Yield the sizes of wrenches inside the robot, where they are known."""
    if found is None:
        return
    for k, (name, frame) in enumerate(zip(found.names, found.frames, strict=True)):
        values = found.wrenches[:, k]
        known = values[np.isfinite(values).all(axis=1)]
        force, moment = (np.linalg.norm(known[:, k : k + 3], axis=1) for k in (0, 3))
        yield {
            kind: name,
            'frame': frame,
            'n_samples': len(known),
            'rms_force_n': float(np.sqrt(_means(force[:, None] ** 2))[0]),
            'max_force_n': float(force.max(initial=0.0)),
            'rms_moment_nm': float(np.sqrt(_means(moment[:, None] ** 2))[0]),
            'max_moment_nm': float(moment.max(initial=0.0)),
        }


def _dependence(replay: Replay, situations: tuple[Situation, ...]) -> Record:
    """Return the sensors that torques and wrenches depend on, and torques without FT sensor."""
    arrays = replay.settings.angular_acceleration_source == 'array'
    tables = [one.dependence(replay.robot, arrays=arrays) for one in situations]
    uninformed: Counter[UninformedTorques] = Counter()
    for situation, table in zip(situations, tables, strict=True):
        uninformed.update(dict.fromkeys(table.uninformed, len(situation.rows)))
    return {
        'torque_dependence': [asdict(row) for row in tables[0].torques] if tables else [],
        'wrench_dependence': [asdict(row) for row in tables[0].wrenches] if tables else [],
        'uninformed': [
            {**asdict(group), 'sample_share': rows / len(replay.times)}
            for group, rows in uninformed.most_common()
        ],
    }
