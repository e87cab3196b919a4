# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of the results: their dependence [T Theorem 4.2], and the momentum check."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
