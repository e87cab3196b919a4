# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of an identification as records, and friction, drives and offsets as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inertial_estimation.identification.evidence import Determined, Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.unknowns import FT_OFFSET, OF_A_BODY, Extra, Term
from inertial_estimation.logs.identify import RobotIdentification
from inertial_estimation.model.inertia import INERTIAL, INERTIAL_UNITS
from inertial_estimation.model.urdf import parse

UNITS: Mapping[Term, tuple[str, str]] = {
    Term.VISCOUS: ('N m s/rad', 'N s/m'),
    Term.COULOMB: ('N m', 'N'),
    Term.OFFSET: ('N m', 'N'),
    Term.DRIVE_INERTIA: ('kg m^2', 'kg'),
    Term.DRIVE_GAIN: ('N m/A', 'N/A'),
    **dict.fromkeys(FT_OFFSET[:3], ('N', 'N')),
    **dict.fromkeys(FT_OFFSET[3:], ('N m', 'N m')),
    **{term: (unit, unit) for term, unit in zip(OF_A_BODY, INERTIAL_UNITS, strict=True)},
}
"""Of joints that turn, and of joints that slide; others have one."""
FITTED = ('signal', 'before', 'fit')
UNSEEN = ('validation_signal', 'validation_before', 'validation')
"""Root mean squares of equations [N, Nm]: measured, residual of the URDF, residual of the fit."""
ON_TOP = """\
# Offsets of FT sensors come on top of what turned the readings of the logs into wrenches:
# of bags, add them to the offset of the sensor [N, Nm]: in the calibration_file if that holds
# the sensor, else ft.<sensor>.offset of the node's parameter file.
"""


def summarize(report: RobotIdentification) -> dict[str, Any]:
    """Return all figures as records."""
    fit = report.fit
    unseen = {one.block.submodel.name: one for one in report.validation}
    links = dict(zip(fit.robot.link_names, fit.parameters, strict=True))
    found = {
        'method': report.method,
        'consistent': fit.consistent,
        'findings': [one.as_dict() for one in report.findings],
        'logs': [part._asdict() for part in report.logs],
        'validation_logs': [part._asdict() for part in report.validation_logs],
        'submodels': [
            _submodel(block, report.determined[block.name], unseen.get(block.name))
            for block in fit.blocks
        ],
        'units': {str(extra): unit for extra, (_, _, unit) in extra_values(report).items()},
        **{
            key: {name: dict(zip(INERTIAL, row.tolist(), strict=True)) for name, row in of.items()}
            for key, of in (('links', links), ('payloads', fit.payloads))
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


def _submodel(block: BlockFit, known: Determined, unseen: Evidence | None) -> dict[str, Any]:
    answer, evidence = block.answer, block.evidence
    base = zip(
        known.seen.records(answer.unknowns.names),
        known.seen.of(answer.x).tolist(),
        known.deviations.tolist(),
        strict=True,
    )
    columns = dict(zip(FITTED, _errors(evidence, block), strict=True))
    columns |= dict(zip(UNSEEN, ({},) * 3 if unseen is None else _errors(unseen, block)))
    rows = {
        kind: {
            'count': evidence.used[kind],
            'independent': part.count,
            **{key: errors.get(kind, np.nan) for key, errors in columns.items()},
        }
        for kind, part in evidence.kinds.items()
    }
    return {
        'name': block.name,
        'grade': answer.grade.value,
        'optimality': answer.optimality,
        'iterations': answer.iterations,
        'rank': answer.rank,
        'bounds_not_kept': list(block.missed),
        'combinations': known.possible,
        'base_parameters': [
            {**record, 'value': value, 'deviation': spread} for record, value, spread in base
        ],
        'noise': block.noise.deviations,
        'left_out': dict(evidence.left_out),
        'rows': rows,
        'margins': dict(zip(answer.unknowns.links, answer.margins.tolist(), strict=True)),
        'extras': answer.extras,
        'deviations': dict(zip(answer.unknowns.names, answer.deviations.tolist(), strict=True)),
    }


def _errors(evidence: Evidence, block: BlockFit) -> tuple[dict[str, float], ...]:
    """Return signal, residual of the URDF and residual of the fit, by kind of equations."""
    x = block.answer.x
    return evidence.signals(x), evidence.residuals(block.before), evidence.residuals(x)


def extra_values(report: RobotIdentification) -> dict[Extra, tuple[float, float, str]]:
    """Return value, deviation and unit of friction and the like, the best of all submodels."""
    joints = parse(report.fit.robot.urdf).findall("joint[@type='prismatic']")
    sliding = {tag.get('name') for tag in joints}
    found: dict[Extra, tuple[float, float, str]] = {}
    for block in report.fit.blocks:
        unknowns, answer = block.answer.unknowns, block.answer
        deviations = answer.deviations[unknowns.n_inertial :].tolist()
        for extra, value, deviation in zip(unknowns.extras, answer.extras.values(), deviations):
            unit = UNITS[extra.term][extra.of.split('+')[0] in sliding]
            # A deviation that is NaN is not less than any.
            if extra not in found or deviation < np.nan_to_num(found[extra][1], nan=np.inf):
                found[extra] = value, deviation, unit
    return found


def extras_yaml(report: RobotIdentification) -> str:
    """Return friction, drives and offsets as YAML."""
    import yaml

    found: dict[str, dict[str, dict[str, float | None]]] = {}
    units: dict[tuple[str, str], str] = {}
    for extra, (value, deviation, unit) in extra_values(report).items():
        known = [number if np.isfinite(number) else None for number in (value, deviation)]
        found.setdefault(extra.of, {})[extra.term.value] = dict(zip(('value', 'deviation'), known))
        units[extra.of, f'  {extra.term.value}:'] = f'  # [{unit}]'
    lines = [
        line + units.get((name, line), '')
        for name, terms in found.items()
        for line in yaml.safe_dump({name: terms}, sort_keys=False).splitlines()
    ]
    offsets = any(term.value in terms for terms in found.values() for term in FT_OFFSET)
    return (ON_TOP if offsets else '') + '\n'.join(lines or ['{}']) + '\n'
