# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The whole job of ``inertial-estimation replay``: a bag in, figures and a bag out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inertial_estimation.building import build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.logs.deviations import rows_at_rate, some_rows
from inertial_estimation.logs.figures import ReplayReport
from inertial_estimation.logs.offsets import OffsetRequest, compute_offsets
from inertial_estimation.logs.recording import (
    Progress,
    TimeRange,
    no_progress,
    read_samples,
    require_temperatures,
)
from inertial_estimation.logs.replay import run, with_deviations, with_net, with_through
from inertial_estimation.logs.report import make_report
from inertial_estimation.logs.results import write_results
from inertial_estimation.logs.through import check_inside


def replay_bag(
    bag: str | Path,
    urdf: str | Path,
    settings: EstimatorSettings,
    *,
    time_range: TimeRange | None = None,
    offsets: OffsetRequest | None = None,
    out: str | Path | None = None,
    through: Sequence[str] = (),
    net: Sequence[str] = (),
    progress: Progress = no_progress,
) -> ReplayReport:
    if out is not None and Path(out).exists():
        raise LogError(f"'{out}' exists already; results are written to a new folder")
    robot = build_robot(settings, str(urdf))
    # What cannot be asked for is said before the work.
    inside = check_inside(through, net, robot, settings)
    require_temperatures(robot, settings)
    recording = read_samples(bag, robot, settings, progress)
    request = OffsetRequest() if offsets is None else offsets
    computed = compute_offsets(request, recording, robot, settings, progress)
    part = recording.within(TimeRange() if time_range is None else time_range)
    replay = run(part, robot, settings, computed.calibration, progress)
    stamps, rate = part.samples.stamp_ns, settings.deviations_rate
    if rate:
        rows = some_rows(len(stamps)) if out is None else rows_at_rate(stamps, rate)
        replay = with_deviations(replay, rows, progress)
    replay = with_through(replay, inside.joints, progress)
    replay = with_net(replay, inside.links, progress)
    if out is not None:
        write_results(out, replay, progress)
    return make_report(replay, computed, progress)
