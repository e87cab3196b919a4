# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a replay as records: streams, offsets, wrenches, torques, residuals, dependence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.estimation.dependence import UninformedTorques
from inertial_estimation.estimation.estimate import Flags, Quality
from inertial_estimation.logs.comparison import changing, compare
from inertial_estimation.logs.results import Inside, Replay
from inertial_estimation.logs.sensor_agreement import momentum_record, sensor_records
from inertial_estimation.logs.situations import GONE, Situation, find_situations
from inertial_estimation.model.tree import Submodel
from inertial_estimation.signals.stream import StreamStatistics

Record = dict[str, Any]

UNFIT = ~np.uint8(Quality.ASSUMED)
"""Results with another flag than that are not judged."""
MAX_SITUATIONS = 20
"""Most frequent sets of contacts and sensors whose dependence is computed."""
MIN_GRAVITY = 1e-9
"""Less gravity than this is none [m/s^2]."""


def summarize(replay: Replay) -> Record:
    """Return the figures of a replay."""
    robot, log, clean = replay.robot, replay.recording, replay.clean
    times, statistics, request = log.times, log.statistics, replay.offsets.request
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    fit = replay.offsets.torques or replay.offsets.model
    computed, range_ = request.source != 'settings', request.time_range
    estimator = build_estimator(replay.settings, robot, replay.calibration)
    situations = find_situations(estimator, log.samples, clean, log.touches)
    residuals, n_instants = sensor_records(replay, situations, replay.judged)
    fts, imus, joints = (
        (statistics.fts, statistics.imus, statistics.joints) if statistics else ({}, {}, {})
    )
    # The name of a part begins with the index of its topic.
    parts = {}
    for name, part in sorted(joints.items()):
        index, _, names = name.partition(': ')
        parts[f'{replay.settings.joint_states.topics[int(index)]}: {names}'] = part
    return {
        'robot': robot.name,
        'n_samples': len(times),
        'time_range_s': [float(times[0]), float(times[-1])],
        'judged_s': float(replay.judged.sum()) * usual,
        'offset_source': request.source,
        'offset_support': replay.offsets.support,
        'offset_range_s': [range_.start, range_.stop] if computed else None,
        'offset_samples': fit.n_samples if fit else 0,
        'offsets': list(_offsets(replay)),
        'fts': list(_streams(fts, log.origin_ns)),
        'imus': list(_streams(imus, log.origin_ns)),
        'joint_states': list(_streams(parts, log.origin_ns)),
        'assumed_joints': list(replay.settings.joint_states.assumed),
        'ignored_joints': list(statistics.ignored_joints if statistics else ()),
        'wrenches': list(_wrenches(replay)),
        'torques': list(_compared_torques(replay)),
        'support': _support(replay),
        'estimated_torques': list(_torques(replay, 'torques', clean.torque_quality)),
        'external_torques': list(
            _torques(replay, 'external_torques', clean.external_torque_quality)
            if clean.contacts
            else ()
        ),
        'external_torque_base': robot.external_torque_base or robot.links[robot.base].name,
        'residuals': list(_residuals(replay)),
        'deviations_lack': replay.deviations.lack if replay.deviations else '',
        'checks': {
            'momentum': momentum_record(replay),
            'sensor_residuals': residuals,
            'residual_instants': n_instants,
            'through': list(_inside('joint', replay.through)),
            'net': list(_inside('link', replay.net)),
            **_dependence(replay, situations[:MAX_SITUATIONS]),
        },
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


def _offsets(replay: Replay) -> Iterator[Record]:
    """Yield the offset of each FT sensor, and the standard deviation of reading - prediction."""
    offsets = replay.offsets
    deviations = None if offsets.model is None else offsets.model.deviations.reshape(-1, 6)
    for k, sensor in enumerate(replay.robot.ft_sensors):
        yield {
            'sensor': sensor.name,
            'assumed': bool(offsets.assumed[k]),
            'offset': offsets.calibration.offsets[k].tolist(),
            'deviation': None if deviations is None else deviations[k].tolist(),
        }


def _means(values: Array) -> list[float]:
    """Return the mean of each column, NaN if there are no rows."""
    return (values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)).tolist()


def _deviation(replay: Replay, rows: Mask, kind: str, column: int, size: int) -> list[float]:
    """Return the mean standard deviation of a result at some samples (n,)."""
    found = replay.deviations
    if found is None:
        return [np.nan] * size
    values = getattr(found, kind)[rows[found.rows], column].reshape(-1, size)
    return _means(values[~np.isnan(values).any(axis=1)])


def _figures(replay: Replay, kind: str, column: int, quality: Flags, used: Mask) -> Record:
    """Return the figures of a column of a result, with qualities (n,), at used samples (n,)."""
    rows = replay.judged & used & (quality & UNFIT == 0)
    results = getattr(replay.clean, kind)[:, column]
    values = results.reshape(len(results), -1)[rows]
    return {
        'assumed': bool((quality[rows] & Quality.ASSUMED).any()),
        'n_samples': len(values),
        'mean': _means(values),
        'rms': np.sqrt(_means(values**2)).tolist(),
        'standard_deviation': _deviation(replay, rows, kind, column, values.shape[1]),
    }


def _wrenches(replay: Replay) -> Iterator[Record]:
    """Yield the figures of each contact, in and about its frame."""
    every = np.ones(len(replay.times), dtype=bool)
    for c, contact in enumerate(replay.clean.contacts):
        figures = _figures(replay, 'wrenches', c, replay.clean.contact_quality[:, c], every)
        yield {'contact': contact.name, 'frame': contact.frame, **figures}


