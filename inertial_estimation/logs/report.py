# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a replay shows: streams, offsets, wrenches, torques against the robot's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.stream import StreamStatistics
from inertial_estimation.logs.comparison import Comparison, compare
from inertial_estimation.logs.offsets import Offsets, speaking
from inertial_estimation.logs.replay import Replay
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]

UNFIT = np.uint8(Quality.MERGED | Quality.DROPPED | Quality.MISSING | Quality.UNDETERMINED)
"""Results with one of these flags are not judged."""
DOWN = 1e-9


@dataclass(frozen=True)
class StreamReport:
    """How one stream behaved in the whole bag; times in seconds after the first FT message."""

    name: str
    received: int
    rate_hz: float
    longest_gap_s: float
    repeated: int
    invalid: int
    refused: int
    restarts: int
    unfiltered: int
    """Messages in use without derivatives, as the filter's window was not filled yet."""
    frozen_s: float
    """How long it stood still in all [s]."""
    frozen_intervals_s: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class WrenchReport:
    """External wrench of one contact over the judged part, in and about its frame [N, Nm]."""

    contact: str
    frame: str
    assumed: bool
    """It rests on joints that nobody reports."""
    n_samples: int
    mean: tuple[float, ...]
    rms: tuple[float, ...]


@dataclass(frozen=True)
class TorqueReport:
    """Torque of one joint against what the robot itself reports, over the judged part."""

    joint: str
    assumed: bool
    n_samples: int
    mean_error_nm: float
    rms_nm: float
    correlation: float
    lag_s: float
    rms_at_lag_nm: float
    rms_without_lag_nm: float
    """On the instants of `rms_at_lag_nm`: those without a gap within the longest lag."""
    n_at_lag: int
    """How many of `n_samples` these are."""


@dataclass(frozen=True)
class SupportReport:
    """The force at the fixed link against the robot's weight, over the judged part."""

    contact: str
    n_samples: int
    mean_upward_force_n: float
    weight_n: float
    relative_error: float


@dataclass(frozen=True)
class ReplayReport:
    """All figures of a replay; `as_dict` for a machine, `logs.tables` for a person."""

    robot: str
    n_samples: int
    time_range_s: tuple[float, float]
    """First and last estimated sample."""
    judged_s: float
    """How much of it was not used for the offsets [s]."""
    offset_source: str
    offset_range_s: tuple[float, float] | None
    offset_samples: int
    offsets: Mapping[str, tuple[float, ...]]
    """What was subtracted from each FT sensor, [force; torque] [N, Nm]."""
    fts: tuple[StreamReport, ...]
    imus: tuple[StreamReport, ...]
    joint_states: tuple[StreamReport, ...]
    assumed_joints: tuple[str, ...]
    ignored_joints: tuple[str, ...]
    wrenches: tuple[WrenchReport, ...]
    torques: tuple[TorqueReport, ...]
    support: SupportReport | None

    @property
    def summary(self) -> str:
        """One sentence."""
        start, stop = self.time_range_s
        frozen = [ft.name for ft in self.fts if ft.frozen_intervals_s]
        text = (
            f'{self.robot}: {self.n_samples} samples from {start:.2f} s to {stop:.2f} s, '
            f'{self.judged_s:.1f} s of it judged, offsets from {self.offset_source}'
        )
        return f'{text}; frozen: {", ".join(frozen)}' if frozen else text

    def as_dict(self) -> dict[str, Any]:
        """
        Return the figures for a machine.

        Returns
        -------
        dict
            Of strings, numbers, booleans, lists and dicts; None in place of NaN and infinity.

        """
        plain: dict[str, Any] = _plain({'summary': self.summary, **asdict(self)})
        return plain


