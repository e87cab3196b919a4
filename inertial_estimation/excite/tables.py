# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What was designed, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.excite.design import Design
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAMED = 4
"""So many pairs of neighbours are all named."""


def design_tables(design: Design) -> Iterator[Table]:
    """Yield the tables that are shown."""
    yield _attempts(design)
    if len(design.of_submodels) > 1:
        yield _submodels(design)
    yield _joints(design)
    yield _checks(design)


def design_dict(design: Design) -> dict[str, Any]:
    """Return all of it for a machine."""
    motion = design.motion
    start, end = design.conditions[0]
    return {
        'condition_at_start': _or_none(start),
        'condition': _or_none(end),
        'base_parameters': design.regressor.rank,
        'unknowns': design.regressor.n_unknowns,
        'submodels': [
            {
                'name': one.name,
                'rows': one.kinds,
                'base_parameters': one.base.rank,
                'condition_at_start': _or_none(a),
                'condition': _or_none(b),
            }
            for one, a, b in design.of_submodels
        ],
        'attempts': [
            {
                'condition_at_start': _or_none(a),
                'condition': _or_none(b),
                'complete': attempt.complete,
            }
            for attempt, (a, b) in zip(design.attempts, design.conditions, strict=True)
        ],
        'motion': {
            'period': motion.basis.period,
            'harmonics': motion.basis.harmonics,
            'joints': {
                name: _coefficients(row)
                for name, row in zip(motion.joint_names, motion.coefficients, strict=True)
            },
        },
        'joints': {name: _joint(design, j) for j, name in enumerate(motion.joint_names)},
        'clearance': _clearance(design),
        'played': _played(design),
        'warnings': design.warnings,
    }


def _joint(design: Design, j: int) -> dict[str, Any]:
    """Return limits of a joint, and how far it goes."""
    limits = design.limits
    return {
        'lower': float(limits.lower[j]),
        'upper': float(limits.upper[j]),
        'velocity': float(limits.velocity[j]),
        'acceleration': float(limits.acceleration[j]),
        'effort': _or_none(limits.effort[j]),
        'reached': dict(zip(_REACHED, map(float, _reached(design)[:, j]), strict=True)),
    }


def _clearance(design: Design) -> dict[str, Any] | None:
    """Return which links come nearest."""
    if design.nearest is None or design.keep_away is None:
        return None
    return {
        'nearest': _or_none(design.nearest.distance),
        'links': design.nearest.links,
        'pairs': len(design.keep_away.clearance.pairs),
        'unchecked_neighbours': list(design.keep_away.clearance.unchecked),
    }


def _played(design: Design) -> dict[str, Any] | None:
    """Return what the simulator made of the motion."""
    played = design.played
    if played is None:
        return None
    return {
        'tracking': float(played.tracking.max()),
        'efforts': dict(zip(design.limits.joint_names, played.efforts.tolist(), strict=True)),
        'touching': list(played.touching),
    }


_REACHED = ('lower', 'upper', 'velocity', 'acceleration', 'effort')


def _reached(design: Design) -> Array:
    """Return how far each joint goes, in the order of `_REACHED`, shape (5, n_joints)."""
    q, v, a = design.states
    speeds = np.abs(v).max(axis=0), np.abs(a).max(axis=0)
    return np.array([q.min(axis=0), q.max(axis=0), *speeds, design.efforts])


def _coefficients(row: Array) -> dict[str, Any]:
    """Return the coefficients of a joint."""
    harmonics = len(row) // 2
    return {
        'a': row[:harmonics].tolist(),
        'b': row[harmonics:-1].tolist(),
        'q0': float(row[-1]),
    }


def _or_none(value: float) -> float | None:
    """Return a number that JSON has."""
    return float(value) if np.isfinite(value) else None


def _attempts(design: Design) -> Table:
    """Return what became of each start."""
    rows = tuple(
        (str(k + 1), f'{start:.1f}', f'{end:.2f}', 'done' if attempt.complete else 'time over')
        for k, (attempt, (start, end)) in enumerate(
            zip(design.attempts, design.conditions, strict=True)
        )
    )
    base, unknowns = design.regressor.rank, design.regressor.n_unknowns
    of = 'of the worst submodel; ' if len(design.regressor.submodels) > 1 else ''
    title = f'Condition number of the rows, {of}{base} base parameters ({unknowns} unknowns)'
    return Table(title, ('attempt', 'at start', 'at end', 'search'), rows)


def _submodels(design: Design) -> Table:
    """Return the condition number of each submodel's rows."""
    rows = tuple(
        (one.name, one.kinds, str(one.base.rank), f'{start:.1f}', f'{end:.2f}')
        for one, start, end in design.of_submodels
    )
    columns = ('submodel', 'rows', 'base parameters', 'at start', 'at end')
    return Table('Submodels, in the best attempt', columns, rows)


def _joints(design: Design) -> Table:
    """Return how far each joint goes, and how far it may."""
    limits, reached = design.limits, _reached(design)
    rows = tuple(
        (
            name,
            f'{reached[0, j]:.3f} .. {reached[1, j]:.3f}',
            f'{limits.lower[j]:.3f} .. {limits.upper[j]:.3f}',
            *(
                f'{value:.3f} / {limit:.3f}' if np.isfinite(limit) else f'{value:.3f}'
                for value, limit in (
                    (reached[2, j], limits.velocity[j]),
                    (reached[3, j], limits.acceleration[j]),
                    (reached[4, j], limits.effort[j]),
                )
            ),
        )
        for j, name in enumerate(limits.joint_names)
    )
    columns = ('joint', 'position', 'limits', 'velocity', 'acceleration', 'effort by description')
    return Table('Joints, each with its limit (rad or m and their rates; Nm or N)', columns, rows)


def _checks(design: Design) -> Table:
    """Return what was checked."""
    rows = [('start and end', 'at rest in the same posture')]
    if design.keep_away is not None and design.nearest is not None:
        pairs = len(design.keep_away.clearance.pairs)
        nearest = design.nearest
        said = f'{nearest.links} come to {nearest.distance:.3f} m'
        if not nearest.links:
            said = f'nothing comes nearer than {design.keep_away.margin:g} m'
        rows.append((f'distance of {pairs} pairs', said))
        unchecked = design.keep_away.clearance.unchecked
        if unchecked:
            why = f'not further than {design.keep_away.margin:g} m apart with joints at zero'
            named = '; '.join(unchecked)
            if len(unchecked) > NAMED:
                named = f'{len(unchecked)} pairs, which --json lists'
            rows.append(('neighbours not checked', f'{named}: {why}'))
    if design.played is not None:
        touching = '; '.join(design.played.touching) or 'none of these pairs touches'
        if design.keep_away is None:
            touching = 'no geometry'
        off = float(design.played.tracking.max())
        rows.append(('played in MuJoCo', f'{off:.1g} rad or m off at most; {touching}'))
    return Table('Checks', ('check', 'result'), tuple(rows))
