# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters of S's WAM: Table 3, how they condition, and what depends on their choice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.feasibility.feasibility import (
    BaseParameterCheck,
    Verdict,
    check_base_parameters,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.independent_columns import conditioning_order
from inertial_estimation.table import Table
from published_experiments.experiment import Expectation, Finding
from published_experiments.wam_arm import N_UNKNOWNS, TRAJECTORIES, WamArm
from published_experiments.wam_experiment import (
    SEED,
    Data,
    bounds,
    relative_error,
    rows,
    simulate,
)

Array = NDArray[np.float64]

NAME = 'S: Sousa and Cortesao 2014, base parameters of the WAM'
EXACT = 1e-12
"""Groupings are products of a few lengths with few digits."""
SOLVED = 1e-5
"""Relative, of a cost that a solver found."""
WELL = 0.1
"""Condition numbers of S are those of recorded motions, ours of references: relative."""
ORDERS = {'as S': conditioning_order(7, 28), 'masses first': np.arange(N_UNKNOWNS)}


class Choice(NamedTuple):
    """What is found with one choice of columns."""

    name: str
    condition: float
    fitted: Array
    """Unknowns of FBPE, 4x4, shape (98,)."""
    mean_square: float
    """Of FBPE [N^2 m^2]."""
    check: BaseParameterCheck
    """Of OLS, 4x4."""
    corrected: float
    """Error of BPFC [%]."""


def run(folder: Path) -> Finding:
    """Find base parameters of the arm."""
    arm = WamArm(folder)
    data = simulate(arm, 1, np.random.default_rng(SEED))
    rank, difference = compare_groupings(arm, data.W)
    printed = arm.model['published']['cond']
    conditions = [
        (name, float(printed[name]), condition(arm, number))
        for name, number in TRAJECTORIES.items()
    ]
    choices = [choose(arm, data, name) for name in ORDERS]
    same = Expectation(
        f'Table 3: the same {arm.table3.rank} base parameters, greatest difference of a factor '
        f'{difference:.0e}',
        rank == arm.table3.rank and difference < EXACT,
    )
    expected = (same, _near(conditions), *_independent(choices))
    numbers = ('number', str(arm.table3.rank), str(rank))
    return Finding(
        NAME,
        (
            Table('S, Table 3: base parameters', ('', 'S', 'found'),
                  (numbers, ('greatest difference of a factor', '', f'{difference:.0e}'))),
            _condition_table(conditions),
            _choice_table(choices),
        ),
        tuple(one.note for one in expected),
        {
            'greatest_difference': difference if np.isfinite(difference) else None,
            'condition_numbers': {name: found for name, _, found in conditions},
            'columns': {one.name: _figures(one) for one in choices},
        },
    )  # fmt: skip


def condition(arm: WamArm, number: int) -> float:
    """Return the condition number of a reference over the base parameters of Table 3."""
    return float(np.linalg.cond(rows(arm, number)[:, arm.table3.independent]))


def compare_groupings(arm: WamArm, W: Array) -> tuple[int, float]:
    """
    Find base parameters from rows, and compare them with Table 3.

    W (n, 98).
    """
    found, published = BaseParameters.of_regressor(W, ORDERS['as S']), arm.table3
    ours, theirs = np.argsort(found.independent), np.argsort(published.independent)
    if not np.array_equal(found.independent[ours], published.independent[theirs]):
        return found.rank, np.inf
    off = found.grouping[ours] - published.grouping[theirs]
    return found.rank, float(np.abs(off).max())


def choose(arm: WamArm, data: Data, order: str) -> Choice:
    """Fit, test and correct with one choice of columns."""
    base, signs = BaseParameters.of_regressor(data.W, ORDERS[order]), bounds(arm, False)
    kept = data.W[:, base.independent]
    reduced = Information.of(kept, data.torques)
    problem = Problem(
        arm.unknowns, reduced.R @ base.grouping, reduced.rho, reduced.energy, reduced.count,
        arm.cad_parameters, bounds=signs,
    )  # fmt: skip
    ols = np.asarray(np.linalg.solve(reduced.R, reduced.rho), dtype=np.float64)
    check = check_base_parameters(base, ols, arm.unknowns, bounds=signs)
    fitted = solve_semidefinite(problem, prior=PriorTerm.NONE)
    return Choice(
        order,
        float(np.linalg.cond(kept)),
        fitted.x,
        fitted.mean_square,
        check,
        relative_error(data, check.x),
    )


def _near(conditions: Sequence[tuple[str, float, float]]) -> Expectation:
    """Hold condition numbers against those of the recorded motions."""
    greatest = max(abs(found / printed - 1) for _, printed, found in conditions)
    return Expectation(
        'section 5.2.2: condition numbers are near those of the recorded motions, off by at most '
        f'{greatest:.1%}',
        greatest < WELL,
    )


def _independent(choices: Sequence[Choice]) -> tuple[Expectation, ...]:
    """Hold what must not depend on the columns, and what does."""
    first, second = choices
    return (
        Expectation(
            'neither the verdict on OLS (BPFT) nor the fit (FBPE) depends on the columns',
            first.check.verdict is second.check.verdict is Verdict.INFEASIBLE
            and bool(np.isclose(first.mean_square, second.mean_square, rtol=SOLVED)),
        ),
        Expectation(
            'the correction (BPFC) depends on the columns',
            not np.isclose(first.corrected, second.corrected, rtol=SOLVED),
        ),
    )


def _condition_table(conditions: Sequence[tuple[str, float, float]]) -> Table:
    """Return condition numbers beside those of S."""
    return Table(
        'S, section 5.2.2: condition numbers',
        ('trajectory', 'S, recorded', 'reference'),
        tuple((name, f'{printed:.0f}', f'{found:.1f}') for name, printed, found in conditions),
    )


def _choice_table(choices: Sequence[Choice]) -> Table:
    """Return what is found with each choice of columns."""
    columns = (
        'columns', 'condition number', 'FBPE: mean square [N^2 m^2]', 'BPFT of OLS',
        'BPFC: distance', 'BPFC: error [%]',
    )  # fmt: skip
    rows = tuple(
        (
            one.name,
            f'{one.condition:.1f}',
            f'{one.mean_square:.6f}',
            one.check.verdict.value,
            f'{one.check.distance:.3e}',
            f'{one.corrected:.4f}',
        )
        for one in choices
    )
    return Table('S, sections 4 and 5: choice of columns, simulated, 4x4 cone', columns, rows)


def _figures(one: Choice) -> dict[str, object]:
    """Return a choice for a machine."""
    return {
        'condition': one.condition,
        'fbpe_mean_square': one.mean_square,
        'ols_verdict': one.check.verdict.value,
        'bpfc_distance': one.check.distance,
        'bpfc_relative_error_percent': one.corrected,
    }
