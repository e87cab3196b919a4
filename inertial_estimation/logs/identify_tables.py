# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What an identification found, for people."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.logs.extra_units import extra_unit, sliding_joints
from inertial_estimation.logs.identify import IdentifyReport
from inertial_estimation.logs.identify_figures import (
    AllEfforts,
    KindErrors,
    all_efforts,
    extra_values,
    residuals,
    unseen_evidence,
)
from inertial_estimation.logs.reduction import LogPart
from inertial_estimation.table import Table

Array = NDArray[np.float64]

OWN_BODIES = "description's bodies"
"""Column of what is left with these, and friction refitted."""


def identify_tables(report: IdentifyReport) -> Iterator[Table]:
    """Yield the tables that are shown."""
    yield _logs(report)
    yield _submodels(report)
    yield _fit(report)
    yield _links(report)
    if report.points:
        yield _points(report)
    payloads = _payloads(report)
    if payloads.rows:
        yield payloads
    extras = _extras(report)
    if extras.rows:
        yield extras


def _logs(report: IdentifyReport) -> Table:
    """Return what was left of the logs."""

    def row(part: LogPart, use: str) -> tuple[str, ...]:
        numbers = (part.recorded, part.discarded, part.stretches, part.used)
        return (part.path, use, *map(str, numbers), ', '.join(part.payloads))

    rows = [row(part, 'fitted') for part in report.logs]
    rows += [row(part, 'predicted') for part in report.validation_logs]
    columns = ('log', 'use', 'instants', 'discarded', 'stretches', 'used', 'payload')
    parts = (*report.logs, *report.validation_logs)
    shown = len(columns) if any(part.payloads for part in parts) else -1
    moved = any(part.used > part.recorded - part.discarded for part in parts)
    why = '; uneven stamps are moved to an even grid, which may have more' if moved else ''
    return Table(f'Logs{why}', columns[:shown], tuple(row[:shown] for row in rows))


def _submodels(report: IdentifyReport) -> Table:
    """Return how each submodel was solved."""
    rows = tuple(
        (
            block.name,
            str(len(block.answer.unknowns)),
            str(report.determined[block.name].possible),
            str(report.determined[block.name].reached),
            '' if block.weight is None else f'{block.weight:.2g}',
            f'{float(block.answer.margins.min()):.2g}',
            block.answer.grade.value,
            f'{block.answer.optimality:.1g}',
            str(block.answer.iterations),
            f'{1e3 * block.answer.solve_time:.1f}',
        )
        for block in report.fit.blocks
    )
    columns = ('submodel', 'unknowns', 'combinations', 'determined', 'weight', 'least eigenvalue',
               'grade', 'optimality', 'steps', 'time [ms]')  # fmt: skip
    return Table(f'Submodels, by {report.method}', columns, rows)


def _fit(report: IdentifyReport) -> Table:
    """Return the residual of each kind of row."""
    validation = unseen_evidence(report)
    rows = tuple(
        (
            block.name,
            one.kind,
            str(block.evidence.rows[one.kind]),
            f'{block.evidence.kinds[one.kind].count:.0f}',
            str(block.evidence.left_out[one.kind]),
            *_errors(one, counted=one.counted),
        )
        for block in report.fit.blocks
        for one in residuals(block, validation.get(block.name))
        if not np.isnan(one.signal)
    )
    columns = ('submodel', 'row', 'rows', 'independent', 'left out', 'signal', OWN_BODIES, 'fit',
               'fit [%]', f'{OWN_BODIES}, validation', 'validation', 'validation [%]')  # fmt: skip
    return Table('Root mean squares [N, Nm]', columns, (*rows, *_all_efforts(report)))


def _all_efforts(report: IdentifyReport) -> Iterator[tuple[str, ...]]:
    """Yield the row of all efforts together."""
    total = all_efforts(report)
    if total is not None:
        yield (*('all', 'efforts', '', '', ''), *_errors(total))


def _errors(one: KindErrors | AllEfforts, *, counted: bool = True) -> tuple[str, ...]:
    """Return the columns of root mean squares, empty where there are no rows or no fit."""
    return (
        *(f'{value:.3g}' for value in (one.signal, one.before, one.fitted)),
        _percent(one.fitted, one.signal) if counted else '',
        *('' if np.isnan(v) else f'{v:.3g}' for v in (one.before_unseen, one.predicted)),
        _percent(one.predicted, one.unseen),
    )


def _percent(residual: float, signal: float) -> str:
    """Return a residual over what was measured, empty where that is nothing."""
    return f'{100 * residual / signal:.2f}' if signal > 0 and np.isfinite(residual) else ''


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
    return Table(_links_title(report), columns, rows)


def _links_title(report: IdentifyReport) -> str:
    """Return what to know of single links: those of which rows tell everything are named."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for block in report.fit.blocks:
        unknowns = block.answer.unknowns
        whole = report.determined[block.name].reached == len(unknowns)
        names[whole] += unknowns.links
    if not names[False]:
        return 'Links'
    others = f', but for {", ".join(names[True])}' if names[True] else ''
    return f'Links; only combinations of these are determined{others}'


def _points(report: IdentifyReport) -> Table:
    """Return where links may have their mass, and who says so."""

    def numbers(values: Array) -> str:
        return ' '.join(f'{value:.3f}' for value in values)

    rows = tuple(
        (
            link,
            grid.source,
            str(len(grid.points)),
            numbers(grid.box.L_H_S[:3, 3]),
            numbers(2 * grid.box.half_lengths),
        )
        for link, grid in report.points.items()
    )
    columns = ('link', 'from', 'points', 'centre of the box [m]', 'edges [m]')
    return Table('Points that may carry mass', columns, rows)


def _center(parameters: Array) -> str:
    """Return a centre of mass in words."""
    if not parameters[0]:
        return ''
    return ' '.join(f'{value:.3f}' for value in parameters[1:4] / parameters[0])


def _payloads(report: IdentifyReport) -> Table:
    """Return mass and centre of mass of what was carried."""
    rows = []
    for block in report.fit.blocks:
        spread = dict(zip(block.answer.unknowns.names, block.answer.deviations, strict=True))
        for payload in block.evidence.block.payloads:
            found = report.fit.payloads[payload.name]
            sure = [spread.get(f'{payload.name}.{name}', 0.0) for name in INERTIAL[:4]]
            # That of the mass has next to no part in where its centre is.
            center = ' '.join(f'{value / abs(found[0]):.2g}' for value in sure[1:])
            mass = (f'{found[0]:.4g}', f'{sure[0]:.2g}')
            rows.append((payload.name, payload.frame, *mass, _center(found), center))
    columns = ('payload', 'frame', 'mass [kg]', 'deviation', 'centre of mass [m]', 'deviation')
    return Table('Payloads', columns, tuple(rows))


def _extras(report: IdentifyReport) -> Table:
    """Return friction and the like."""
    sliding = sliding_joints(report.fit.robot)
    rows = [
        (
            name,
            extra.of,
            extra.term.value,
            f'{value:.4g}',
            f'{deviation:.2g}',
            extra_unit(extra, sliding),
        )
        for name, extra, value, deviation in extra_values(report)
    ]
    columns = ('submodel', 'of', 'what', 'value', 'deviation', 'unit')
    return Table('Friction, drives, offsets', columns, tuple(rows))
