# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of the results: dependence [T Theorem 4.2], momentum check, durations of the cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
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
    PERIOD_NS,
    WINDOW_NS,
    MomentumCheck,
    is_doubtful,
)
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.sensor_noise import MomentumNoise

MAX_CACHED = 16
"""Sets of contacts and sensors whose dependence is kept."""
MAX_WAITING = 200
"""Instants that wait for the check of momentum, 4 s of them."""
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
        self.uninformed: list[str] = []
        """Those of the last status whose torques are known."""

    def status(self, estimate: WrenchEstimate) -> Status:
        """Return the status of the torques; uninformed ones beyond the configured are findings."""
        kept = (estimate.contact_quality & Quality.DROPPED) == 0
        contacts = list(compress(estimate.contacts, kept.tolist()))
        fts = estimate.used_fts.nonzero()[0].tolist()
        known = set(compress(self._robot.joint_names, np.isfinite(estimate.torques).tolist()))
        uninformed = self._cached(
            ('uninformed', tuple((one.frame, one.unknowns) for one in contacts), tuple(fts)),
            lambda: find_uninformed(self._robot, contacts, fts),
        )
        joints = self.uninformed = [joint for joint in _joints(uninformed) if joint in known]
        findings = []
        for level, named in (
            (Level.INFO, [joint for joint in joints if joint in self.configured]),
            (Level.WARNING, [joint for joint in joints if joint not in self.configured]),
        ):
            if named:
                text = ', '.join(named)
                findings.append(finding('uninformed', 'dependence', level=level, joints=text))
        values = {'external joint torques about': self._robot.base_frame}
        if known and (table := self._table(estimate, contacts, fts)) is not None:
            values |= {f'torque {row.name}': _text(row) for row in table.torques}
            values |= {f'wrench {row.name}': _text(row) for row in table.wrenches}
        return Status('dependence', tuple(findings), values)

    def _table(
        self, estimate: WrenchEstimate, contacts: Sequence[Contact], fts: Sequence[int]
    ) -> DependenceTable | None:
        """Return the dependence of all results; None: the IMUs do not determine the motion."""
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


def _joints(uninformed: Sequence[UninformedTorques]) -> list[str]:
    return [joint for group in uninformed for joint in group.joints]


def _text(row: ResultDependence) -> str:
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
        self._parameters = robot.parameters
        self._last_ns = 0
        self._waiting: deque[tuple[Sample, WrenchEstimate, Array]] = deque(maxlen=MAX_WAITING)
        """Instants since the last status, with their inertial parameters."""

    def add(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Keep an instant until the next status; most are skipped."""
        if not 0 <= sample.stamp_ns - self._last_ns < PERIOD_NS:
            self._last_ns = sample.stamp_ns
            self._waiting.append((sample, estimate, self._parameters))

    def set_parameters(self, parameters: Array) -> None:
        """Change the inertial parameters, shape (n_links, 10)."""
        self._parameters = parameters

    def status(self) -> Status:
        """Return the status of the last windows; another thread may call it."""
        while self._waiting:
            sample, estimate, parameters = self._waiting.popleft()
            self._check.set_parameters(parameters)
            self._check.add(sample, estimate)
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


class CycleStatus:
    """Intervals, durations and ages of the cycles since the last status."""

    def __init__(self) -> None:
        self._intervals: list[int] = []
        self._times: list[tuple[float, float]] = []
        self._last_ns, self._usual, self._missed = 0, float('nan'), 0

    def restart(self) -> None:
        """Count the time up to the next cycle as a pause."""
        self._last_ns = 0

    def add(self, stamp_ns: int, duration: float, age: float) -> None:
        """Note a cycle: from arrival, and from stamp, of the joint state to publication [s]."""
        if self._last_ns:
            self._intervals.append(stamp_ns - self._last_ns)
        self._last_ns = stamp_ns
        self._times.append((duration, age))

    def take(self) -> tuple[list[int], list[tuple[float, float]]]:
        """Return intervals [ns], and durations with ages [s], since the last call."""
        taken = self._intervals, self._times
        self._intervals, self._times = [], []
        return taken

    def status(
        self,
        intervals: Sequence[int],
        times: Sequence[tuple[float, float]],
        totals: Mapping[str, int],
        failure: str = '',
        *,
        active: bool = True,
    ) -> Status:
        """Return the status of what was taken; totals since the start are shown as they are."""
        missed, gap = self._missing(intervals)
        self._missed += missed
        found = []
        if failure:
            found.append(finding('suboptimal', 'cycle', level=Level.ERROR, what=failure))
        elif active and not times:
            what = 'joint states'
            found.append(finding('missing', 'cycle', level=Level.ERROR, what=what, share=1.0))
        if gap:
            what = f'stamps of joint states lack {gap:.1f} s: they stopped, or time jumped'
            found.append(finding('clock', 'cycle', what=what))
        elif missed:
            found.append(finding('late_cycle', 'cycle', count=missed))
        quantiles = 1e6 * np.percentile(times or [(np.nan, np.nan)], (50, 99, 100), axis=0)
        values = {
            'cycles': len(times),
            'interval of the stamps [ms]': f'{1e3 * self._usual:.3f}',
            **{f'{kind} {name} [us]': f'{time:.0f}'
               for kind, row in zip(('cycle time', 'age'), quantiles.T.tolist())
               for name, time in zip(('p50', 'p99', 'max'), row)},
            'missed cycles': missed,
            'missed cycles, total': self._missed,
            **{f'{what}, total': count for what, count in totals.items()},
        }  # fmt: skip
        return Status('cycle', tuple(found), values, 'running' if active else 'inactive')

    def _missing(self, intervals: Sequence[int]) -> tuple[int, float]:
        """Return missing stamps and longest gap [s] of intervals [ns]; keep the usual interval."""
        # Time that was set back does not count.
        forward = 1e-9 * np.array([step for step in intervals if step > 0])
        if not len(forward):
            return 0, 0.0
        if len(forward) >= MIN_INTERVALS or np.isnan(self._usual):
            self._usual = float(np.sort(forward)[(len(forward) - 1) // 2])
        long = forward > max(MAX_INTERVAL, MAX_INTERVAL_RATIO * self._usual)
        # A late stamp makes a long interval and a short one: the two cancel, a missing one does
        # not.
        missing = (np.rint(forward[~long] / self._usual) - 1).sum()
        return max(0, int(missing)), float(forward[long].max(initial=0.0))
