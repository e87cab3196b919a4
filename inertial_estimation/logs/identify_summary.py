# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of an identification as records, and friction, drives and offsets as YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.evidence import Determined, Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.unknowns import (
    FT_OFFSET,
    INERTIAL,
    INERTIAL_UNITS,
    OF_A_BODY,
    Extra,
    Term,
)
from inertial_estimation.logs.identify import RobotIdentification
from inertial_estimation.model.urdf import parse

OF_JOINTS: Mapping[Term, tuple[str, str]] = {
    Term.VISCOUS: ('N m s/rad', 'N s/m'),
    Term.COULOMB: ('N m', 'N'),
    Term.OFFSET: ('N m', 'N'),
    Term.DRIVE_INERTIA: ('kg m^2', 'kg'),
    Term.DRIVE_GAIN: ('N m/A', 'N/A'),
}
"""Units of joints that turn, and of joints that slide."""
OTHERS: Mapping[Term, str] = {
    **dict(zip(FT_OFFSET, (*('N',) * 3, *('N m',) * 3), strict=True)),
    **dict(zip(OF_A_BODY, INERTIAL_UNITS, strict=True)),
}


def extra_units(report: RobotIdentification) -> dict[Extra, str]:
    """Return the units of unknowns."""
    joints = parse(report.fit.robot.urdf).findall("joint[@type='prismatic']")
    sliding = {tag.get('name') for tag in joints}
    return {
        extra: OTHERS.get(extra.term) or OF_JOINTS[extra.term][extra.of.split('+')[0] in sliding]
        for extra, _, _ in extra_values(report)
    }


FITTED = ('signal', 'before', 'fit')
UNSEEN = ('validation_signal', 'validation_before', 'validation')
"""Root mean squares of equations [N, Nm]: measured, residual of the URDF, residual of the fit."""
ON_TOP = """\
# Offsets of FT sensors come on top of what turned the readings of the logs into wrenches:
# of bags, add them to ft.<sensor>.offset of the node's parameter file [N, Nm].
"""


def summarize(report: RobotIdentification) -> dict[str, Any]:
    """Return all figures as records."""
    fit = report.fit
    validation = {one.block.submodel.name: one for one in report.validation}
    found = {
        'method': report.method,
        'consistent': fit.consistent,
        'widened': list(fit.widened),
        'findings': [one.as_dict() for one in report.findings],
        'logs': [part._asdict() for part in report.logs],
        'validation_logs': [part._asdict() for part in report.validation_logs],
        'submodels': [
            _submodel(block, report.determined[block.name], validation.get(block.name))
            for block in fit.blocks
        ],
        'efforts': _efforts(fit.blocks, validation),
        'units': {str(extra): unit for extra, unit in extra_units(report).items()},
        'links': {
            name: dict(zip(INERTIAL, row.tolist(), strict=True))
            for name, row in zip(fit.robot.link_names, fit.parameters, strict=True)
        },
        'payloads': {
            name: dict(zip(INERTIAL, row.tolist(), strict=True))
            for name, row in fit.payloads.items()
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

    unit_of = extra_units(report)
    found: dict[str, dict[str, Any]] = {}
    units: dict[str, dict[str, str]] = {}
    for extra, value, deviation in extra_values(report):
        spread = deviation if np.isfinite(deviation) else None
        found.setdefault(extra.of, {})[extra.term.value] = {'value': value, 'deviation': spread}
        units.setdefault(extra.of, {})[f'  {extra.term.value}:'] = unit_of[extra]
    lines = [
        f'{line}  # [{units[name][line]}]' if line in units[name] else line
        for name, terms in found.items()
        for line in yaml.safe_dump({name: terms}, sort_keys=False).splitlines()
    ] or ['{}']
    offsets = any(term.value in terms for terms in found.values() for term in FT_OFFSET)
    return (ON_TOP if offsets else '') + '\n'.join(lines) + '\n'


def _submodel(block: BlockFit, known: Determined, validation: Evidence | None) -> dict[str, Any]:
    """Return the figures of a submodel."""
    answer, evidence = block.answer, block.evidence
    fitted, unseen = _errors(block, evidence), _errors(block, validation)
    base = zip(
        known.seen.records(answer.unknowns.names),
        known.seen.of(answer.x).tolist(),
        known.deviations.tolist(),
        strict=True,
    )
    return {
        'name': block.name,
        'rank': answer.rank,
        'weight': block.weight,
        'bounds_not_kept': list(block.missed),
        'unknowns': len(answer.unknowns),
        'combinations': known.possible,
        'determined': known.reached,
        'not_determined': list(known.missing),
        'base_parameters': [
            {**record, 'value': value, 'deviation': spread} for record, value, spread in base
        ],
        'grade': answer.grade.value,
        'optimality': answer.optimality,
        'iterations': answer.iterations,
        'solve_time': answer.solve_time,
        'noise': block.noise.deviations,
        'left_out': dict(evidence.left_out),
        'rows': {
            kind: {
                'count': evidence.used[kind],
                'independent': evidence.kinds[kind].count,
                **dict(zip(FITTED, fitted[kind], strict=True)),
                **dict(zip(UNSEEN, unseen.get(kind, [np.nan] * 3), strict=True)),
            }
            for kind in evidence.kinds
        },
        'notes': list(answer.notes),
        'margins': dict(zip(answer.unknowns.links, answer.margins.tolist(), strict=True)),
        'extras': answer.extras,
        'deviations': dict(zip(answer.unknowns.names, answer.deviations.tolist(), strict=True)),
    }


def _errors(block: BlockFit, evidence: Evidence | None) -> dict[str, list[float]]:
    """Return measured side and residuals before and after by kind of equation."""
    if evidence is None:
        return {}
    x = block.answer.x
    parts = (evidence.signals(x), evidence.residuals(block.before), evidence.residuals(x))
    return {kind: [part[kind] for part in parts] for kind in evidence.kinds}


def _efforts(
    blocks: Sequence[BlockFit], validation: Mapping[str, Evidence]
) -> dict[str, float] | None:
    """Return the residuals of all efforts together, as shares of them, if there are any."""
    # Of signal, residual before and residual after: count times mean square.
    fitted, unseen = np.zeros((2, 3))
    for block in blocks:
        for sums, evidence in ((fitted, block.evidence), (unseen, validation.get(block.name))):
            for kind, errors in _errors(block, evidence).items():
                if kind.startswith(EFFORT) and not np.isnan(errors[0]):
                    assert evidence is not None
                    sums += evidence.kinds[kind].count * np.square(errors)
    if not fitted[0]:
        return None
    names = ('before', 'fit', 'validation_before', 'validation')
    with np.errstate(invalid='ignore'):
        shares = [np.sqrt(sums[1:] / sums[0]) for sums in (fitted, unseen)]
    return dict(zip(names, np.concatenate(shares).tolist(), strict=True))


def extra_values(report: RobotIdentification) -> Iterator[tuple[Extra, float, float]]:
    """Yield friction and the like with value and deviation, the best known of all submodels."""
    found: dict[Extra, list[tuple[float, float]]] = {}
    for block in report.fit.blocks:
        unknowns = block.answer.unknowns
        n = unknowns.n_inertial
        values, spread = block.answer.x[n:].tolist(), block.answer.deviations[n:].tolist()
        for extra, value, deviation in zip(unknowns.extras, values, spread, strict=True):
            found.setdefault(extra, []).append((value, deviation))
    for extra, known in found.items():
        yield extra, *min(known, key=lambda one: (np.isnan(one[1]), one[1]))
