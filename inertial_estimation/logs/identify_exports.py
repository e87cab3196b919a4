# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What an identification found, for machines: JSON, and YAML of friction and offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from inertial_estimation.identification.determined import Determined
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.unknowns import FT_OFFSET, INERTIAL
from inertial_estimation.logs.extra_units import extra_unit, sliding_joints
from inertial_estimation.logs.identify import IdentifyReport
from inertial_estimation.logs.identify_figures import (
    all_efforts,
    extra_values,
    residuals,
    unseen_evidence,
)
from inertial_estimation.logs.plain import plain

ON_TOP = """\
# Offsets of FT sensors come on top of what turned the readings of the logs into wrenches:
# of bags, add them to ft.<sensor>.offset of the node's parameter file [N, Nm].
"""


def identify_dict(report: IdentifyReport) -> dict[str, Any]:
    """Return all of it for a machine."""
    validation = unseen_evidence(report)
    sliding = sliding_joints(report.fit.robot)
    found = {
        'method': report.method,
        'consistent': report.fit.consistent,
        'widened': list(report.fit.widened),
        'warnings': list(report.warnings),
        'logs': [vars(part) for part in report.logs],
        'validation_logs': [vars(part) for part in report.validation_logs],
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
    return dict(plain(found))


def extras_yaml(report: IdentifyReport) -> str:
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


def _efforts(report: IdentifyReport) -> dict[str, float] | None:
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
