# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Run the estimator over a log: the engine of the node, in batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, InertialEstimationError, NameNotFound
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.internal_wrenches import (
    InternalWrenches,
    build_internal_wrenches,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.checks import replay_findings
from inertial_estimation.logs.log import Log, Progress, TimeRange, no_progress
from inertial_estimation.logs.offsets import OffsetRequest, Offsets, compute_offsets
from inertial_estimation.logs.open_log import open_log, require_temperatures
from inertial_estimation.logs.results import Inside, LogDeviations, Replay
from inertial_estimation.logs.summary import summarize
from inertial_estimation.logs.touches import estimate_log
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

Indices = NDArray[np.intp]

NANOSECONDS = 1_000_000_000
SAMPLES_OF_A_MEAN = 100
"""Samples whose standard deviations are computed unless a bag is to hold them."""
SAMPLES_PER_TICK = 50


def replay(
    robot: Robot,
    log: Log | str | Path,
    settings: EstimatorSettings,
    *,
    time_range: TimeRange | None = None,
    offsets: OffsetRequest | None = None,
    through: Sequence[str] = (),
    net: Sequence[str] = (),
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
    through : sequence of str, optional
        Joints whose wrench is computed besides those of the settings.
    net : sequence of str, optional
        Links whose net wrench is computed besides those of the settings.
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
    joints, links = check_settings(robot, settings, through, net)
    if not isinstance(log, Log):
        log = open_log(log, robot, settings, progress=progress)
    request = OffsetRequest() if offsets is None else offsets
    computed = compute_offsets(request, log, robot, settings, progress)
    part = log.within(TimeRange() if time_range is None else time_range)
    found = run(part, robot, settings, computed, progress)
    if settings.deviations_rate and deviations_rate != 0.0:
        found = with_deviations(found, _rows(part, deviations_rate), progress)
    internal = InternalWrenches(build_estimator(settings, robot, calibration=computed.calibration))
    if joints:
        progress('wrenches through joints', 0.0)
        wrenches = internal.of(part.samples, found.estimate, joints)
        inside = Inside(joints, tuple(internal.frames(joints)), wrenches)
        found = replace(found, through=inside)
    if links:
        progress('net wrenches of links', 0.0)
        rows = [robot.link_names.index(link) for link in links]
        wrenches = internal.net(part.samples, found.estimate)[:, rows]
        found = replace(found, net=Inside(links, links, wrenches))
    progress('cross-checks', 0.0)
    found = replace(found, summary=summarize(found))
    progress('cross-checks', 1.0)
    return replace(found, findings=tuple(replay_findings(found)))


def run(
    log: Log,
    robot: Robot,
    settings: EstimatorSettings,
    offsets: Offsets | None = None,
    progress: Progress = no_progress,
) -> Replay:
    """Estimate every sample, without summary and findings."""
    if offsets is None:
        offsets = Offsets(OffsetRequest(), build_estimator(settings, robot).calibration)
    estimator = build_estimator(settings, robot, calibration=offsets.calibration)
    progress('estimating', 0.0)
    estimate = estimate_log(estimator, log.samples, log.touches)
    progress('estimating', 0.5)
    hindsight = log.without_frozen(sensor.name for sensor in robot.ft_sensors)
    clean = estimate_log(estimator, hindsight, log.touches)
    progress('estimating', 1.0)
    request = offsets.request
    judged = ~(request.time_range.mask(log.times) & (request.source != 'settings'))
    return Replay(robot, settings, log, estimate, clean, offsets, judged)


def _rows(log: Log, rate: float | None) -> Indices:
    """Return the samples whose standard deviations are computed."""
    stamps_ns = log.samples.stamp_ns
    if rate is not None:
        return rows_at_rate(stamps_ns, rate)
    n = len(stamps_ns)
    rows = np.linspace(0, n - 1, min(n, SAMPLES_OF_A_MEAN)).round()
    return np.unique(rows.astype(np.intp))


def rows_at_rate(stamps_ns: NDArray[np.int64], rate: float) -> Indices:
    """
    Return the samples that the node would have published at a rate.

    stamps_ns (n,) [ns]; rate [Hz].
    """
    period_ns, last_ns = round(NANOSECONDS / rate), 0
    rows = []
    for row, stamp_ns in enumerate(stamps_ns.tolist()):
        if not 0 <= stamp_ns - last_ns < period_ns:
            rows.append(row)
            last_ns = stamp_ns
    return np.array(rows, dtype=np.intp)


def with_deviations(found: Replay, rows: Indices, progress: Progress = no_progress) -> Replay:
    """Return a replay with the standard deviations at some samples."""
    log, robot, settings = found.recording, found.robot, found.settings
    if log.rates is None:
        return found
    estimator = build_estimator(settings, robot, calibration=found.calibration)
    noise = stream_noise(settings, robot, log.rates)
    m, estimate = len(rows), found.estimate
    columns = {contact.name: column for column, contact in enumerate(estimate.contacts)}
    wrenches, torques, external, residuals = (
        np.full((m, *values.shape[1:]), np.nan)
        for values in (
            estimate.wrenches, estimate.torques, estimate.external_torques, estimate.residuals,
        )
    )  # fmt: skip
    lack = ''
    try:
        uncertainty = Uncertainty(estimator, noise.model)
        contact_sets = _ContactSets(estimator, log)
        for k, row in enumerate(rows.tolist()):
            sample = log.samples[row]
            if k % SAMPLES_PER_TICK == 0:
                progress('standard deviations', k / m)
            if not noise.covers(sample):
                lack = 'a filter does not work at the rate of its stream, or is adaptive_window'
                continue
            one = uncertainty.of(sample, contact_sets.at(row))
            places = [columns[contact.name] for contact in one.contacts]
            wrenches[k, places], torques[k] = one.wrenches, one.torques
            external[k], residuals[k] = one.external_torques, one.residuals
    except (InertialEstimationError, LinAlgError) as error:
        lack = str(error)
    progress('standard deviations', 1.0)
    deviations = LogDeviations(rows, wrenches, torques, external, residuals, lack)
    return replace(found, deviations=deviations)


class _ContactSets:
    """The contacts of each sample."""

    def __init__(self, estimator: WrenchEstimator, log: Log) -> None:
        self._estimator, self._touches = estimator, log.touches
        self._sets: dict[int, ContactSet | None] = {0: None}

    def at(self, row: int) -> ContactSet | None:
        """Return the contacts of a sample; None: the default ones."""
        if self._touches is None:
            return None
        number = int(self._touches.rows[row])
        if number not in self._sets:
            self._sets[number] = self._estimator.with_touches(self._touches.sets[number])
        return self._sets[number]


def check_settings(
    robot: Robot,
    settings: EstimatorSettings,
    joints: Sequence[str] = (),
    links: Sequence[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return joints and links whose wrenches are computed; raise for unknown names."""
    require_temperatures(robot, settings)
    for kind, names in (('joint', joints), ('link', links)):
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise ConfigError(f'{kind} {", ".join(twice)} is named more than once')
    all_joints = tuple(dict.fromkeys((*settings.internal_wrench_joints, *joints)))
    all_links = tuple(dict.fromkeys((*settings.net_wrench_links, *links)))
    if all_joints or all_links:
        build_internal_wrenches(settings, build_estimator(settings, robot)).frames(all_joints)
    for link in links:
        if link not in robot.link_names:
            raise NameNotFound('link', link, robot.link_names)
    return all_joints, all_links
