# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of the results: dependence [T Theorem 4.2], momentum check, durations of the cycles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import (
    DependenceTable,
    ResultDependence,
    UninformedTorques,
    dependence_table,
    find_uninformed,
)
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.momentum_check import (
    LEAST_WINDOWS,
    WINDOW_NS,
    MomentumCheck,
    is_doubtful,
)
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.stream_noise import MomentumNoise

MAX_CACHED = 16
"""Sets of contacts and sensors whose dependence is kept."""
CAPACITY = 8192
"""Cycles that are kept, more than in a second."""
MAX_INTERVAL = 1.0
"""Time between two stamps beyond which joint states stopped or time jumped [s]."""
MAX_INTERVAL_RATIO = 10.0
"""The same over the usual interval, for slow joint states."""
MIN_INTERVALS = 3
"""Intervals that determine the usual one anew."""


class DependenceStatus:
    """Sensors, joints and links that the newest results depend on."""

    def __init__(
        self, robot: Robot, contacts: Sequence[Contact], *, acceleration_arrays: bool
    ) -> None:
        self._robot, self._arrays = robot, acceleration_arrays
        self._cache: dict[Hashable, Any] = {}
        usual = find_uninformed(robot, contacts, range(len(robot.ft_sensors)))
        self.configured = _joints(usual)
        """Joints that no FT sensor informs under the default contacts."""

    def status(self, estimate: WrenchEstimate) -> Status:
        """Return the status of the torques; uninformed ones beyond the configured are findings."""
        known = self._known_joints(estimate)
        findings = []
        joints = self.uninformed_joints(estimate)
        for level, named in (
            (Level.INFO, [joint for joint in joints if joint in self.configured]),
            (Level.WARNING, [joint for joint in joints if joint not in self.configured]),
        ):
            if named:
                text = ', '.join(named)
                findings.append(finding('uninformed', 'dependence', level=level, joints=text))
        values = {'external joint torques about': self._robot.base_frame}
        if known and (table := self._table(estimate)) is not None:
            values |= {f'torque {row.name}': _text(row) for row in table.torques}
            values |= {f'wrench {row.name}': _text(row) for row in table.wrenches}
        return Status('dependence', tuple(findings), values)

    def uninformed_joints(self, estimate: WrenchEstimate) -> list[str]:
        """Return the joints whose torques are known and no FT sensor informs."""
        known = self._known_joints(estimate)
        return [joint for joint in _joints(self._uninformed(estimate)) if joint in known]

    def _known_joints(self, estimate: WrenchEstimate) -> set[str]:
        return set(compress(self._robot.joint_names, np.isfinite(estimate.torques).tolist()))

    def _uninformed(self, estimate: WrenchEstimate) -> tuple[UninformedTorques, ...]:
        contacts, fts = _in_use(estimate)
        key = 'uninformed', tuple((one.frame, one.unknowns) for one in contacts), tuple(fts)
        found: tuple[UninformedTorques, ...] = self._cached(
            key, lambda: find_uninformed(self._robot, contacts, fts)
        )
        return found

    def _table(self, estimate: WrenchEstimate) -> DependenceTable | None:
        """Return the dependence of all results; None: the IMUs do not determine the motion."""
        contacts, fts = _in_use(estimate)
        imus = [] if self._robot.fixed_frame else estimate.used_imus.nonzero()[0].tolist()
        named = tuple((one.name, one.frame, one.unknowns) for one in contacts)

        def find() -> DependenceTable | None:
            try:
                return dependence_table(
                    self._robot, contacts, imus=imus, fts=fts, acceleration_arrays=self._arrays
                )
            except ModelError:
                return None

        found: DependenceTable | None = self._cached((named, tuple(fts), tuple(imus)), find)
        return found

    def _cached(self, key: Hashable, find: Callable[[], Any]) -> Any:
        if key not in self._cache:
            if len(self._cache) >= 2 * MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = find()
        return self._cache[key]


def _in_use(estimate: WrenchEstimate) -> tuple[list[Contact], list[int]]:
    """Return the contacts and the rows of the FT sensors in use."""
    kept = (estimate.contact_quality & Quality.DROPPED) == 0
    contacts = list(compress(estimate.contacts, kept.tolist()))
    return contacts, estimate.used_fts.nonzero()[0].tolist()


def _joints(uninformed: Sequence[UninformedTorques]) -> list[str]:
    return [joint for group in uninformed for joint in group.joints]


def _text(row: ResultDependence) -> str:
    """Return the dependence of one result."""
    parts = [' '.join(row.fts) or 'no FT sensor']
    for kind, names in (('motion', row.imus), ('joints', row.joints), ('links', row.links)):
        if names:
            parts.append(f'{kind} {" ".join(names)}')
    return '; '.join(parts)


