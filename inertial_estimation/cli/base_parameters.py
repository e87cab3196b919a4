# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check of base parameters against the cones of physically consistent parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inertial_estimation.cli.render import Columns, records_table
from inertial_estimation.identification.feasibility import (
    BaseParameterCheck,
    StatedBaseParameters,
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.identification.solvers.consistency_lmi import Consistency
from inertial_estimation.model.robot import Robot

Record = dict[str, Any]

ROUND_OFF = 1e-6
"""Share of a table's quantity below which its rows are round-off of the solver."""
CONES = {
    Consistency.FULL: 'fully consistent (4x4 pseudo-inertia)',
    Consistency.PHYSICAL: 'positive mass and inertia (6x6)',
}
FEASIBLE = Verdict.FEASIBLE.value
VERDICTS: Columns = {
    'cone': 'cone', 'verdict': 'verdict', 'margin': lambda one: f'{one["margin"]:.2e}',
    'distance': lambda one: f'{one["distance"]:.3e}', 'search': 'grade',
}  # fmt: skip
BELOW_ZERO: Columns = {
    'combination': 'combination', 'stated': lambda one: f'{one["value"]:.3g}',
    'deviation': lambda one: f'{one["deviation"]:.2g}' if one['deviation'] else '',
    'verdict': lambda one: 'may be zero' if one['may_be_zero'] else 'infeasible',
}  # fmt: skip
NEAREST: Columns = {
    'combination': 'combination', 'stated': lambda one: f'{one["stated"]:.6g}',
    'nearest': lambda one: f'{one["nearest"]:.6g}',
    'change': lambda one: f'{one["nearest"] - one["stated"]:+.2e}',
}  # fmt: skip
WEIGHTS: Columns = {'combination': 'combination', 'weight': lambda one: f'{one["weight"]:+.4g}'}


def check_base_parameters(text: str, robot: Robot) -> tuple[Record, list[Any], bool]:
    """
    Check base parameters against both cones.

    Returns the figures, their tables, and whether consistent parameters and passive drives exist.
    """
    stated = read_base_parameters(text, robot)
    names = stated.base.combinations(stated.unknowns.names)
    found: Record = {
        kind.value: _record(check_stated(robot, stated, consistency=kind), stated, names)
        for kind in CONES
    }
    found['below_zero'] = {
        names[k]: {
            'value': float(stated.values[k]),
            'deviation': float(stated.deviations[k]) or None,
            'may_be_zero': bool(stated.values[k] >= -stated.deviations[k]),
        }
        for k in np.flatnonzero(stated.below_zero)
    }
    feasible = found[Consistency.FULL.value]['verdict'] == FEASIBLE
    passive = all(one['may_be_zero'] for one in found['below_zero'].values())
    values = dict(zip(names, stated.values.tolist(), strict=True))
    return found, list(_tables(found, values)), feasible and passive


def _record(check: BaseParameterCheck, stated: StatedBaseParameters, names: list[str]) -> Record:
    """Return the verdict for one cone; a certificate is a sum that consistent ones exceed."""
    proof = check.certificate
    return {
        'verdict': check.verdict.value,
        'margin': check.margin,
        'distance': check.distance,
        'grade': check.grade.value,
        'nearest': dict(zip(names, check.nearest.tolist(), strict=True)),
        'certificate': None if proof is None else {
            'weights': dict(zip(names, proof.normal.tolist(), strict=True)),
            'least': proof.offset,
            'stated': float(proof.normal @ stated.values),
        },
    }  # fmt: skip


def _tables(found: Record, values: dict[str, float]) -> Iterator[Any]:
    """Yield verdicts, the nearest consistent base parameters, and the proof."""
    verdicts = [{'cone': text, **found[kind.value]} for kind, text in CONES.items()]
    yield records_table('Base parameters', verdicts, VERDICTS)
    below = [{'combination': name, **one} for name, one in found['below_zero'].items()]
    yield records_table('Negative friction and drives', below, BELOW_ZERO)
    full = found[Consistency.FULL.value]
    if full['verdict'] != FEASIBLE:
        nearest = [
            {'combination': name, 'stated': values[name], 'nearest': value}
            for name, value in full['nearest'].items()
            if abs(value - values[name]) > ROUND_OFF * full['distance']
        ]
        title = f'Nearest feasible base parameters{_others(nearest, values)}'
        yield records_table(title, nearest, NEAREST)
    if (proof := full['certificate']) is not None:
        least, sum_ = proof['least'], proof['stated']
        largest = np.abs(list(proof['weights'].values())).max()
        heaviest = sorted(proof['weights'].items(), key=lambda item: -abs(item[1]))
        weights = [
            {'combination': name, 'weight': weight}
            for name, weight in heaviest
            if abs(weight) > ROUND_OFF * largest
            or abs(weight * values[name]) > ROUND_OFF * (least - sum_)
        ]
        title = f'Proof: this sum is at least {least:.4g}, stated is {sum_:.4g}'
        yield records_table(f'{title}{_others(weights, values)}', weights, WEIGHTS)


def _others(shown: list[Record], values: dict[str, float]) -> str:
    """Return the number of rows that a table leaves out."""
    left = len(values) - len(shown)
    return f' ({left} more: --json)' if left else ''
