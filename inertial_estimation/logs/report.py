# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sum up a replay in figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.causes import find_causes
from inertial_estimation.logs.check_figures import CrossChecks
from inertial_estimation.logs.check_warnings import check_warnings
from inertial_estimation.logs.comparison import Comparison, compare, speaking
from inertial_estimation.logs.cross_checks import cross_checks
from inertial_estimation.logs.figures import (
    OffsetReport,
    ReplayReport,
    SupportReport,
    TorqueReport,
)
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.logs.reach import Reach, find_assumed_offsets
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.logs.replay import Replay, make_estimator
from inertial_estimation.logs.stream_reports import stream_reports, with_topics
from inertial_estimation.logs.summaries import (
    UNFIT,
    estimated_torque_reports,
    external_torque_reports,
    mean_deviation,
    residual_reports,
    wrench_reports,
)
from inertial_estimation.logs.weight import support_report
from inertial_estimation.logs.wording import (
    lack_of_reference,
    warn_of_deviations,
    warn_of_doubts,
    warn_of_nothing_judged,
    warn_of_reported,
    warn_of_slow_senders,
    warn_of_support,
    warn_of_touches,
)
from inertial_estimation.model.robot import Robot

Mask = NDArray[np.bool_]


def make_report(
    replay: Replay, offsets: Offsets, progress: Progress = no_progress
) -> ReplayReport:
    """Sum up a replay."""
    robot, recording = replay.robot, replay.recording
    times, statistics = recording.times, recording.statistics
    computed = offsets.request.source != 'settings'
    judged = ~(offsets.request.time_range.mask(times) & computed)
    fit = offsets.torques or offsets.model
    reach = _reach(replay, offsets)
    assumed = reach.of_any_sensor
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    range_ = offsets.request.time_range
    wrenches = wrench_reports(replay, judged, assumed.wrenches)
    support = support_report(replay, judged, offsets, wrenches)
    torques = _torques(replay, judged, assumed.torques)
    progress('cross-checks', 0.0)
    checks = cross_checks(replay, judged)
    progress('cross-checks', 1.0)
    return ReplayReport(
        robot=robot.name,
        n_samples=len(times),
        time_range_s=(float(times[0]), float(times[-1])),
        judged_s=float(judged.sum()) * usual,
        offset_source=offsets.request.source,
        offset_basis=offsets.basis,
        offset_support=offsets.support,
        offset_range_s=(range_.start, range_.stop) if computed else None,
        offset_samples=fit.n_samples if fit else 0,
        offsets=_offsets(robot, offsets),
        fts=stream_reports(statistics.fts, recording.origin_ns),
        imus=stream_reports(statistics.imus, recording.origin_ns),
        joint_states=stream_reports(
            with_topics(statistics.joints, replay.settings.joint_topics), recording.origin_ns
        ),
        assumed_joints=tuple(replay.settings.assumed_joints),
        ignored_joints=tuple(statistics.ignored_joints),
        wrenches=wrenches,
        torques=torques,
        support=support,
        estimated_torques=estimated_torque_reports(replay, judged, assumed.torques),
        external_torques=external_torque_reports(replay, judged, assumed.wrenches),
        external_torque_base=robot.external_torque_base or robot.links[robot.base].name,
        residuals=residual_reports(replay, judged),
        causes=find_causes(replay, reach),
        offset_doubts=offsets.doubts,
        checks=checks,
        warnings=_warnings(replay, offsets, judged, torques, support, checks),
    )


def _warnings(
    replay: Replay,
    offsets: Offsets,
    judged: Mask,
    torques: Sequence[TorqueReport],
    support: SupportReport | None,
    checks: CrossChecks,
) -> tuple[str, ...]:
    recording = replay.recording
    touches = recording.touches
    reference = lack_of_reference(recording.samples.efforts)
    texts = (
        warn_of_reported(recording.reported_assumed),
        warn_of_nothing_judged(judged, torques, reference),
        warn_of_doubts(offsets.doubts, offsets.support),
        warn_of_support(support),
        warn_of_touches(touches.problems if touches else {}),
        warn_of_slow_senders(
            touches.slow_senders if touches else (), replay.settings.contact_timeout
        ),
        warn_of_deviations(replay.deviations.lack if replay.deviations else ''),
        *check_warnings(checks),
    )
    return tuple(text for text in texts if text)


def _reach(replay: Replay, offsets: Offsets) -> Reach:
    """Return what rests on assumed joints through offsets, with and without touches."""
    samples, contacts = replay.recording.samples, replay.clean.contacts
    robot, settings = replay.robot, replay.settings
    estimator = make_estimator(robot, settings, calibration=replay.calibration)
    reach = find_assumed_offsets(offsets, estimator, samples)
    if len(contacts) == len(estimator.contacts):
        return reach
    touched = make_estimator(robot, settings, contacts=contacts, calibration=replay.calibration)
    other = find_assumed_offsets(offsets, touched, samples)
    return Reach(other.wrenches, reach.torques | other.torques)


def _offsets(robot: Robot, offsets: Offsets) -> tuple[OffsetReport, ...]:
    """Return a report for each FT sensor."""
    deviations = None if offsets.model is None else offsets.model.deviations.reshape(-1, 6)
    return tuple(
        OffsetReport(
            sensor=sensor.name,
            assumed=bool(offsets.assumed[k]),
            offset=tuple(offsets.calibration.offsets[k].tolist()),
            deviation=None if deviations is None else tuple(deviations[k].tolist()),
        )
        for k, sensor in enumerate(robot.ft_sensors)
    )


def _torques(replay: Replay, judged: Mask, assumed: Mask) -> tuple[TorqueReport, ...]:
    reference = replay.recording.samples.efforts
    if reference is None:
        return ()
    estimate, times = replay.clean, replay.recording.times
    spoken = speaking(reference)
    reports = []
    for j, joint in enumerate(replay.robot.joint_names):
        quality = estimate.torque_quality[:, j]
        fit = judged & (quality & UNFIT == 0)
        torque = np.where(fit, estimate.torques[:, j], np.nan)
        found = compare(times, torque, reference[:, j]) if spoken[j] else None
        if found is not None:
            resting = bool(assumed[j] or (quality[fit] & Quality.ASSUMED).any())
            deviation = mean_deviation(replay, fit, 'torques', j)[0]
            reports.append(_torque_report(joint, resting, found, deviation))
    return tuple(reports)


def _torque_report(joint: str, assumed: bool, found: Comparison, deviation: float) -> TorqueReport:
    return TorqueReport(
        joint=joint,
        assumed=assumed,
        n_samples=found.n_samples,
        mean_error_nm=found.mean_error,
        rms_nm=found.rms,
        correlation=found.correlation,
        lag_s=found.lag,
        rms_at_lag_nm=found.rms_at_lag,
        rms_without_lag_nm=found.rms_without_lag,
        n_at_lag=found.n_at_lag,
        standard_deviation_nm=deviation,
    )
