# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check of base parameters against the cones of physically consistent parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.cli.render import table
from inertial_estimation.identification.feasibility import (
    BaseParameterCheck,
    StatedBaseParameters,
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.model.robot import Robot

ROUND_OFF = 1e-6
"""Share of a table's quantity below which its rows are round-off of the solver."""
CONES = {
    Consistency.FULL: 'fully consistent (4x4 pseudo-inertia)',
    Consistency.PHYSICAL: 'positive mass and inertia (6x6)',
}


@dataclass(frozen=True, eq=False)
class BaseParameterReport:
    """Verdicts for both cones."""

    stated: StatedBaseParameters
    checks: dict[Consistency, BaseParameterCheck]

    @property
    def feasible(self) -> bool:
        """Whether consistent parameters, and passive drives, have these base parameters."""
        bodies = self.checks[Consistency.FULL].verdict is Verdict.FEASIBLE
        return bodies and all(one.may_be_zero for one in self.stated.below_zero)

    def tables(self) -> Iterator[Any]:
        """Yield verdicts, and the nearest consistent base parameters."""
        rows = [
            (CONES[kind], check.verdict.value, f'{check.margin:.2e}', f'{check.distance:.3e}',
             check.grade.value)
            for kind, check in self.checks.items()
        ]  # fmt: skip
        columns = ('cone', 'verdict', 'margin', 'distance', 'search')
        yield table('Base parameters', columns, rows)
        below = [
            (one.combination, f'{one.value:.3g}', f'{one.deviation:.2g}' if one.deviation else '',
             'may be zero' if one.may_be_zero else 'infeasible')
            for one in self.stated.below_zero
        ]  # fmt: skip
        if below:
            named = ('combination', 'stated', 'deviation', 'verdict')
            yield table('Negative friction and drives', named, below)
        check = self.checks[Consistency.FULL]
        if check.verdict is not Verdict.FEASIBLE:
            yield self._nearest(check)
        if check.certificate is not None:
            yield self._certificate_table(check)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
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

    def _nearest(self, check: BaseParameterCheck) -> Any:
        """Return the changes of the nearest feasible base parameters."""
        changes = check.nearest - self.stated.values
        shown = np.abs(changes) > ROUND_OFF * check.distance
        rows = [
            (self._names[k], f'{self.stated.values[k]:.6g}', f'{check.nearest[k]:.6g}',
             f'{changes[k]:+.2e}')
            for k in np.flatnonzero(shown)
        ]  # fmt: skip
        title = f'Nearest feasible base parameters{_others(shown)}'
        return table(title, ('combination', 'stated', 'nearest', 'change'), rows)

    def _certificate_table(self, check: BaseParameterCheck) -> Any:
        """Return the proof of infeasibility: a sum that all consistent parameters exceed."""
        found = self._certificate(check)
        assert found is not None
        weights = np.array(list(found['weights'].values()))
        size = np.abs(weights)
        shown = size > ROUND_OFF * size.max()
        gap = found['least'] - found['stated']
        shown |= size * np.abs(self.stated.values) > ROUND_OFF * gap
        heaviest = [k for k in np.argsort(-size) if shown[k]]
        title = (
            f'Proof: this sum is at least {found["least"]:.4g}, stated is {found["stated"]:.4g}'
            f'{_others(shown)}'
        )
        rows = [(self._names[k], f'{weights[k]:+.4g}') for k in heaviest]
        return table(title, ('combination', 'weight'), rows)

    def _certificate(self, check: BaseParameterCheck) -> dict[str, Any] | None:
        """Return a certificate for JSON."""
        if check.certificate is None:
            return None
        proof = check.certificate
        weights = dict(zip(self._names, proof.normal.tolist(), strict=True))
        stated = float(proof.normal @ self.stated.values)
        return {'weights': weights, 'least': proof.offset, 'stated': stated}


def _others(shown: NDArray[np.bool_]) -> str:
    """Return the number of rows that a table leaves out."""
    left = int((~shown).sum())
    return f' ({left} more: --json)' if left else ''


def check_base_parameters(text: str, robot: Robot) -> BaseParameterReport:
    """Check base parameters against both cones."""
    stated = read_base_parameters(text, robot)
    checks = {kind: check_stated(robot, stated, consistency=kind) for kind in CONES}
    return BaseParameterReport(stated, checks)
