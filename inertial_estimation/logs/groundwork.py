# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the results of a log rest on, for the contacts and sensors that took part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inertial_estimation.estimation.grounds import find_grounds
from inertial_estimation.logs.check_figures import SituationReport
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.situations import Situation
from inertial_estimation.model.robot import Robot

MOST_SITUATIONS = 20
"""More of them are left out: a skin is touched here and there."""


def situation_reports(
    replay: Replay, situations: Sequence[Situation]
) -> tuple[SituationReport, ...]:
    """Find what every torque and external wrench rests on."""
    return tuple(_report(replay, situation) for situation in situations[:MOST_SITUATIONS])


def _report(replay: Replay, situation: Situation) -> SituationReport:
    robot, times, parts = replay.robot, replay.recording.times, situation.parts
    found = find_grounds(
        _with_partial(robot, dict(parts.only)),
        parts.contacts,
        imus=None if robot.fixed_frame else parts.imus,
        fts=parts.fts,
        acceleration_arrays=replay.settings.angular_acceleration_source == 'array',
    )
    imus = [robot.fixed_frame] if robot.fixed_frame else [robot.imus[k].name for k in parts.imus]
    n = len(situation.rows)
    return SituationReport(
        label=situation.label(robot),
        contacts=tuple(contact.name for contact in parts.contacts),
        kinds=tuple(contact.kind for contact in parts.contacts),
        fts=tuple(robot.ft_sensors[k].name for k in parts.fts),
        imus=tuple(imus),
        n_samples=n,
        sample_share=n / len(times),
        first_s=float(times[situation.rows[0]]),
        last_s=float(times[situation.rows[-1]]),
        torques=found.torques,
        wrenches=found.wrenches,
        uninformed=found.uninformed,
    )


def _with_partial(robot: Robot, only: Mapping[int, str]) -> Robot:
    """Return a robot some of whose IMUs measure one quantity."""
    if not only:
        return robot
    imus = (replace(i, measures=only.get(k, i.measures)) for k, i in enumerate(robot.imus))
    return replace(robot, imus=tuple(imus))
