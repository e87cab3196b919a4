# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a log as a whole: its fault, its momentum, and torques that no sensor informs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import nan
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Indices
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import UninformedTorques, dependence_table
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.fault_hypotheses import find_faults
from inertial_estimation.estimation.faults import alike
from inertial_estimation.estimation.momentum_check import (
    PERIOD_NS,
    WINDOW_NS,
    WINDOWS,
    MomentumCheck,
    is_doubtful,
)
from inertial_estimation.logs.results import Replay
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.sensor_noise import MomentumNoise

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these flags takes no part."""
MAX_DEPENDENCES = 20
"""Most frequent situations whose dependence is computed."""
Record = dict[str, Any]


class Situation(NamedTuple):
    """Samples in which the same contacts and sensors take part."""

    contacts: tuple[Contact, ...]
    """At the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    rows: Indices
    """Increasing, shape (n,)."""


def find_situations(replay: Replay) -> list[Situation]:
    """Group the samples with a motion source, the largest group first."""
    robot, estimate = replay.robot, replay.clean
    taking = (estimate.contact_quality & GONE) == 0, estimate.used_imus, estimate.used_fts
    found = []
    for masks, rows in alike(*taking):
        contacts, imus, fts = (np.flatnonzero(mask).tolist() for mask in masks)
        if imus or robot.fixed_frame:
            present = tuple(estimate.contacts[c].at_origin for c in contacts)
            found.append(Situation(present, tuple(imus), tuple(fts), rows))
    return sorted(found, key=lambda one: -len(one.rows))


class MomentumRecords:
    """The change of momentum against the wrenches in spans of ten seconds [T 2.84, 2.85]."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._robot, self._noise = robot, MomentumNoise(settings, robot)
        self._check, self._start, self._next_ns, self._seen_ns = MomentumCheck(robot), nan, 0, 0
        self._found: list[Record] = []
        self._newest: tuple[Replay, int] | None = None
        """Piece and row of the newest sample."""

    def add(self, part: Replay) -> None:
        """Take a piece of a log."""
        for row, stamp_ns in enumerate(part.recording.samples.stamp_ns.tolist()):
            if not self._next_ns - PERIOD_NS <= stamp_ns < self._next_ns:
                self._next_ns = stamp_ns + PERIOD_NS
                self._take(part, row)
                # Often enough that no window is forgotten.
                if not 0 <= stamp_ns - self._seen_ns < WINDOW_NS // 2:
                    self._seen_ns = stamp_ns
                    self._report(part, row, WINDOWS)
        self._newest = part.take(np.array([len(part.times) - 1])), 0

    def records(self) -> list[Record]:
        """Return the records of all spans, with what is left after the last whole one."""
        if self._newest is not None:
            self._take(*self._newest)
            self._report(*self._newest, 1)
        return self._found

    def _take(self, part: Replay, row: int) -> None:
        if self._start != self._start:
            self._start = float(part.times[row])
        self._check.add(part.recording.samples[row], part.estimate.at(row))

    def _report(self, part: Replay, row: int, least: int) -> None:
        """Close the span if it has some windows."""
        report = self._check.report()
        if report.windows < least:
            return
        deviation = self._noise.deviation(self._check, part.recording.rates)
        figures = {'unexplained': report.unexplained, 'change': report.change, 'noise': deviation}
        self._found.append({
            'from_s': self._start,
            'to_s': float(part.times[row]),
            'windows': report.windows,
            **{f'{name}_force_n': float(force) for name, (force, _) in figures.items()},
            **{f'{name}_moment_nm': float(moment) for name, (_, moment) in figures.items()},
            'doubtful': is_doubtful(report, deviation),
        })  # fmt: skip
        self._check, self._start = MomentumCheck(self._robot), nan


def fault_records(replay: Replay) -> list[Record]:
    """Return the fault that explains the residuals of a log, and those that do so as well."""
    samples, touches = replay.recording.without_frozen(), replay.recording.touches
    sets = replay.estimator.contacts, *(touches.sets if touches else ())
    frames = {contact.frame for part in sets for contact in part if contact.unknowns}
    readings = replay.calibration.apply(samples.ft_readings, samples.ft_temperatures)
    return [one._asdict() for one in find_faults(replay.robot, samples, readings, frames)]


def uninformed_torques(replay: Replay, situations: Sequence[Situation]) -> Iterator[Record]:
    """Yield torques that no FT sensor informs [T Theorem 4.2], the most frequent ones first."""
    robot, found = replay.robot, Counter[UninformedTorques]()
    for one in situations[:MAX_DEPENDENCES]:
        table = dependence_table(
            robot,
            one.contacts,
            imus=None if robot.fixed_frame else one.imus,
            fts=one.fts,
            acceleration_arrays=replay.settings.angular_acceleration_source == 'array',
        )
        found.update(dict.fromkeys(table.uninformed, len(one.rows)))
    for group, rows in found.most_common():
        yield {**asdict(group), 'sample_share': rows / len(replay.times)}
