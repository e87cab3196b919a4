# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Run the estimator over a log: the engine of the node, in batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
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
from inertial_estimation.estimation.reading_checks import ReadingChecks
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.array_samples import Irregular
from inertial_estimation.logs.log import Log, Progress, TimeRange, Touches, no_progress, spread
from inertial_estimation.logs.offsets import OffsetRequest, Offsets, compute_offsets
from inertial_estimation.logs.open_log import open_log, open_pieces
from inertial_estimation.logs.results import (
    Inside,
    LogDeviations,
    Replay,
    ResultBag,
    joined_estimates,
)
from inertial_estimation.logs.sensor_agreement import fault_records
from inertial_estimation.logs.summary import Summary, replay_findings
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.topics import RateLimiter
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import stream_noise

SAMPLES_OF_A_MEAN, SAMPLES_OF_A_PIECE = 100, 10
"""Samples whose standard deviations are averaged, of a log and of each of its pieces."""
SAMPLES_PER_TICK = 50
FAULT_SECONDS = 120.0
"""Faults are searched in the pieces that begin earlier than this [s]: they last."""
PIECE, MAX_PIECES, MAX_SAMPLES = 10.0, 16, 200
"""Length of the pieces of a bag [s], and how many keep so many samples; of more, fewer stay."""


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
        Rate of the standard deviations [Hz], 0 for none; by default that of the settings, of
        which some 100 samples in all are averaged, and alone computed without a bag.
    out : str or Path, optional
        A new bag for the results, written piece by piece.
    whole : bool
        Return all samples. False: where the settings have the FT offsets, read a bag in pieces
        and return a few samples of each, so that the memory does not grow with its length.
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
    span, request = time_range or TimeRange(), offsets or OffsetRequest()
    if request.time_range == TimeRange():
        request = replace(request, time_range=span)
    request.support_of(robot, settings)
    job = _Job(robot, settings, span, deviations_rate, out, whole, progress)
    if not (whole or isinstance(log, Log)) and request.source == 'settings':
        try:
            pieces = open_pieces(log, robot, settings, PIECE, progress)
            found = compute_offsets(request, None, robot, settings)
            return job.run(pieces, found, SAMPLES_OF_A_PIECE)
        except Irregular:
            # Only a later part of the bag needs the messages one after the other.
            pass
    if not isinstance(log, Log):
        log = open_log(log, robot, settings, progress=progress)
    return job.run([log], compute_offsets(request, log, robot, settings, progress))


class _Job(NamedTuple):
    """A replay of one piece of a log after the other."""

    robot: Robot
    settings: EstimatorSettings
    time_range: TimeRange
    deviations_rate: float | None
    out: str | Path | None
    whole: bool
    progress: Progress

    def run(
        self, pieces: Iterable[Log], offsets: Offsets, n_averaged: int = SAMPLES_OF_A_MEAN
    ) -> Replay:
        """Return the replay of the pieces; all of it if it is one."""
        estimator = build_estimator(self.settings, self.robot, calibration=offsets.calibration)
        summary, checks = Summary(self.robot, self.settings), ReadingChecks(self.robot)
        rate, taken = self.deviations_rate, np.zeros(0, dtype=np.intp)
        limiter = RateLimiter(self.settings.outputs.deviations_rate if rate is None else rate)
        few, even, span, reads, stride = [], [], [], not self.robot.ft_sensors, 1
        self.progress('estimating', 0.0)
        with ExitStack() as stack:
            bag = None if self.out is None else stack.enter_context(ResultBag(self.out))
            for log in _in_hindsight(pieces):
                span += [log.times[0], log.times[-1]]
                rows = np.flatnonzero(self.time_range.mask(log.times))
                if not len(rows):
                    continue
                part = log if len(rows) == len(log.times) else log.take(rows)
                found = self._estimated(part, estimator, offsets, checks)
                if self.settings.outputs.deviations_rate and rate != 0.0:
                    due = np.flatnonzero([*map(limiter.is_due, part.samples.stamp_ns.tolist())])
                    taken = due if rate else due[spread(len(due), n_averaged)]
                    written = taken if bag is None else due
                    found = with_deviations(found, written, self.progress)
                reads = reads or not np.isnan(found.recording.samples.ft_readings).all()
                summary.add(found, taken)
                if bag is not None:
                    bag.add(found, self.progress)
                # Evenly spread over the samples that are judged.
                rows = np.flatnonzero(found.judged)
                few.append(found.take(rows[spread(len(rows), max(MAX_SAMPLES // stride, 1))]))
                if len(few) == MAX_PIECES * stride:
                    stride *= 2
                    few = [one.take(np.arange(0, len(one.times), 2)) for one in few]
                # The search for faults looks at even times: only the samples beside them count.
                times = part.samples.stamp_ns - summary.start_ns
                if times[0] <= 1e9 * FAULT_SECONDS:
                    after = np.unique(times // round(1e9 * PERIOD), return_index=True)[1]
                    beside = [*np.maximum(after - 1, 0), *after, len(times) - 1]
                    even.append(part.take(np.unique(beside)))
            if not (few and reads):
                start, stop = self.time_range.start, self.time_range.stop
                spans = f'the log spans {min(span):.2f} s to {max(span):.2f} s'
                outside = f'no sample lies in {start} s to {stop} s: {spans}'
                raise LogError('no reading of any FT sensor' if few else outside)
        self.progress('estimating', 1.0)
        self.progress('checks', 0.0)
        some = Replay.joined(few)
        record = summary.record(some) | {
            'faults': fault_records(replace(some, recording=Log.joined(even)))
        }
        self.progress('checks', 1.0)
        result = replace(found if self.whole else some, summary=record)
        findings = (*summary.findings(), *checks.seen.values(), *replay_findings(result))
        return replace(result, findings=findings)

    def _estimated(
        self, log: Log, estimator: WrenchEstimator, offsets: Offsets, checks: ReadingChecks
    ) -> Replay:
        """Return the estimates of a piece."""
        failing, numbers = checks.follow(log.samples)
        marks = [partial(checks.marked, failing=one) if one else None for one in failing]
        estimate = clean = estimate_log(estimator, log.samples, log.touches, marks, numbers)
        if log.frozen.any():
            samples = log.without_frozen()
            clean = estimate_log(estimator, samples, log.touches, marks, numbers)
        request, outputs = offsets.request, self.settings.outputs
        judged = ~(request.time_range.mask(log.times) & (request.source != 'settings'))
        # Where all of the log gave the offsets, it is judged all the same.
        judged |= not judged.any()
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


def estimate_log(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    touches: Touches | None,
    marks: Sequence[Any],
    numbers: Indices,
) -> WrenchEstimate:
    """Estimate every sample with the contacts of its time and its one of the marks of `batch`."""
    kinds = numbers if touches is None else touches.rows * len(marks) + numbers
    if not kinds.any():
        return estimator.batch(samples, mark=marks[0])
    order, parts = [], []
    for kind in np.unique(kinds).tolist():
        touch, mark = divmod(kind, len(marks))
        contacts = estimator.with_touches(touches.sets[touch] if touches else ())
        rows = np.flatnonzero(kinds == kind)
        order.append(rows)
        parts.append(estimator.batch(samples.take(rows), contacts, marks[mark]))
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