def make_report(replay: Replay, offsets: Offsets) -> ReplayReport:
    """
    Sum up a replay.

    Parameters
    ----------
    replay : Replay
        What the estimator said.
    offsets : Offsets
        Where its offsets come from.

    Returns
    -------
    ReplayReport

    """
    robot, recording = replay.robot, replay.recording
    times, statistics = recording.times, recording.statistics
    judged = np.ones(len(times), dtype=bool)
    computed = offsets.request.source != 'settings'
    if computed:
        judged &= ~offsets.request.time_range.mask(times)
    fit = offsets.torques or offsets.model
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    range_ = offsets.request.time_range
    return ReplayReport(
        robot=robot.name,
        n_samples=len(times),
        time_range_s=(float(times[0]), float(times[-1])),
        judged_s=float(judged.sum()) * usual,
        offset_source=offsets.request.source,
        offset_range_s=(range_.start, range_.stop) if computed else None,
        offset_samples=fit.n_samples if fit else 0,
        offsets={
            sensor.name: tuple(offset.tolist())
            for sensor, offset in zip(robot.ft_sensors, replay.calibration.offsets)
        },
        fts=_streams(statistics.fts, recording.origin_ns),
        imus=_streams(statistics.imus, recording.origin_ns),
        joint_states=_streams(
            {
                _with_topic(name, replay.settings.joint_topics): part
                for name, part in sorted(statistics.joints.items())
            },
            recording.origin_ns,
        ),
        assumed_joints=tuple(replay.settings.assumed_joints),
        ignored_joints=tuple(statistics.ignored_joints),
        wrenches=_wrenches(replay, judged),
        torques=_torques(replay, judged),
        support=_support(replay, judged),
    )


def _with_topic(name: str, topics: Sequence[str]) -> str:
    """Return the name of a part of the joint states with its topic in place of the index."""
    index, _, joints = name.partition(': ')
    return f'{topics[int(index)]}: {joints}'


def _streams(streams: Mapping[str, StreamStatistics], origin_ns: int) -> tuple[StreamReport, ...]:
    reports = []
    for name, s in streams.items():
        intervals = tuple(
            ((interval.first_ns - origin_ns) / 1e9, (interval.last_ns - origin_ns) / 1e9)
            for interval in s.frozen_intervals
        )
        reports.append(
            StreamReport(
                name=name,
                received=s.received,
                rate_hz=s.rate,
                longest_gap_s=s.longest_gap,
                repeated=s.repeated,
                invalid=s.invalid,
                refused=s.refused,
                restarts=s.restarts,
                unfiltered=s.unfiltered,
                frozen_s=sum(stop - start for start, stop in intervals),
                frozen_intervals_s=intervals,
            )
        )
    return tuple(reports)


def _wrenches(replay: Replay, judged: Mask) -> tuple[WrenchReport, ...]:
    reports = []
    estimate = replay.clean
    for c, contact in enumerate(estimate.contacts):
        quality = estimate.contact_quality[:, c]
        rows = judged & (quality & UNFIT == 0)
        values = estimate.wrenches[rows, c]
        reports.append(
            WrenchReport(
                contact=contact.name,
                frame=contact.frame,
                assumed=bool((quality[rows] & Quality.ASSUMED).any()),
                n_samples=int(rows.sum()),
                mean=_per_axis(values),
                rms=tuple(math.sqrt(square) for square in _per_axis(values**2)),
            )
        )
    return tuple(reports)


def _per_axis(values: Array) -> tuple[float, ...]:
    """Return the mean of each column, NaN if there are no rows."""
    return tuple(values.mean(axis=0).tolist()) if len(values) else (math.nan,) * values.shape[1]


def _torques(replay: Replay, judged: Mask) -> tuple[TorqueReport, ...]:
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
            assumed = bool((quality[fit] & Quality.ASSUMED).any())
            reports.append(_torque_report(joint, assumed, found))
    return tuple(reports)


def _torque_report(joint: str, assumed: bool, found: Comparison) -> TorqueReport:
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
    )


def _support(replay: Replay, judged: Mask) -> SupportReport | None:
    """Compare the force at a contact in the fixed link's frame with the weight."""
    gravity = float(np.linalg.norm(replay.robot.gravity))
    estimate = replay.clean
    for c, contact in enumerate(estimate.contacts):
        rows = judged & (estimate.contact_quality[:, c] & UNFIT == 0)
        if contact.frame != replay.robot.fixed_frame or gravity < DOWN or not rows.any():
            continue
        upward = -estimate.wrenches[rows, c, :3] @ replay.robot.gravity / gravity
        mean, weight = float(upward.mean()), replay.robot.mass * gravity
        return SupportReport(contact.name, int(rows.sum()), mean, weight, mean / weight - 1.0)
    return None


def _plain(value: Any) -> Any:
    """Return the same in what JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
