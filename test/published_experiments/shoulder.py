# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""M's Table I: slow paths need the manifold, on fast ones least squares finds the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.feasibility.feasibility import (
    Verdict,
    check_base_parameters,
)
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.unknowns import INERTIAL, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.table import Row, Table
from published_experiments.data_sets import read_table
from published_experiments.experiment import Expectation, Finding
from published_experiments.shoulder_experiment import PACES, arm, arm_problem

Array = NDArray[np.float64]

NAME = 'M: Traversaro et al. 2016, an arm beyond an FT sensor'
FILE = 'papers/seed000_table1.csv'
"""Table I as published."""
SLOW, FAST = 5.0, 1.0
"""M calls paths slow that take so long from point to point or longer, fast likewise [s]."""
PRINTED_TO = 5e-4
"""Half of the last digit of M's table."""
AGREE = 1e-6
"""Relative to the largest parameter: least squares and manifold have found the same."""
LEAST_SQUARES, MANIFOLD = 'R10, least squares', 'P, manifold'
_PRINTED = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
_OURS = [_PRINTED.index(name.replace('_', '')) for name in INERTIAL]
"""Where M's table has each of our ten parameters."""
COLUMNS = ('point to point', 'by', *_PRINTED, 'margin')


@dataclass(frozen=True, eq=False)
class Fitted:
    """One path."""

    duration: float
    """From point to point [s]."""
    plain: Identification
    bodies: Identification

    @property
    def gap(self) -> float:
        """Greatest difference of the two over the largest parameter of the arm."""
        return float(np.abs(self.bodies.x - self.plain.x).max() / np.abs(arm()).max())


def run(folder: Path) -> Finding:
    """Identify the arm from all paths."""
    found = [_fit(k) for k in range(len(PACES))]
    published, within_digits = _published(
        read_table(folder / FILE, ('trajectory_time', 'manifold', *_PRINTED))
    )
    return Finding(
        NAME,
        (_simulated(found), published),
        (*(one.note for one in expectations(found)), within_digits),
        {'truth': arm().tolist(), 'paths': [_figures(one) for one in found]},
    )


def expectations(found: Sequence[Fitted]) -> tuple[Expectation, ...]:
    """Hold both estimates against M's relations."""
    slow = [one for one in found if one.duration >= SLOW]
    fast = [one for one in found if one.duration <= FAST]
    gap = max(one.gap for one in fast)
    return (
        Expectation(
            'least squares finds no body on slow paths '
            f'({", ".join(f"{one.duration:g} s" for one in slow)})',
            not any(one.plain.consistent for one in slow),
        ),
        Expectation(
            'the manifold finds bodies on all paths', all(one.bodies.consistent for one in found)
        ),
        Expectation(
            f'on fast paths ({", ".join(f"{one.duration:g} s" for one in fast)}) both find the '
            f'same, greatest difference over the largest parameter {gap:.0e}',
            gap < AGREE and all(one.plain.consistent for one in fast),
        ),
    )


def _fit(k: int) -> Fitted:
    """Return both estimates from one path."""
    problem = arm_problem(PACES[k])
    return Fitted(
        PACES[k].duration, solve_least_squares(problem), solve_manifold(problem, weight=None)
    )


def _simulated(found: Sequence[Fitted]) -> Table:
    """Return Table I of the synthetic arm."""
    rows = [_row('', 'truth', arm())]
    for one in found:
        for name, result in ((LEAST_SQUARES, one.plain), (MANIFOLD, one.bodies)):
            rows.append(_row(f'{one.duration:g} s', name, result.parameters[0]))
    title = 'M, Table I, synthetic: [kg, kg m, kg m^2]; margin positive: of a body'
    return Table(title, COLUMNS, tuple(rows))


def _published(rows: Sequence[dict[str, str]]) -> tuple[Table, str]:
    """Return Table I as it was printed, and of which rows there are bodies within its digits."""
    names = {'R10': LEAST_SQUARES, 'P': MANIFOLD}
    printed: list[Row] = []
    bodies = dict.fromkeys(names, 0)
    for row in rows:
        manifold, duration = row['manifold'], row['trajectory_time'].replace('s', ' s')
        parameters = np.array([float(row[name]) for name in _PRINTED])[_OURS]
        verdict = _within_digits(parameters)
        bodies[manifold] += verdict is Verdict.FEASIBLE
        printed.append((*_row(duration, names[manifold], parameters), verdict.value))
    title = 'M, Table I as published, of a real arm, and whether digits printed are of a body'
    counts = ', '.join(f'{bodies[name]} of {len(rows) // 2} rows of {name}' for name in names)
    note = f'Table I as published, within its digits: {counts} are of a body'
    return Table(title, (*COLUMNS, 'within its digits'), tuple(printed)), note


def _within_digits(parameters: Array) -> Verdict:
    """Return whether a body has parameters that are rounded to these."""
    base = BaseParameters(np.arange(10), np.eye(10))
    rounding = np.full(10, PRINTED_TO)
    return check_base_parameters(base, parameters, Unknowns(('arm',)), rounding=rounding).verdict


def _row(duration: str, name: str, parameters: Array) -> Row:
    """Return ten parameters in M's order, and how far inside the cone of bodies they are."""
    margin = float(consistency_margin(parameters))
    ordered = parameters[np.argsort(_OURS)]
    # No minus in front of what is rounded to zero.
    figures = (f'{round(value, 3) + 0.0:.3f}' for value in ordered)
    return duration, name, *figures, f'{margin:.1e}'


def _figures(one: Fitted) -> dict[str, object]:
    """Return one path for a machine."""
    return {
        'point_to_point_s': one.duration,
        **{
            name: {
                'parameters': result.parameters[0].tolist(),
                'margin': float(result.margins[0]),
                'mean_square': result.mean_square,
            }
            for name, result in (('least_squares', one.plain), ('manifold', one.bodies))
        },
    }
