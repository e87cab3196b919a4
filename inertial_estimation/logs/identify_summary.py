# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of an identification as records, and friction, drives and offsets as YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.identification.evidence import Determined, Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.outliers import EFFORT
from inertial_estimation.identification.unknowns import (
    FT_OFFSET,
    INERTIAL,
    INERTIAL_UNITS,
    OF_A_BODY,
    Extra,
    Term,
)
from inertial_estimation.logs.identify import RobotIdentification
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse

TURNING: Mapping[Term, str] = {
    Term.VISCOUS: 'N m s/rad',
    Term.COULOMB: 'N m',
    Term.OFFSET: 'N m',
    Term.DRIVE_INERTIA: 'kg m^2',
    Term.DRIVE_GAIN: 'N m/A',
}
SLIDING: Mapping[Term, str] = {
    Term.VISCOUS: 'N s/m',
    Term.COULOMB: 'N',
    Term.OFFSET: 'N',
    Term.DRIVE_INERTIA: 'kg',
    Term.DRIVE_GAIN: 'N/A',
}
ANYWHERE: Mapping[Term, str] = {
    **dict(zip(FT_OFFSET, (*('N',) * 3, *('N m',) * 3), strict=True)),
    **dict(zip(OF_A_BODY, INERTIAL_UNITS, strict=True)),
}


def sliding_joints(robot: Robot) -> frozenset[str]:
    """Return the joints that slide."""
    joints = parse(robot.urdf).findall('joint')
    return frozenset(tag.get('name', '') for tag in joints if tag.get('type') == 'prismatic')


def extra_unit(extra: Extra, sliding: frozenset[str]) -> str:
    """Return the unit of an unknown."""
    if extra.term in ANYWHERE:
        return ANYWHERE[extra.term]
    return (SLIDING if extra.of.split('+')[0] in sliding else TURNING)[extra.term]


ON_TOP = """\
# Offsets of FT sensors come on top of what turned the readings of the logs into wrenches:
# of bags, add them to ft.<sensor>.offset of the node's parameter file [N, Nm].
"""


def summarize(report: RobotIdentification) -> dict[str, Any]:
    """Return all of it for a machine."""
    validation = unseen_evidence(report)
    sliding = sliding_joints(report.fit.robot)
    found = {
        'method': report.method,
        'consistent': report.fit.consistent,
        'widened': list(report.fit.widened),
        'findings': [one.as_dict() for one in report.findings],
        'logs': [part._asdict() for part in report.logs],
        'validation_logs': [part._asdict() for part in report.validation_logs],
        'submodels': [
            _block_dict(block, report.determined[block.name], validation.get(block.name))
            for block in report.fit.blocks
        ],
        'efforts': _efforts(report),
        'units': {
            str(extra): extra_unit(extra, sliding) for _, extra, _, _ in extra_values(report)
        },
        'links': {
            name: dict(zip(INERTIAL, row.tolist(), strict=True))
            for name, row in zip(report.fit.robot.link_names, report.fit.parameters, strict=True)
        },
        'payloads': {
            name: dict(zip(INERTIAL, row.tolist(), strict=True))
            for name, row in report.fit.payloads.items()
        },
    }
    if report.points:
        found['points'] = {
            link: {
                'source': grid.source,
                'count': len(grid.points),
                'center': grid.box.L_H_S[:3, 3].tolist(),
                'half_lengths': grid.box.half_lengths.tolist(),
            }
            for link, grid in report.points.items()
        }
    return found


def extras_yaml(report: RobotIdentification) -> str:
    """Return friction, drives and offsets as YAML."""
    import yaml

    sliding = sliding_joints(report.fit.robot)
    found: dict[str, dict[str, Any]] = {}
    units: dict[str, dict[str, str]] = {}
    for _, extra, value, deviation in extra_values(report):
        spread = deviation if np.isfinite(deviation) else None
        found.setdefault(extra.of, {})[extra.term.value] = {'value': value, 'deviation': spread}
        units.setdefault(extra.of, {})[f'  {extra.term.value}:'] = extra_unit(extra, sliding)
    lines = [
        f'{line}  # [{units[name][line]}]' if line in units[name] else line
        for name, terms in found.items()
        for line in yaml.safe_dump({name: terms}, sort_keys=False).splitlines()
    ] or ['{}']
    offsets = any(term.value in terms for terms in found.values() for term in FT_OFFSET)
    return (ON_TOP if offsets else '') + '\n'.join(lines) + '\n'


