# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""S's Tables 1 and 6: which of the printed base parameters bodies can have, and how near."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertial_estimation.identification.feasibility.feasibility import BaseParameterCheck, Verdict
from inertial_estimation.identification.solvers.cones import Consistency
from inertial_estimation.table import Row, Table
from published_experiments.experiment import Expectation, Finding
from published_experiments.published_tables import (
    CORRECTED,
    FBPE,
    OLS,
    VECTORS,
    ThreeLinks,
    check_table6,
)
from published_experiments.wam_arm import WamArm

NAME = 'S: Sousa and Cortesao 2014, feasibility of printed base parameters'
CONES = {Consistency.PHYSICAL: '6x6', Consistency.FULL: '4x4'}
PRINTED = {'beta_t2': 1.65e-3}
"""Distances of Table 1, 6x6."""
ESTIMATES = {
    'OLS': (OLS, False, False),
    'FBPE, signs only': (FBPE, False, True),
    'FBPE, bounds of Table 7 and 27 kg': (FBPE, True, True),
}
"""Column, whether with all bounds, whether values may be off by what rounding took."""
NEAR = 0.01
"""Relative: distances are those printed, with three digits."""
COLUMNS = ('base parameters', 'cone', 'verdict', 'margin', 'distance', 'distance printed')


class Tested(NamedTuple):
    """A vector tested against a cone."""

    name: str
    check: BaseParameterCheck
    printed: float | None
    """Distance that S states."""

    @property
    def row(self) -> Row:
        """As a row of `COLUMNS`."""
        check = self.check
        return (
            self.name,
            CONES[check.consistency],
            check.verdict.value,
            f'{check.margin:.1e}',
            f'{check.distance:.3e}',
            '' if self.printed is None else f'{self.printed:.3e}',
        )

    @property
    def near(self) -> bool:
        """Whether the distance is as printed."""
        return self.printed is None or bool(
            np.isclose(self.check.distance, self.printed, rtol=NEAR)
        )

    def as_dict(self) -> dict[str, object]:
        """Return the figures for a machine."""
        return {
            'base_parameters': self.name,
            'cone': CONES[self.check.consistency],
            'verdict': self.check.verdict.value,
            'margin': self.check.margin if np.isfinite(self.check.margin) else None,
            'distance': self.check.distance,
            'printed_distance': self.printed,
        }


def run(folder: Path) -> Finding:
    """Test what S prints."""
    links, arm = ThreeLinks.read(folder), WamArm(folder)
    table1 = [_of_table1(links, vector, cone) for vector in VECTORS for cone in CONES]
    table6 = [_of_table6(arm, name, cone) for name in ESTIMATES for cone in CONES]
    return Finding(
        NAME,
        (
            Table('S, Table 1: three links [SI]', COLUMNS, tuple(one.row for one in table1)),
            Table(
                'S, Table 6: the WAM, FBPE within its printed digits; '
                'margin -inf: signs alone forbid it',
                COLUMNS, tuple(one.row for one in table6),
            ),
        ),
        tuple(one.note for one in (*_of_vectors(links, table1), *_of_estimates(table6))),
        {name: [one.as_dict() for one in found]
         for name, found in (('table_1', table1), ('table_6', table6))},
    )  # fmt: skip


def _of_table1(links: ThreeLinks, vector: str, cone: Consistency) -> Tested:
    """Test a vector of Table 1."""
    printed = PRINTED.get(vector) if cone is Consistency.PHYSICAL else None
    return Tested(vector, links.check(vector, cone), printed)


def _of_table6(arm: WamArm, name: str, cone: Consistency) -> Tested:
    """Test an estimate of Table 6."""
    column, everything, rounded = ESTIMATES[name]
    check = check_table6(arm, column, cone, everything=everything, rounded=rounded)
    squared = float(arm.model['published']['notebook']['BPFC_squared_distance'])
    told = column == OLS and cone is Consistency.PHYSICAL
    return Tested(name, check, float(np.sqrt(squared)) if told else None)


def _of_vectors(links: ThreeLinks, found: list[Tested]) -> tuple[Expectation, ...]:
    """Hold Table 1 against what S says and what the smaller cone must."""
    first, first_full, second, second_full = found
    off = float(np.abs(second.check.nearest - links.columns[CORRECTED]).max())
    return (
        Expectation(
            'Table 1, 6x6: beta_t1 is feasible, beta_t2 is not and is as far as printed; greatest '
            f'difference to the printed correction {off:.0e}, of six decimals',
            (first.check.verdict, second.check.verdict) == (Verdict.FEASIBLE, Verdict.INFEASIBLE)
            and second.near,
        ),
        Expectation(
            'Table 1, 4x4: no body has either of them, and beta_t2 is '
            f'{second_full.check.distance / second.check.distance:.0f} times as far as S says',
            first_full.check.verdict is second_full.check.verdict is Verdict.INFEASIBLE,
        ),
    )


def _of_estimates(found: list[Tested]) -> tuple[Expectation, ...]:
    """Hold Table 6 against what S says and what the smaller cone must."""
    ols, fbpe = found[0], found[2:]
    larger, smaller = fbpe[::2], fbpe[1::2]
    return (
        Expectation(
            'Table 6, 6x6: OLS is infeasible and as far as printed, FBPE is feasible',
            ols.check.verdict is Verdict.INFEASIBLE
            and ols.near
            and all(one.check.verdict is Verdict.FEASIBLE for one in larger),
        ),
        Expectation(
            'Table 6, 4x4: no bodies have FBPE either, whatever digits were rounded away',
            all(one.check.verdict is Verdict.INFEASIBLE for one in smaller),
        ),
    )