class MomentumStatus:
    """Comparison of the change of momentum with the wrenches of the estimates [T 2.84, 2.85]."""

    def __init__(
        self, robot: Robot, settings: EstimatorSettings, assembler: SampleAssembler
    ) -> None:
        self.warning = ''
        """Text of the finding of the last status, if there was one."""
        self._assembler = assembler
        self._noise = MomentumNoise(settings, robot)
        self._check = MomentumCheck(robot)

    def add(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Take a sample; most are skipped."""
        self._check.add(sample, estimate)

    def set_parameters(self, parameters: Array) -> None:
        """Change the inertial parameters, shape (n_links, 10)."""
        self._check.set_parameters(parameters)

    def status(self) -> Status:
        """Return the status of the last windows."""
        report = self._check.report()
        deviation = np.full(2, np.nan)
        if report.windows >= LEAST_WINDOWS:
            deviation = self._noise.deviation(self._check, self._assembler.rates())
        findings: tuple[Finding, ...] = ()
        if is_doubtful(report, deviation):
            force, moment = report.unexplained.tolist()
            time = 1e-9 * WINDOW_NS * report.windows
            findings = (finding('momentum', 'momentum', force=force, moment=moment, time=time),)
        self.warning = findings[0].text if findings else ''
        values: dict[str, object] = {'windows': report.windows}
        for name, numbers in (
            ('unexplained', report.unexplained),
            ('rate of momentum', report.change),
            ('noise', deviation),
        ):
            values[f'{name} [N]'] = f'{numbers[0]:.3f}'
            values[f'{name} [Nm]'] = f'{numbers[1]:.4f}'
        note = 'not checked: its noise is unknown' if np.isnan(deviation).any() else 'ok'
        return Status('momentum', findings, values, note)


@dataclass(frozen=True)
class CycleReport:
    """The cycles since the last report."""

    count: int
    missed: int
    """Stamps missing at the usual interval."""
    interval: float
    """Usual (median) interval of the stamps, NaN with less than two [s]."""
    duration_p50: float
    """Median duration, NaN without cycles [s]."""
    duration_p99: float
    """Duration that one in a hundred exceeds [s]."""
    duration_max: float
    """Longest duration [s]."""
    gap: float = 0.0
    """Longest time without a stamp beyond `MAX_INTERVAL`; 0: none [s]."""


class Cycles:
    """A ring of stamps and durations."""

    def __init__(self) -> None:
        self._stamps = np.zeros(CAPACITY, dtype=np.int64)
        self._durations = np.zeros(CAPACITY)
        self._follows = np.zeros(CAPACITY, dtype=bool)
        self._usual = float('nan')
        self._count = self._reported = 0
        self._running = False
        self.total_missed = 0

    def restart(self) -> None:
        """Count the time up to the next cycle as a pause."""
        self._running = False

    def add(self, stamp_ns: int, duration: float) -> None:
        """Note a cycle; duration [s]."""
        index = self._count % CAPACITY
        self._stamps[index] = stamp_ns
        self._durations[index] = duration
        self._follows[index] = self._running
        self._running = True
        self._count += 1

    def since(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return stamps [ns] and durations [s] of the cycles after the first ones."""
        new = self._count - count
        return self._newest(self._stamps, new), self._newest(self._durations, new)

    def report(self) -> CycleReport:
        """Return the report of the cycles since the last one."""
        count = self._count - self._reported
        durations = self._newest(self._durations, count)
        # The interval that leads to the first new cycle counts as well.
        stamps = self._newest(self._stamps, count + bool(self._reported))
        self._reported = self._count
        follows = self._newest(self._follows, len(stamps))[1:]
        usual, missed, gap = _gaps(np.diff(stamps)[follows], self._usual)
        self._usual = usual if np.isfinite(usual) else self._usual
        self.total_missed += missed
        p50, p99, longest = (
            (*np.percentile(durations, (50, 99)), durations.max()) if count else (np.nan,) * 3
        )
        return CycleReport(count, missed, usual, float(p50), float(p99), float(longest), gap)

    def _newest(self, ring: np.ndarray, count: int) -> np.ndarray:
        """Return the newest values of a ring, oldest first."""
        last = self._count
        return ring[np.arange(last - min(count, CAPACITY, last), last) % CAPACITY]


def _gaps(intervals: np.ndarray, before: float) -> tuple[float, int, float]:
    """
    Return usual interval [s], missing stamps and longest gap [s].

    intervals of stamps (n,) [ns]; time that was set back does not count; before: usual one [s].
    """
    forward = intervals[intervals > 0]
    if not len(forward):
        return float('nan'), 0, 0.0
    usual = 1e9 * before
    if len(forward) >= MIN_INTERVALS or not np.isfinite(before):
        usual = np.sort(forward)[(len(forward) - 1) // 2]
    long = forward > max(1e9 * MAX_INTERVAL, MAX_INTERVAL_RATIO * usual)
    # A late stamp makes a long interval and a short one: the two cancel, a missing one does not.
    missing = (np.rint(forward[~long] / usual) - 1).sum()
    return 1e-9 * usual, max(0, int(missing)), 1e-9 * float(forward[long].max(initial=0))


def cycle_status(
    report: CycleReport, totals: Mapping[str, int], failure: str, *, active: bool
) -> Status:
    """Return the status of the cycle; totals since the start are shown as they are."""
    found = []
    if failure:
        found.append(finding('suboptimal', 'cycle', level=Level.ERROR, what=failure))
    elif active and not report.count:
        what = 'joint states'
        found.append(finding('missing', 'cycle', level=Level.ERROR, what=what, share=1.0))
    if report.gap:
        what = f'stamps of joint states lack {report.gap:.1f} s: they stopped, or time jumped'
        found.append(finding('clock', 'cycle', what=what))
    elif report.missed:
        found.append(finding('late_cycle', 'cycle', count=report.missed))
    values = {
        'cycles': report.count,
        'interval of the stamps [ms]': f'{1e3 * report.interval:.3f}',
        'cycle time p50 [us]': f'{1e6 * report.duration_p50:.0f}',
        'cycle time p99 [us]': f'{1e6 * report.duration_p99:.0f}',
        'cycle time max [us]': f'{1e6 * report.duration_max:.0f}',
        'missed cycles': report.missed,
        **{f'{what}, total': count for what, count in totals.items()},
    }
    return Status('cycle', tuple(found), values, 'running' if active else 'inactive')