def _block_dict(block: BlockFit, told: Determined, validation: Evidence | None) -> dict[str, Any]:
    """Return one submodel for a machine."""
    answer = block.answer
    return {
        'name': block.name,
        'rank': answer.rank,
        'weight': block.weight,
        'bounds_not_kept': list(block.missed),
        'unknowns': len(answer.unknowns),
        'combinations': told.possible,
        'determined': told.reached,
        'not_determined': list(told.missing),
        'base_parameters': _base_parameters(block, told),
        'grade': answer.grade.value,
        'optimality': answer.optimality,
        'iterations': answer.iterations,
        'solve_time': answer.solve_time,
        'noise': block.noise.deviations,
        'left_out': dict(block.evidence.left_out),
        'rows': {
            one.kind: {
                'count': block.evidence.rows[one.kind],
                'independent': block.evidence.kinds[one.kind].count,
                'signal': one.signal,
                'before': one.before,
                'fit': one.fitted,
                'validation_signal': one.unseen,
                'validation_before': one.before_unseen,
                'validation': one.predicted,
            }
            for one in residuals(block, validation)
        },
        'notes': list(answer.notes),
        'margins': dict(zip(answer.unknowns.links, answer.margins.tolist(), strict=True)),
        'extras': answer.extras,
        'deviations': dict(zip(answer.unknowns.names, answer.deviations.tolist(), strict=True)),
    }


def _efforts(report: RobotIdentification) -> dict[str, float] | None:
    """Return what is left of all efforts together, as shares of them, if there are any."""
    total = all_efforts(report)
    if total is None:
        return None
    with np.errstate(invalid='ignore', divide='ignore'):
        fitted = np.array([total.before, total.fitted]) / total.signal
        unseen = np.array([total.before_unseen, total.predicted]) / total.unseen
    names = ('before', 'fit', 'validation_before', 'validation')
    return dict(zip(names, [*fitted.tolist(), *unseen.tolist()], strict=True))


def _base_parameters(block: BlockFit, told: Determined) -> list[dict[str, Any]]:
    """Return the combinations that the logs determined, with what was found."""
    records = told.seen.records(block.answer.unknowns.names)
    values, spread = told.seen.of(block.answer.x).tolist(), told.deviations.tolist()
    return [
        {**record, 'value': value, 'deviation': deviation}
        for record, value, deviation in zip(records, values, spread, strict=True)
    ]


def extra_values(report: RobotIdentification) -> Iterator[tuple[str, Extra, float, float]]:
    """Yield friction and the like, each once."""
    found: dict[Extra, list[tuple[str, float, float]]] = {}
    for block in report.fit.blocks:
        unknowns = block.answer.unknowns
        n = unknowns.n_inertial
        values, spread = block.answer.x[n:].tolist(), block.answer.deviations[n:].tolist()
        for extra, value, deviation in zip(unknowns.extras, values, spread, strict=True):
            found.setdefault(extra, []).append((block.name, value, deviation))
    for extra, told in found.items():
        names = ', '.join(name for name, _, _ in told)
        _, value, deviation = min(told, key=lambda one: (np.isnan(one[2]), one[2]))
        yield names, extra, value, deviation


def unseen_evidence(report: RobotIdentification) -> dict[str, Evidence]:
    """Return the evidence that was not fitted."""
    return {one.block.submodel.name: one for one in report.validation}


class KindErrors(NamedTuple):
    """Root mean squares of one kind of row [N, Nm]; NaN where there are no rows."""

    kind: str
    counted: bool
    """Whether these rows were fitted; those whose noise nothing tells were not."""
    signal: float
    before: float
    """What is left with the description's bodies."""
    fitted: float
    unseen: float
    """Signal of the validation."""
    before_unseen: float
    """What is left of it with the description's bodies."""
    predicted: float


def residuals(block: BlockFit, validation: Evidence | None) -> Iterator[KindErrors]:
    """Yield root mean squares of each kind of row."""
    evidence = block.evidence
    signals = evidence.signals(block.answer.x)
    before, after = evidence.residuals(block.before), evidence.residuals(block.answer.x)
    unseen: Sequence[Mapping[str, float]] = ({}, {}, {})
    if validation is not None:
        unseen = (
            validation.signals(block.answer.x),
            validation.residuals(block.before),
            validation.residuals(block.answer.x),
        )
    for kind in evidence.kinds:
        others = (values.get(kind, np.nan) for values in unseen)
        counted = kind in block.kinds
        yield KindErrors(kind, counted, signals[kind], before[kind], after[kind], *others)


class AllEfforts(NamedTuple):
    """The same of the efforts of all joints together."""

    signal: float
    before: float
    fitted: float
    unseen: float
    before_unseen: float
    predicted: float


def all_efforts(report: RobotIdentification) -> AllEfforts | None:
    """Return what is left of the efforts of all joints together, in all submodels."""
    validation = unseen_evidence(report)
    # Count, then count times mean square; of what was fitted, and of what was not.
    sums, unseen_sums = np.zeros(4), np.zeros(4)
    for block in report.fit.blocks:
        other = validation.get(block.name)
        for kind, _, *errors in residuals(block, other):
            if not kind.startswith(EFFORT) or np.isnan(errors[0]):
                continue
            sums += block.evidence.kinds[kind].count * np.square([1.0, *errors[:3]])
            if other is not None and not np.isnan(errors[3]):
                unseen_sums += other.kinds[kind].count * np.square([1.0, *errors[3:]])
    if not sums[0]:
        return None
    with np.errstate(invalid='ignore'):
        found, others = (np.sqrt(one[1:] / one[0]) for one in (sums, unseen_sums))
    return AllEfforts(*found.tolist(), *others.tolist())
