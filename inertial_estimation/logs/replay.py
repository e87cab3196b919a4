# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Run the estimator over a log: the engine of the node, in batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from inertial_estimation.arrays import Indices
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, LogError
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.fault_equations import PERIOD
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.array_samples import Irregular
from inertial_estimation.logs.log import Log, Progress, TimeRange, Touches, no_progress, spread
from inertial_estimation.logs.offsets import OffsetRequest, Offsets, compute_offsets
from inertial_estimation.logs.open_log import open_log, open_pieces, pieces_of
from inertial_estimation.logs.results import (
    ARRAYS,
    Inside,
    LogDeviations,
    Replay,
    ResultBag,
    joined_estimates,
)
from inertial_estimation.logs.sensor_agreement import (
    MAX_SAMPLES,
    fault_records,
    find_situations,
    sensor_records,
)
from inertial_estimation.logs.summary import Summary, replay_findings
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.topics import RateLimiter
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import stream_noise

SAMPLES_OF_A_MEAN = 100
"""Samples whose standard deviations are computed unless a bag is to hold them."""
SAMPLES_PER_TICK = 50
FAULT_SECONDS = 120.0
"""Faults are searched in the pieces that begin earlier than this [s]: they last."""
MIN_BATCH = 8
"""Samples from which a batch costs less than as many steps."""
PIECE = 20.0
"""Length of the pieces of a log that are worked on at once [s]."""