def _torques(replay: Replay, kind: str, qualities: Flags) -> Iterator[Record]:
    """Yield the figures of torques of one kind, qualities (n, n_joints)."""
    every = np.ones(len(replay.times), dtype=bool)
    for j, joint in enumerate(replay.robot.joint_names):
        figures = _figures(replay, kind, j, qualities[:, j], every)
        scalars = {key: figures[key][0] for key in ('mean', 'rms', 'standard_deviation')}
        yield {'joint': joint, **figures, **scalars}


def _residuals(replay: Replay) -> Iterator[Record]:
    """Yield the figures of submodels without a contact of six unknowns."""
    for s, submodel in enumerate(replay.robot.submodels):
        quality = replay.clean.submodel_quality[:, s]
        open_ = _is_open(replay, submodel, quality)
        if open_.any():
            figures = _figures(replay, 'residuals', s, quality, open_)
            yield {'submodel': submodel.name, **figures}


def _is_open(replay: Replay, submodel: Submodel, quality: Flags) -> Mask:
    """Return the samples (n,) in which no contact of a submodel has six unknowns."""
    robot, estimate = replay.robot, replay.clean
    full = np.array(
        [
            contact.kind == 'wrench' and robot.frame(contact.frame)[0] in submodel.links
            for contact in estimate.contacts
        ],
        dtype=bool,
    )
    if not full.any():
        return np.ones(len(quality), dtype=bool)
    gone = ((estimate.contact_quality[:, full] & GONE) != 0).all(axis=1)
    # A merged submodel may have the contact of the other one.
    return np.asarray(gone & (quality & np.uint8(Quality.MERGED) == 0))


def _compared_torques(replay: Replay) -> Iterator[Record]:
    """Yield each torque against the one that the robot reports."""
    reference, estimate = replay.recording.samples.efforts, replay.clean
    if reference is None:
        return
    for j in np.flatnonzero(changing(reference)).tolist():
        quality = estimate.torque_quality[:, j]
        rows = replay.judged & (quality & UNFIT == 0)
        torque = np.where(rows, estimate.torques[:, j], np.nan)
        found = compare(replay.times, torque, reference[:, j])
        if found is not None:
            yield {
                'joint': replay.robot.joint_names[j],
                'assumed': bool((quality[rows] & Quality.ASSUMED).any()),
                **found,
                'standard_deviation_nm': _deviation(replay, rows, 'torques', j, 1)[0],
            }


def _support(replay: Replay) -> Record | None:
    """
    Compare the force at a contact in the fixed link's frame with the weight.

    Where the offsets were computed with that contact as support they assume this weight
    [T 4.27]; the difference is then their drift.
    """
    robot, estimate = replay.robot, replay.clean
    gravity = float(np.linalg.norm(robot.gravity))
    for c, contact in enumerate(estimate.contacts):
        rows = replay.judged & (estimate.contact_quality[:, c] & UNFIT == 0)
        if contact.frame != robot.fixed_frame or gravity < MIN_GRAVITY or not rows.any():
            continue
        upward = -estimate.wrenches[rows, c, :3] @ robot.gravity / gravity
        mean, weight = float(upward.mean()), robot.mass * gravity
        support = replay.offsets.support
        links = {robot.frame(f)[0] for f in (support, robot.fixed_frame)} if support else set()
        return {
            'contact': contact.name,
            'assumes_weight': bool(links)
            and any(links <= set(submodel.links) for submodel in robot.submodels),
            'n_samples': int(rows.sum()),
            'mean_upward_force_n': mean,
            'weight_n': weight,
            'relative_error': mean / weight - 1.0,
        }
    return None


def _inside(kind: str, found: Inside | None) -> Iterator[Record]:
    """Yield the sizes of wrenches inside the robot, where they are known."""
    for name, frame, values in (
        () if found is None else zip(found.names, found.frames, found.wrenches.swapaxes(0, 1))
    ):
        known = values[np.isfinite(values).all(axis=1)]
        force, moment = (np.linalg.norm(known[:, k : k + 3], axis=1) for k in (0, 3))
        yield {
            kind: name,
            'frame': frame,
            'n_samples': len(known),
            'nan_share': 1.0 - len(known) / len(values),
            'rms_force_n': float(np.sqrt(np.mean(force**2))) if len(known) else np.nan,
            'max_force_n': float(force.max(initial=0.0)) if len(known) else np.nan,
            'rms_moment_nm': float(np.sqrt(np.mean(moment**2))) if len(known) else np.nan,
            'max_moment_nm': float(moment.max(initial=0.0)) if len(known) else np.nan,
        }


def _dependence(replay: Replay, situations: tuple[Situation, ...]) -> Record:
    """Return the sensors that torques and wrenches depend on, and torques without FT sensor."""
    arrays = replay.settings.angular_acceleration_source == 'array'
    tables = [one.dependence(replay.robot, arrays=arrays) for one in situations]
    uninformed: Counter[UninformedTorques] = Counter()
    for situation, table in zip(situations, tables, strict=True):
        uninformed.update(dict.fromkeys(table.uninformed, len(situation.rows)))
    return {
        'dependence': {
            'torques': [asdict(row) for row in tables[0].torques] if tables else [],
            'wrenches': [asdict(row) for row in tables[0].wrenches] if tables else [],
        },
        'uninformed': [
            {**asdict(group), 'sample_share': rows / len(replay.times)}
            for group, rows in uninformed.most_common()
        ],
    }
