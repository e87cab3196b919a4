# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Run the estimator over a log: the engine of the node, in batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from inertial_estimation.arrays import Indices
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, LogError
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.log import Log, Progress, TimeRange, Touches, no_progress, spread
from inertial_estimation.logs.offsets import OffsetRequest, compute_offsets
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.results import Inside, LogDeviations, Replay
from inertial_estimation.logs.sensor_agreement import (
    fault_records,
    find_situations,
    momentum_records,
    sensor_records,
    uninformed_torques,
)
from inertial_estimation.logs.summary import replay_findings, summarize
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.topics import RateLimiter
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import stream_noise

SAMPLES_OF_A_MEAN = 100
"""Samples whose standard deviations are computed unless a bag is to hold them."""
SAMPLES_PER_TICK = 50
MIN_BATCH = 8
"""Samples from which a batch costs less than as many steps."""
_ARRAYS = tuple(name for name in WrenchEstimate._fields if name != 'contacts')


def replay(
    robot: Robot,
    log: Log | str | Path,
    settings: EstimatorSettings,
    *,
    time_range: TimeRange | None = None,
    offsets: OffsetRequest | None = None,
    deviations_rate: float | None = None,
    progress: Progress = no_progress,
) -> Replay:
    """
    Estimate the external wrenches and joint torques of a log.

    Parameters
    ----------
    robot : Robot
        As `build_robot` makes it of the settings.
    log : Log, str or Path
        Samples of the log, or the path of a bag.
    settings : EstimatorSettings
        Those of the node.
    time_range : TimeRange, optional
        Part of the log that is estimated; all of it by default.
    offsets : OffsetRequest, optional
        Origin of the FT offsets; the settings by default.
    deviations_rate : float, optional
        Rate of the standard deviations [Hz], 0 for none; by default some 100 samples in all.
    progress : callable, optional
        Called with the stage and its share that is done.

    Returns
    -------
    Replay

    Raises
    ------
    InertialEstimationError
        If log, robot and settings do not fit together.

    """
    build_internal_wrenches(settings, build_estimator(settings, robot))
    if not isinstance(log, Log):
        log = open_log(log, robot, settings, progress=progress)
    request = offsets or OffsetRequest()
    computed = compute_offsets(request, log, robot, settings, progress)
    part = log.within(time_range or TimeRange())
    if robot.ft_sensors and np.isnan(part.samples.ft_readings).all():
        raise LogError('no reading of any FT sensor')
    estimator = build_estimator(settings, robot, calibration=computed.calibration)
    progress('estimating', 0.0)
    estimate = estimate_log(estimator, part.samples, part.touches)
    progress('estimating', 0.5)
    clean = estimate
    if part.frozen.any():
        clean = estimate_log(estimator, part.without_frozen(), part.touches)
    progress('estimating', 1.0)
    judged = ~(request.time_range.mask(part.times) & (request.source != 'settings'))
    found = Replay(estimator, settings, part, estimate, clean, computed, judged)
    if settings.outputs.deviations_rate and deviations_rate != 0.0:
        if deviations_rate is None:
            rows = spread(len(part.samples), SAMPLES_OF_A_MEAN)
        else:
            limiter = RateLimiter(deviations_rate)
            rows = np.flatnonzero([limiter.is_due(at) for at in part.samples.stamp_ns.tolist()])
        found = with_deviations(found, rows, progress)
    internal = build_internal_wrenches(settings, estimator)
    joints, links = settings.outputs.internal_wrench_joints, settings.outputs.net_wrench_links
    if joints:
        wrenches = internal.of(part.samples, found.estimate, joints)
        frames = tuple(internal.frames(joints))
        found = replace(found, through=Inside(joints, frames, wrenches))
    if links:
        columns = [robot.link_names.index(link) for link in links]
        wrenches = internal.net(part.samples, found.estimate)[:, columns]
        found = replace(found, net=Inside(links, links, wrenches))
    progress('checks', 0.0)
    situations = find_situations(found)
    summary = summarize(found) | {
        'momentum': list(momentum_records(found)),
        'sensor_residuals': sensor_records(found, situations),
        'uninformed': list(uninformed_torques(found, situations)),
        'faults': fault_records(found),
    }
    found = replace(found, summary=summary)
    progress('checks', 1.0)
    return replace(found, findings=tuple(replay_findings(found)))


