# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check of base parameters against the cones of physically consistent parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inertial_estimation.cli.render import records_table
from inertial_estimation.identification.feasibility import (
    Consistency,
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.model.robot import Robot

Record = dict[str, Any]

ROUND_OFF = 1e-6
"""Share of a table's quantity below which its rows are round-off of the solver."""


def check_base_parameters(text: str, robot: Robot) -> tuple[Record, list[Any], bool]:
    """
    Check base parameters against the cones of 4x4 pseudo-inertias (full) and of 6x6 inertias.

    Returns the figures, their tables, and whether consistent parameters and passive drives exist.
    """
    stated = read_base_parameters(text, robot)
    names, values = stated.base.combinations(stated.unknowns.names), stated.values
    found: Record = {}
    for kind in (Consistency.FULL, Consistency.PHYSICAL):
        check = check_stated(robot, stated, consistency=kind)
        proof = check.certificate
        found[kind.value] = {
            'verdict': check.verdict.value, 'margin': check.margin, 'distance': check.distance,
            'grade': check.grade.value,
            'nearest': dict(zip(names, check.nearest.tolist(), strict=True)),
            'certificate': proof and {
                'weights': dict(zip(names, proof.normal.tolist(), strict=True)),
                'least': proof.offset, 'stated': float(proof.normal @ values),
            },
        }  # fmt: skip
    below = {
        names[k]: {
            'value': float(values[k]),
            'deviation': float(stated.deviations[k]) or None,
            'may_be_zero': bool(values[k] >= -stated.deviations[k]),
        }
        for k in np.flatnonzero(stated.below_zero)
    }
    feasible = found[Consistency.FULL.value]['verdict'] == Verdict.FEASIBLE.value
    passive = all(one['may_be_zero'] for one in below.values())
    tables = list(_tables(found, below, dict(zip(names, values.tolist(), strict=True))))
    return found | {'below_zero': below}, tables, feasible and passive


def _tables(found: Record, below: Record, values: dict[str, float]) -> Iterator[Any]:
    """Yield verdicts, the nearest consistent base parameters, and the proof."""
    verdicts = [{'cone': kind, **one} for kind, one in found.items()]
    columns = ('cone', 'verdict', 'margin', 'distance', 'grade')
    yield records_table('Base parameters', verdicts, columns)
    negative = [{'combination': name, **one} for name, one in below.items()]
    yield records_table('Negative friction and drives', negative)
    full = found[Consistency.FULL.value]
    if full['verdict'] != Verdict.FEASIBLE.value:
        nearest = [
            {'combination': name, 'stated': values[name], 'nearest': value, 'change': change}
            for name, value in full['nearest'].items()
            if abs(change := value - values[name]) > ROUND_OFF * full['distance']
        ]
        title = f'Nearest feasible base parameters ({len(nearest)} of {len(values)} change)'
        yield records_table(title, nearest)
    if (proof := full['certificate']) is not None:
        heaviest = sorted(proof['weights'].items(), key=lambda item: -abs(item[1]))
        weights = [
            {'combination': name, 'weight': weight}
            for name, weight in heaviest
            if abs(weight) > ROUND_OFF * abs(heaviest[0][1])
        ]
        title = f'Proof: this sum is at least {proof["least"]:.4g}, stated {proof["stated"]:.4g}'
        yield records_table(title, weights)