def replay(
    robot: Robot,
    log: Log | str | Path,
    settings: EstimatorSettings,
    *,
    time_range: TimeRange | None = None,
    offsets: OffsetRequest | None = None,
    deviations_rate: float | None = None,
    out: str | Path | None = None,
    whole: bool = True,
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
    out : str or Path, optional
        A new bag for the results, written piece by piece.
    whole : bool
        Return all samples; false: a few of each piece of the log, with the same figures and
        findings, so that the memory does not grow with the length of a bag.
    progress : callable, optional
        Called with the stage and its share that is done.

    Returns
    -------
    Replay

    Raises
    ------
    InertialEstimationError
        If log, robot and settings do not fit together, or the bag of the results exists.

    """
    build_internal_wrenches(settings, build_estimator(settings, robot))
    request = offsets or OffsetRequest()
    if not isinstance(log, Log) and request.source != 'settings':
        log = open_log(log, robot, settings, progress=progress)
    job = _Job(robot, settings, time_range or TimeRange(), deviations_rate, out, whole, progress)
    try:
        if isinstance(log, Log):
            computed = compute_offsets(request, log, robot, settings, progress)
            return job.run(pieces_of(log, PIECE), computed)
        calibration = build_estimator(settings, robot).calibration
        pieces = open_pieces(log, robot, settings, PIECE, progress)
        return job.run(pieces, Offsets(request, calibration))
    except Irregular:
        # Message by message: only a later part of the bag needs it.
        pieces = pieces_of(open_log(str(log), robot, settings, progress=progress), PIECE)
        return job.run(pieces, Offsets(request, calibration))


class _Job(NamedTuple):
    """A replay of one piece of a log after the other."""

    robot: Robot
    settings: EstimatorSettings
    time_range: TimeRange
    deviations_rate: float | None
    out: str | Path | None
    whole: bool
    progress: Progress

    def run(self, pieces: Iterable[Log], offsets: Offsets) -> Replay:
        """Return the replay of the pieces."""
        estimator = build_estimator(self.settings, self.robot, calibration=offsets.calibration)
        summary, rate = Summary(self.robot, self.settings), self.deviations_rate
        wants = bool(self.settings.outputs.deviations_rate) and rate != 0.0
        limiter, lack, span = RateLimiter(rate or 0.0), '', []
        kept, few, even, reads = [], [], [], not self.robot.ft_sensors
        with ExitStack() as stack:
            bag = None if self.out is None else stack.enter_context(ResultBag(self.out))
            for log in _in_hindsight(pieces):
                span += [log.times[0], log.times[-1]]
                rows = np.flatnonzero(self.time_range.mask(log.times))
                if not len(rows):
                    continue
                found = self._estimated(log.take(slice(rows[0], rows[-1] + 1)), estimator, offsets)
                reads = reads or not np.isnan(found.recording.samples.ft_readings).all()
                if bag is not None:
                    if wants and rate:
                        stamps = found.recording.samples.stamp_ns.tolist()
                        due = np.flatnonzero([limiter.is_due(stamp) for stamp in stamps])
                        found = with_deviations(found, due)
                        lack = found.deviations.lack if found.deviations else ''
                    bag.add(found, self.progress)
                summary.add(found)
                # Evenly spread over the samples that are judged, over all if none is.
                rows = np.flatnonzero(found.judged if found.judged.any() else ~found.judged)
                few.append(found.take(rows[spread(len(rows), MAX_SAMPLES)]))
                kept.append(found if self.whole else few[-1])
                even += _even(found.recording, summary.start_ns)
                self.progress('estimating', 0.5)
            if not (kept and reads):
                start, stop = self.time_range.start, self.time_range.stop
                raise LogError(
                    'no reading of any FT sensor' if kept else
                    f'no sample lies between {start} s and {stop} s: '
                    f'the log spans {min(span):.2f} s to {max(span):.2f} s'
                )  # fmt: skip
        self.progress('estimating', 1.0)
        result, part = Replay.joined(kept), Replay.joined(few)
        if wants and (rate is None or bag is None or self.whole):
            rows = spread(len(result.times), SAMPLES_OF_A_MEAN)
            if rate is not None:
                limiter, stamps = RateLimiter(rate), result.recording.samples.stamp_ns.tolist()
                rows = np.flatnonzero([limiter.is_due(stamp) for stamp in stamps])
            result = with_deviations(result, rows, self.progress)
            lack = result.deviations.lack if result.deviations else ''
            if result.deviations and (rate is None or bag is None):
                summary.add_deviations(result)
        self.progress('checks', 0.0)
        record = summary.record(result, lack) | {
            'sensor_residuals': sensor_records(part, find_situations(part)),
            'faults': fault_records(replace(part, recording=Log.joined(even))),
        }
        result = replace(result, summary=record)
        self.progress('checks', 1.0)
        return replace(result, findings=(*summary.findings(), *replay_findings(result)))

    def _estimated(self, log: Log, estimator: WrenchEstimator, offsets: Offsets) -> Replay:
        """Return the estimates of a piece."""
        estimate = clean = estimate_log(estimator, log.samples, log.touches)
        if log.frozen.any():
            clean = estimate_log(estimator, log.without_frozen(), log.touches)
        request, outputs = offsets.request, self.settings.outputs
        judged = ~(request.time_range.mask(log.times) & (request.source != 'settings'))
        found = Replay(estimator, self.settings, log, estimate, clean, offsets, judged)
        internal = build_internal_wrenches(self.settings, estimator)
        if joints := outputs.internal_wrench_joints:
            wrenches = internal.of(log.samples, estimate, joints)
            frames = tuple(internal.frames(joints))
            found = replace(found, through=Inside(joints, frames, wrenches))
        if links := outputs.net_wrench_links:
            columns = [self.robot.link_names.index(link) for link in links]
            wrenches = internal.net(log.samples, estimate)[:, columns]
            found = replace(found, net=Inside(links, links, wrenches))
        return found


def _in_hindsight(pieces: Iterable[Log]) -> Iterator[Log]:
    """Give each piece the figures up to the end of the next: what froze at its end shows there."""
    held = None
    for log in pieces:
        if not len(log.samples):
            held = held and replace(log, samples=held.samples, touches=held.touches)
            continue
        if held is not None:
            yield replace(held, statistics=log.statistics)
            log = replace(log, origin_ns=held.origin_ns)
        held = log
    if held is not None:
        yield held


def _even(log: Log, start_ns: int) -> list[Log]:
    """Return the samples of a piece that the search for faults looks at."""
    times = log.samples.stamp_ns - start_ns
    if times[0] > 1e9 * FAULT_SECONDS:
        return []
    after = np.unique(times // round(1e9 * PERIOD), return_index=True)[1]
    return [log.take(np.unique([*np.maximum(after - 1, 0), *after, len(times) - 1]))]


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
                name: np.asarray(getattr(one, name))[None] for name in ARRAYS
            }
            order.append(np.array([row]))
            parts.append(one._replace(**arrays))
    return joined_estimates(estimator, parts, np.argsort(np.concatenate(order)))


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
