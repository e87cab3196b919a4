# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""S's section 5.2 from end to end: the WAM on torques that are simulated on its trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.cones import Consistency
from inertial_estimation.table import Row, Table
from published_experiments.experiment import Expectation, Finding
from published_experiments.feasibility import CONES
from published_experiments.wam_arm import TRAJECTORIES, WamArm
from published_experiments.wam_experiment import (
    COLUMNS,
    SEED,
    Data,
    Estimates,
    estimate,
    relative_error,
    simulate,
    smallest_mass_matrix_eigenvalues,
)

Array = NDArray[np.float64]

NAME = 'S: Sousa and Cortesao 2014, section 5.2, the WAM on simulated torques'
POSES = 10_000
SOLVED = 1e-5
"""Relative, of errors of answers that a solver found."""
WHOLE = 1e-3
"""The total mass is within its bound [kg]."""


@dataclass(frozen=True, eq=False)
class Assessed:
    """Estimates with one cone."""

    cone: str
    estimates: Estimates
    errors: dict[str, list[float]]
    """Of each column of Table 8, by trajectory [%]."""
    least: dict[str, Array]
    """Smallest eigenvalue of the mass matrix at random poses [kg m^2]."""
    masses: dict[str, float]
    """Of all moved links [kg]; of OLS they mean nothing."""

    @property
    def whole(self) -> dict[str, float]:
        """Share of poses where the mass matrix is positive definite."""
        return {column: float(np.mean(least > 0)) for column, least in self.least.items()}


def run(folder: Path, poses: int = POSES) -> Finding:
    """Identify the arm."""
    arm, rng = WamArm(folder), np.random.default_rng(SEED)
    sets = [simulate(arm, number, rng) for number in TRAJECTORIES.values()]
    found = [_assess(arm, sets, cone, poses) for cone in CONES]
    return Finding(
        NAME,
        (_table8(found, arm.model['published']), _estimate_table(found, poses)),
        tuple(one.note for assessed in found for one in expectations(assessed, arm)),
        {one.cone: _figures(one) for one in found},
    )


def expectations(found: Assessed, arm: WamArm) -> tuple[Expectation, ...]:
    """Hold estimates with one cone against S's relations."""
    ols, bpfc, fbpe, bounded = (found.errors[column][0] for column in COLUMNS)
    feasible = [found.whole[column] for column in COLUMNS[1:]]
    limit = float(arm.model['total_mass_upper'])
    return (
        Expectation(
            f'Table 8, {found.cone}: identification error OLS <= FBPE <= BPFC '
            f'({ols:.3f}, {fbpe:.3f}, {bpfc:.3f} %) and FBPE <= FBPE with bounds '
            f'({bounded:.3f} %)',
            ols <= fbpe <= bpfc and fbpe <= bounded * (1 + SOLVED),
        ),
        Expectation(
            f'Table 8, {found.cone}: FBPE predicts the validation better than OLS',
            all(
                feasible < plain
                for feasible, plain in zip(found.errors['FBPE'][1:], found.errors['OLS'][1:])
            ),
        ),
        Expectation(
            f'section 5.2.4, {found.cone}: OLS is infeasible, its mass matrix not everywhere '
            'positive definite; that of all others is',
            found.estimates.infeasible and found.whole['OLS'] < 1 and min(feasible) == 1,
        ),
        Expectation(
            f'Table 7, {found.cone}: with bounds the arm weighs {limit:g} kg at most, '
            f'{found.masses["FBPE with bounds"]:.3f} kg',
            found.masses['FBPE with bounds'] <= limit + WHOLE,
        ),
    )


def _assess(arm: WamArm, sets: Sequence[Data], cone: Consistency, poses: int) -> Assessed:
    """Estimate with one cone from the first trajectory."""
    found = estimate(arm, sets[0], cone)
    x = np.array([found.x[column] for column in COLUMNS])
    least = smallest_mass_matrix_eigenvalues(arm, x, poses)
    return Assessed(
        CONES[cone],
        found,
        {column: [relative_error(data, found.x[column]) for data in sets] for column in COLUMNS},
        dict(zip(COLUMNS, least, strict=True)),
        {
            column: float(arm.unknowns.split(found.x[column])[0][:, 0].sum())
            for column in COLUMNS[1:]
        },
    )


def _table8(found: Sequence[Assessed], published: dict[str, Any]) -> Table:
    """Return errors of the four estimates beside those of S."""
    rows: list[Row] = []
    for k, name in enumerate(TRAJECTORIES):
        printed = published['relative_error_percent'][name]
        rows.append((name, 'S, 6x6, measured', *(f'{error:.2f}' for error in printed)))
        for one in found:
            errors = (f'{one.errors[column][k]:.3f}' for column in COLUMNS)
            rows.append((name, f'{one.cone}, simulated', *errors))
    title = 'S, Table 8: error of predicted torques [%]'
    return Table(title, ('trajectory', 'cone, torques', *COLUMNS), tuple(rows))


def _estimate_table(found: Sequence[Assessed], poses: int) -> Table:
    """Return mass matrices and masses of the estimates."""
    rows = tuple(
        (
            one.cone,
            column,
            f'{100 * one.whole[column]:.2f}',
            f'{one.least[column].min():.1e}',
            f'{one.masses[column]:.1f}' if column in one.masses else '',
        )
        for one in found
        for column in COLUMNS
    )
    title = f'S, sections 5.2.4 and 5.2.5: mass matrix at {poses} random poses'
    columns = ('cone', 'estimate', 'positive definite [%]', 'least eigenvalue', 'mass [kg]')
    return Table(title, columns, rows)


def _figures(found: Assessed) -> dict[str, Any]:
    """Return estimates with one cone for a machine."""
    return {
        'ols_infeasible': found.estimates.infeasible,
        'relative_error_percent': found.errors,
        'mass_matrix_positive_definite': found.whole,
        'mass_matrix_least_eigenvalue': {
            column: float(least.min()) for column, least in found.least.items()
        },
        'total_mass_kg': found.masses,
        'unknowns': {column: x.tolist() for column, x in found.estimates.x.items()},
    }