def estimate_log(
    estimator: WrenchEstimator, samples: SampleBatch, touches: Touches | None
) -> WrenchEstimate:
    """Estimate every sample with the contacts of its time."""
    if touches is None or not touches.rows.any():
        return estimator.batch(samples)
    order, parts = [], []
    for number in np.unique(touches.rows):
        contacts = estimator.with_touches(touches.sets[number])
        rows = np.flatnonzero(touches.rows == number)
        if len(rows) >= MIN_BATCH:
            order.append(rows)
            parts.append(estimator.batch(samples.take(rows), contacts))
            continue
        for row in rows.tolist():
            one = estimator.update(samples[row], contacts)
            arrays: dict[str, Any] = {
                name: np.asarray(getattr(one, name))[None] for name in _ARRAYS
            }
            order.append(np.array([row]))
            parts.append(one._replace(**arrays))
    return _joined(estimator, parts, np.argsort(np.concatenate(order)))


def _joined(
    estimator: WrenchEstimator, parts: Sequence[WrenchEstimate], order: Indices
) -> WrenchEstimate:
    """Return parts with different contacts as one table, in which contacts come and go."""
    columns = {contact.name: contact for contact in estimator.contacts}
    for part in parts:
        for contact in part.contacts:
            columns.setdefault(contact.name, contact.at_origin)
    places = list(columns)
    wrenches = np.full((len(order), len(columns), 6), np.nan)
    quality = np.full((len(order), len(columns)), Quality.ABSENT, dtype=np.uint8)
    limits = np.zeros_like(quality)
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part.torques))
        taken = [places.index(contact.name) for contact in part.contacts]
        wrenches[rows, taken] = part.wrenches
        quality[rows, taken], limits[rows, taken] = part.contact_quality, part.limits
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in _ARRAYS
        if name not in ('wrenches', 'contact_quality', 'limits')
    }
    return WrenchEstimate(
        contacts=tuple(columns.values()), wrenches=wrenches[order],
        contact_quality=quality[order], limits=limits[order], **joined,
    )  # fmt: skip


def with_deviations(found: Replay, rows: Indices, progress: Progress = no_progress) -> Replay:
    """Return a replay with the standard deviations at some samples."""
    log, estimator = found.recording, found.estimator
    if log.rates is None:
        return found
    noise = stream_noise(found.settings, found.robot, log.rates)
    m, estimate, touches = len(rows), found.estimate, log.touches
    columns = {contact.name: column for column, contact in enumerate(estimate.contacts)}
    wrenches, torques, external, residuals = (
        np.full((m, *getattr(estimate, name).shape[1:]), np.nan)
        for name in ('wrenches', 'torques', 'external_torques', 'residuals')
    )

    @cache
    def contacts_of(number: int) -> ContactSet | None:
        return estimator.with_touches(touches.sets[number]) if touches and number else None

    lack = ''
    try:
        uncertainty = Uncertainty(estimator, noise.model)
        for k, row in enumerate(rows.tolist()):
            sample = log.samples[row]
            if k % SAMPLES_PER_TICK == 0:
                progress('standard deviations', k / m)
            if not noise.covers(sample):
                lack = 'a filter does not work at the rate of its stream'
                continue
            one = uncertainty.of(sample, contacts_of(int(touches.rows[row]) if touches else 0))
            places = [columns[contact.name] for contact in one.contacts]
            wrenches[k, places], torques[k] = one.wrenches, one.torques
            external[k], residuals[k] = one.external_torques, one.residuals
    except (InertialEstimationError, LinAlgError) as error:
        lack = str(error)
    progress('standard deviations', 1.0)
    deviations = LogDeviations(rows, wrenches, torques, external, residuals, lack)
    return replace(found, deviations=deviations)
