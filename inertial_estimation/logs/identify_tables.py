# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What an identification found, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.determined import Determined
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.logs.identify import IdentifyReport, LogPart
from inertial_estimation.table import Table

Array = NDArray[np.float64]


def identify_tables(report: IdentifyReport) -> Iterator[Table]:
    """
    Yield the tables that are shown.

    Parameters
    ----------
    report : IdentifyReport
        What was found.

    Yields
    ------
    Table

    """
    yield _logs(report)
    yield _submodels(report)
    yield _fit(report)
    yield _links(report)
    extras = _extras(report)
    if extras.rows:
        yield extras


def identify_dict(report: IdentifyReport) -> dict[str, Any]:
    """
    Return all of it for a machine.

    Parameters
    ----------
    report : IdentifyReport
        What was found.

    Returns
    -------
    dict

    """
    validation = _validation(report)
    return {
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
        'links': {
            name: dict(zip(INERTIAL, row.tolist(), strict=True))
            for name, row in zip(report.fit.robot.link_names, report.fit.parameters, strict=True)
        },
    }


def extras_yaml(report: IdentifyReport) -> str:
    """
    Return friction, drives and offsets as YAML.

    Parameters
    ----------
    report : IdentifyReport
        What was found.

    Returns
    -------
    str
        By joint or sensor and term: value and standard deviation, in SI; null where rows do not
        determine it.

    """
    import yaml

    found: dict[str, dict[str, Any]] = {}
    for block in report.fit.blocks:
        n = block.answer.unknowns.n_inertial
        values, spread = block.answer.x[n:].tolist(), block.answer.deviations[n:].tolist()
        for extra, value, deviation in zip(
            block.answer.unknowns.extras, values, spread, strict=True
        ):
            found.setdefault(extra.of, {})[extra.term.value] = {
                'value': value,
                'deviation': deviation if np.isfinite(deviation) else None,
            }
    return str(yaml.safe_dump(found, sort_keys=False))


def _block_dict(block: BlockFit, told: Determined, validation: Evidence | None) -> dict[str, Any]:
    """Return one submodel for a machine."""
    answer = block.answer
    return {
        'name': block.name,
        'rank': answer.rank,
        'unknowns': len(answer.unknowns),
        'combinations': told.possible,
        'determined': told.reached,
        'not_determined': list(told.missing),
        'grade': answer.grade.value,
        'optimality': answer.optimality,
        'iterations': answer.iterations,
        'solve_time': answer.solve_time,
        'noise': block.noise.deviations,
        'left_out': dict(block.evidence.left_out),
        'rows': {
            kind: {
                'signal': signal,
                'before': before,
                'fit': fitted,
                'validation': predicted,
            }
            for kind, signal, before, fitted, predicted in _residuals(block, validation)
        },
        'notes': list(answer.notes),
        'margins': dict(zip(answer.unknowns.links, answer.margins.tolist(), strict=True)),
        'extras': answer.extras,
        'deviations': dict(zip(answer.unknowns.names, answer.deviations.tolist(), strict=True)),
    }


def _validation(report: IdentifyReport) -> dict[str, Evidence]:
    """Return the evidence that was not fitted by submodel."""
    return {one.block.submodel.name: one for one in report.validation}


def _residuals(
    block: BlockFit, validation: Evidence | None
) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield kind, signal, residual before, after, and of the validation; root mean squares."""
    evidence = block.evidence
    signals = evidence.signals()
    before, after = evidence.residuals(block.before), evidence.residuals(block.answer.x)
    other = validation.residuals(block.answer.x) if validation is not None else {}
    for kind in evidence.kinds:
        yield kind, signals[kind], before[kind], after[kind], other.get(kind, np.nan)


def _logs(report: IdentifyReport) -> Table:
    """Return what was left of the logs."""

    def row(part: LogPart, use: str) -> tuple[str, ...]:
        numbers = (part.recorded, part.discarded, part.stretches, part.used)
        return (part.path, use, *map(str, numbers))

    rows = [row(part, 'fitted') for part in report.logs]
    rows += [row(part, 'predicted') for part in report.validation_logs]
    columns = ('log', 'use', 'instants', 'discarded', 'stretches', 'used')
    return Table('Logs', columns, tuple(rows))


def _submodels(report: IdentifyReport) -> Table:
    """Return how each submodel was solved."""
    rows = tuple(
        (
            block.name,
            str(len(block.answer.unknowns)),
            str(report.determined[block.name].possible),
            str(report.determined[block.name].reached),
            f'{float(block.answer.margins.min()):.2g}',
            block.answer.grade.value,
            f'{block.answer.optimality:.1g}',
            str(block.answer.iterations),
            f'{1e3 * block.answer.solve_time:.1f}',
        )
        for block in report.fit.blocks
    )
    columns = ('submodel', 'unknowns', 'combinations', 'determined', 'least eigenvalue', 'grade',
               'optimality', 'steps', 'time [ms]')  # fmt: skip
    return Table(f'Submodels, by {report.method}', columns, rows)


def _fit(report: IdentifyReport) -> Table:
    """Return the residual of each kind of row."""
    validation = _validation(report)
    rows = tuple(
        (
            block.name,
            kind,
            f'{signal:.3g}',
            f'{before:.3g}',
            f'{fitted:.3g}',
            f'{100 * fitted / signal:.2f}' if signal else '',
            '' if np.isnan(predicted) else f'{predicted:.3g}',
        )
        for block in report.fit.blocks
        for kind, signal, before, fitted, predicted in _residuals(
            block, validation.get(block.name)
        )
        if not np.isnan(signal)
    )
    columns = ('submodel', 'row', 'signal', 'with prior', 'fit', 'fit [%]', 'validation')
    return Table('Root mean squares [N, Nm]', columns, rows)


def _links(report: IdentifyReport) -> Table:
    """Return mass and centre of mass of each link before and after."""
    fitted = {link for block in report.fit.blocks for link in block.answer.unknowns.links}
    names = report.fit.robot.link_names
    rows = tuple(
        (name, f'{old[0]:.3f}', f'{new[0]:.3f}', _center(old), _center(new))
        for name, old, new in zip(names, report.fit.prior, report.fit.parameters, strict=True)
        if name in fitted
    )
    columns = ('link', 'mass before', 'mass [kg]', 'centre before', 'centre of mass [m]')
    return Table('Links; only combinations of these are determined', columns, rows)


def _center(parameters: Array) -> str:
    """Return a centre of mass in words."""
    if not parameters[0]:
        return ''
    return ' '.join(f'{value:.3f}' for value in parameters[1:4] / parameters[0])


def _extras(report: IdentifyReport) -> Table:
    """Return friction and the like."""
    rows = []
    for block in report.fit.blocks:
        n = block.answer.unknowns.n_inertial
        values, spread = block.answer.x[n:], block.answer.deviations[n:]
        for extra, value, deviation in zip(
            block.answer.unknowns.extras, values, spread, strict=True
        ):
            rows.append((extra.of, extra.term.value, f'{value:.4g}', f'{deviation:.2g}'))
    columns = ('of', 'what', 'value', 'deviation')
    return Table('Friction, drives, offsets', columns, tuple(rows))
