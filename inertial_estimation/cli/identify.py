# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``identify``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import (
    findings_lines,
    progress_bars,
    records_table,
    show,
    table,
    write_json,
)
from inertial_estimation.config.settings import METHODS
from inertial_estimation.errors import CallError, ConfigError, ModelError

if TYPE_CHECKING:
    from inertial_estimation.identification.priors import PriorRows
    from inertial_estimation.logs.identify import RobotIdentification

Record = dict[str, Any]

MAX_FINDINGS = 12
"""Findings that are printed without --full."""
FULL_WIDTH = 120


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'identify', 'identify inertial parameters from logs',
        'run1.npz run2.npz --robot arm.urdf --config arm_logs.yaml --validate run3.npz '
        '--out-urdf identified.urdf', full=True,
    )  # fmt: skip
    command.add_argument(
        'logs', nargs='+', metavar='LOG', help='npz, csv or bag; LOG@FROM:TO for a part [s]'
    )
    command.add_argument('--robot', required=True, metavar='URDF', help='robot description')
    command.add_argument(
        '--config', required=True, metavar='YAML',
        help='columns, filter and equations; or the parameter file of the node, for bags',
    )  # fmt: skip
    command.add_argument(
        '--method', choices=METHODS, default='entropic', help='solver (default: %(default)s)'
    )
    command.add_argument(
        '--weight', type=_weight, metavar='NUMBER[-rows]',
        help='weight of the prior, in equations or relative (default: 10-rows)',
    )  # fmt: skip
    command.add_argument(
        '--validate', nargs='+', default=[], metavar='LOG', help='logs to predict, not fitted'
    )
    command.add_argument(
        '--lock', nargs='+', default=[], metavar='JOINT', help='joints that the logs do not move'
    )
    command.add_argument(
        '--out-urdf', type=Path, metavar='FILE', help='write the URDF; exit code 1 if inconsistent'
    )
    command.add_argument(
        '--out-yaml', type=Path, metavar='FILE', help='write friction, drives and FT offsets'
    )
    command.set_defaults(run=_run)


