# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether any robot could have base parameters that somebody published [S 51-56]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.check.table import Table
from inertial_estimation.identification.base_parameter_check import BaseParameterCheck, Verdict
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.stated_base_parameters import (
    StatedBaseParameters,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.model.robot import Robot

ROUND_OFF = 1e-6
"""Share of what a table is about, below which its rows are round-off of the solver."""
CONES = {
    Consistency.FULL: 'bodies that could exist (4x4 pseudo-inertia)',
    Consistency.PHYSICAL: 'positive mass and inertia only (6x6)',
}


@dataclass(frozen=True, eq=False)
class BaseParameterReport:
    """The answer against both cones."""

    stated: StatedBaseParameters
    checks: dict[Consistency, BaseParameterCheck]

    @property
    def feasible(self) -> bool:
        """Whether bodies that could exist have these base parameters, and drives that do."""
        bodies = self.checks[Consistency.FULL].verdict is Verdict.FEASIBLE
        return bodies and all(one.may_be_zero for one in self.stated.below_zero)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Verdicts, and the nearest base parameters that bodies have."""
        rows = tuple(
            (
                CONES[kind],
                check.verdict.value,
                f'{check.margin:.2e}',
                f'{check.distance:.3e}',
                check.grade.value,
            )
            for kind, check in self.checks.items()
        )
        columns = ('asked of each link', 'verdict', 'margin', 'distance', 'search')
        verdicts = Table('Base parameters', columns, rows)
        return (verdicts, *self._below_zero(), *self._nearest(), *self._certificates())

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for a machine."""
        return {
            kind.value: {
                'verdict': check.verdict.value,
                'margin': check.margin,
                'distance': check.distance,
                'grade': check.grade.value,
                'nearest': dict(zip(self._names, check.nearest.tolist(), strict=True)),
                'certificate': self._certificate(check),
            }
            for kind, check in self.checks.items()
        } | {
            'below_zero': {
                one.combination: {
                    'value': one.value,
                    'deviation': one.deviation or None,
                    'may_be_zero': one.may_be_zero,
                }
                for one in self.stated.below_zero
            },
        }

    @property
    def _names(self) -> list[str]:
        """Return the combinations."""
        return self.stated.base.combinations(self.stated.unknowns.names)

    def _below_zero(self) -> tuple[Table, ...]:
        """Return friction and drives that are negative, which verdicts on bodies do not know."""
        rows = tuple(
            (
                one.combination,
                f'{one.value:.3g}',
                f'{one.deviation:.2g}' if one.deviation else 'not stated',
                'may be zero' if one.may_be_zero else 'infeasible',
            )
            for one in self.stated.below_zero
        )
        columns = ('combination', 'stated', 'deviation', 'verdict')
        return (Table('Friction and drives below zero', columns, rows),) if rows else ()

    def _nearest(self) -> tuple[Table, ...]:
        """Return what the nearest feasible base parameters change, if anything."""
        check = self.checks[Consistency.FULL]
        if check.verdict is Verdict.FEASIBLE:
            return ()
        changes = check.nearest - self.stated.values
        told = np.abs(changes) > ROUND_OFF * check.distance
        rows = tuple(
            (name, f'{value:.6g}', f'{near:.6g}', f'{near - value:+.2e}')
            for name, value, near, one in zip(
                self._names, self.stated.values, check.nearest, told, strict=True
            )
            if one
        )
        columns = ('combination', 'stated', 'nearest', 'change')
        title = f'Nearest base parameters that bodies have{_others(told, "as stated")}'
        return (Table(title, columns, rows),)

    def _certificates(self) -> tuple[Table, ...]:
        """Return the proof that no body has them."""
        check = self.checks[Consistency.FULL]
        found = self._certificate(check)
        if found is None:
            return ()
        weights = np.array(list(found['weights'].values()))
        size = np.abs(weights)
        # The others change neither the sum nor the least one by what tells them apart.
        told = size > ROUND_OFF * size.max()
        gap = found['least'] - found['stated']
        told |= size * np.abs(self.stated.values) > ROUND_OFF * gap
        heaviest = [k for k in np.argsort(-size) if told[k]]
        rows = tuple((self._names[k], f'{weights[k]:+.4g}') for k in heaviest)
        title = (
            f'Proof: of all bodies this sum is at least {found["least"]:.4g}, stated is '
            f'{found["stated"]:.4g}{_others(told, "of no weight")}'
        )
        return (Table(title, ('combination', 'weight'), rows),)

    def _certificate(self, check: BaseParameterCheck) -> dict[str, Any] | None:
        """Return a certificate for a machine."""
        if check.certificate is None:
            return None
        proof = check.certificate
        weights = dict(zip(self._names, proof.normal.tolist(), strict=True))
        stated = float(proof.normal @ self.stated.values)
        return {'weights': weights, 'least': proof.offset, 'stated': stated}


def _others(told: NDArray[np.bool_], how: str) -> str:
    """Return how many rows a table leaves out, and why."""
    left = int((~told).sum())
    return f' ({left} more {how}: see --json)' if left else ''


def check_base_parameters(text: str, robot: Robot) -> BaseParameterReport:
    """Hold base parameters against both cones."""
    stated = read_base_parameters(text, robot)
    checks = {kind: check_stated(robot, stated, consistency=kind) for kind in CONES}
    return BaseParameterReport(stated, checks)
