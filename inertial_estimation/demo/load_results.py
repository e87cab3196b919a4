# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What became of a load that the robot picked up, for a machine, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from inertial_estimation.demo.identifier_says import in_words
from inertial_estimation.demo.load_scores import FOLLOWED, WITHIN

UPDATED, NOT_UPDATED = 'updated', 'not_updated'
"""Names of the estimators: one takes over what is identified, the other one does not."""
IDENTIFIER = 'parameter_identifier'
CENTER_GOAL = 0.01
"""How far a centre of mass may be off [m]."""
FORCE_GOAL = 1.0
"""What may be left of a false force [N]."""
FORCE_AT_FIRST = 8.0
"""Least false force at first, or the scene shows nothing [N]."""


@dataclass(frozen=True)
class Carried:
    """The scene in which something is picked up."""

    scene: str
    report: Mapping[str, Any]
    """What the watcher said."""
    cpu_percent: Mapping[str, float]
    """Of one processor, by process."""

    def as_dict(self) -> dict[str, Any]:
        """Return everything for a machine; NaN where something is not known."""
        left_out = ('estimators', 'carried_for_s')
        found = {key: value for key, value in self.report.items() if key not in left_out}
        found['reason'] = self.reason
        return {'name': self.scene, **found, 'cpu_percent': dict(self.cpu_percent)}

    @property
    def age(self) -> float:
        """Median of clock at reception minus stamp of all estimates [ms]."""
        return float(self.report['age_ms']['p50'])

    @property
    def reason(self) -> str:
        """What the identifier says if a goal is missed; empty: none is."""
        missed = any(not met for _, met in self.goals())
        return in_words(self.report['identifier']) if missed else ''

    def force(self, estimator: str, when: str) -> float:
        """Return a false force, NaN where there is none yet [N]."""
        forces = self.report.get('false_force_n', {})
        return float(forces.get(estimator, {}).get(when, nan))

    def figure(self, name: str) -> float:
        """Return a figure of the report, NaN where it is not there."""
        return float(self.report.get(name, nan))

    def goals(self) -> list[tuple[str, bool]]:
        """Say of each goal what was reached, and whether that is enough."""
        mass = self.report.get('load', {}).get('mass_kg', nan)
        after = f'{self.scene}: {WITHIN:g} s after {mass:g} kg were picked up'
        gain, off = self.figure('mass_gain_kg'), self.figure('mass_error_kg')
        load_off = self.figure('payload_mass_error_kg')
        far = self.figure('payload_center_error_m')
        first, last = self.force(UPDATED, 'at_first'), self.force(UPDATED, 'at_last')
        limit = FOLLOWED * mass
        updates, wrong = self.report['updates'], self.report['inconsistent_updates']
        return [
            (
                f'{after} the arm is as much heavier, off at most {limit:g} kg: {gain:.3f} kg',
                off <= limit,
            ),
            (
                f'{after} their mass is known, off at most {limit:g} kg: {load_off:.3f} kg',
                load_off <= limit,
            ),
            (
                f'{after} their centre of mass, off at most {1e3 * CENTER_GOAL:g} mm: '
                f'{1e3 * far:.1f} mm',
                far <= CENTER_GOAL,
            ),
            (
                f'{after} a false force of at least {FORCE_AT_FIRST:g} N at the hand is at most '
                f'{FORCE_GOAL:g} N: {first:.1f} N, {last:.2f} N',
                first >= FORCE_AT_FIRST and last <= FORCE_GOAL,
            ),
            (
                f'{self.scene}: every update is a robot that could exist: {updates} updates, '
                f'{wrong} not',
                updates > 0 and not wrong,
            ),
        ]