def _weight(text: str) -> float | PriorRows:
    """Return the weight of a prior."""
    from inertial_estimation.identification.priors import prior_weight

    try:
        return prior_weight(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _run(chosen: argparse.Namespace) -> int:
    """Identify a robot."""
    from inertial_estimation.config.files import write_whole
    from inertial_estimation.identification.solvers.methods import SOLVERS
    from inertial_estimation.logs.identify import identify, with_lightened_links
    from inertial_estimation.logs.identify_settings import IdentifySettings
    from inertial_estimation.logs.identify_summary import extras_yaml, summarize
    from inertial_estimation.logs.log import LogSlice
    from inertial_estimation.model.urdf import encoded

    if chosen.weight is not None and not SOLVERS[chosen.method].weighted:
        raise CallError(f'--weight is not used by {chosen.method}')
    logs = [LogSlice.parse(log).path for log in (*chosen.logs, *chosen.validate)]
    files.check_outputs(
        (chosen.json, chosen.out_urdf, chosen.out_yaml),
        (chosen.robot, *files.config_files(chosen.config), *logs),
    )
    urdf = files.load_urdf(chosen.robot)
    with progress_bars() as progress:
        found = identify(
            urdf,
            chosen.logs,
            IdentifySettings.from_yaml(chosen.config),
            method=chosen.method,
            options={} if chosen.weight is None else {'weight': chosen.weight},
            validate=chosen.validate,
            lock=chosen.lock,
            mesh_folders=(Path(chosen.robot).parent,),
            progress=progress,
        )
    written, refusal = None, None
    if chosen.out_urdf is not None:
        try:
            written = found.urdf()
            found = with_lightened_links(found)
        except ModelError as error:
            # All else is written, to show what went wrong.
            refusal = ModelError(f"'{chosen.out_urdf}' is not written: {error}")
    summary = summarize(found)
    write_json(chosen.json, summary)
    if written is not None:
        write_whole(chosen.out_urdf, encoded(written))
    if chosen.out_yaml is not None:
        write_whole(chosen.out_yaml, extras_yaml(found))
    show(*_overview(found, summary))
    findings = findings_lines(found.findings)
    show(*(findings if chosen.full else findings[:MAX_FINDINGS]))
    if chosen.full:
        show(*_tables(found, summary), width=FULL_WIDTH)
    elif len(findings) > MAX_FINDINGS:
        show(f'and {len(findings) - MAX_FINDINGS} more findings: --full or --json')
    if refusal is not None:
        raise refusal
    return 0


def _overview(found: RobotIdentification, s: Record) -> list[Any]:
    """Return parameters and errors."""
    prior = dict(zip(found.fit.robot.link_names, found.fit.prior.tolist(), strict=True))
    new = dict(zip(found.fit.robot.link_names, found.parameters.tolist(), strict=True))
    links = [link for block in found.fit.blocks for link in block.answer.unknowns.links]
    rows = [
        (link, f'{prior[link][0]:.3f}', f'{new[link][0]:.3f}', *_center(new[link]))
        for link in links
    ]
    columns = ('link', 'mass before', 'mass [kg]', 'centre x [m]', 'y', 'z')
    items: list[Any] = [table(f'Links, by {found.method}', columns, rows)]
    if s['payloads']:
        carried = [
            (name, f'{values["m"]:.4g}', *_center(list(values.values())))
            for name, values in s['payloads'].items()
        ]
        items.append(
            table('Payloads', ('payload', 'mass [kg]', 'centre x [m]', 'y', 'z'), carried)
        )
    items.append(table('Residuals, root mean squares', ERRORS, list(_errors(s))))
    determined = sum(one['determined'] for one in s['submodels'])
    possible = sum(one['combinations'] for one in s['submodels'])
    items.append(
        f'{determined} of {possible} combinations of parameters are determined; '
        f'parameters {"consistent" if s["consistent"] else "inconsistent"}\n'
    )
    return items


ERRORS = ('equations', 'signal', 'of the URDF', 'fit', 'fit [%]', 'validation [%]')


def _errors(s: Record) -> Iterator[tuple[Any, ...]]:
    """Yield the residuals of forces, moments and efforts of each submodel."""
    for submodel in s['submodels']:
        units: dict[str, list[Record]] = {}
        for kind, row in submodel['rows'].items():
            if row['signal'] == row['signal']:
                units.setdefault(kind.split('_')[0].split(' ')[0], []).append(row)
        for unit, rows in units.items():
            signal, before, fit = (
                hypot(*(row[key] for row in rows)) for key in ('signal', 'before', 'fit')
            )
            unseen = [row for row in rows if row['validation'] == row['validation']]
            wanted = hypot(*(row['validation_signal'] for row in unseen))
            share = hypot(*(row['validation'] for row in unseen)) / wanted if wanted else None
            yield (
                f'{submodel["name"]} {unit}', f'{signal:.4g}', f'{before:.4g}', f'{fit:.4g}',
                _percent(fit / signal if signal else None), _percent(share),
            )  # fmt: skip


def _percent(share: float | None) -> str:
    """Return a share in percent."""
    return '-' if share is None or share != share else f'{100 * share:.2f}'


def _center(parameters: Sequence[float]) -> tuple[str, ...]:
    """Return the centre of mass of a link."""
    mass = parameters[0]
    return tuple(f'{value / mass:.3f}' if mass else '-' for value in parameters[1:4])


def _tables(found: RobotIdentification, s: Record) -> Iterator[Any]:
    """Yield all tables."""
    parts = [
        (part['path'], use, *(part[key] for key in ('recorded', 'discarded', 'used')),
         part['payloads'])
        for use, key in (('fitted', 'logs'), ('predicted', 'validation_logs'))
        for part in s[key]
    ]  # fmt: skip
    yield table('Logs', ('log', 'use', 'samples', 'discarded', 'used', 'payloads'), parts)
    yield records_table('Submodels', s['submodels'], SUBMODELS)
    rows = [
        (submodel['name'], kind, *(row[key] for key in RESIDUALS.values()))
        for submodel in s['submodels']
        for kind, row in submodel['rows'].items()
    ]
    yield table('Residuals', ('submodel', 'equations', *RESIDUALS), rows)
    deviations = found.deviations
    extras = {name: value for one in s['submodels'] for name, value in one['extras'].items()}
    if extras:
        yield table(
            'Friction, drives, offsets',
            ('unknown', 'value', 'deviation', 'unit'),
            [
                (name, value, deviations.get(name), s['units'].get(name, ''))
                for name, value in extras.items()
            ],
        )
    if found.points:
        yield table(
            'Points that may carry mass',
            ('link', 'source', 'points'),
            [(link, grid.source, len(grid.points)) for link, grid in found.points.items()],
        )


SUBMODELS = {
    'submodel': 'name', 'unknowns': 'unknowns', 'combinations': 'combinations',
    'determined': 'determined', 'weight': 'weight', 'grade': 'grade', 'optimality': 'optimality',
    'iterations': 'iterations', 'time [s]': 'solve_time',
}  # fmt: skip
RESIDUALS = {
    'count': 'count', 'independent': 'independent', 'signal': 'signal', 'URDF': 'before',
    'fit': 'fit', 'URDF, validation': 'validation_before', 'validation': 'validation',
}  # fmt: skip
