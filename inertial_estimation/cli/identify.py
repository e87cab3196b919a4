# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``identify``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import hypot, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_options, add_verb
from inertial_estimation.cli.render import (
    FULL_WIDTH,
    Columns,
    findings_lines,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.config.groups import METHODS
from inertial_estimation.errors import CallError, ConfigError, ModelError

if TYPE_CHECKING:
    from inertial_estimation.identification.priors import PriorRows
    from inertial_estimation.logs.identify import RobotIdentification

Record = dict[str, Any]

ERRORS: Columns = {
    'equations': 'name', 'signal': lambda one: f'{one["signal"]:.4g}',
    'of the URDF': lambda one: f'{one["before"]:.4g}', 'fit': lambda one: f'{one["fit"]:.4g}',
    'fit [%]': lambda one: _percent(one['fit'], one['signal']),
    'validation [%]': lambda one: _percent(one['validation'], one['validation_signal']),
}  # fmt: skip
EXTRAS = {'unknown': 'name', 'value': 'value', 'deviation': 'deviation', 'unit': 'unit'}


def _center(key: str) -> Callable[[Record], str]:
    """Return a coordinate of the centre of mass of a record."""
    return lambda one: f'{one[key] / one["m"]:.3f}' if one['m'] else '-'


CENTER = {'centre x [m]': _center('mc_x'), 'y': _center('mc_y'), 'z': _center('mc_z')}
SUBMODELS = {
    'submodel': 'name', 'unknowns': 'unknowns', 'combinations': 'combinations',
    'determined': 'determined', 'weight': 'weight', 'grade': 'grade', 'optimality': 'optimality',
    'iterations': 'iterations', 'time [s]': 'solve_time',
}  # fmt: skip
ROWS = {
    'submodel': 'name', 'equations': 'kind', 'count': 'count', 'independent': 'independent',
    'signal': 'signal', 'URDF': 'before', 'fit': 'fit', 'URDF, validation': 'validation_before',
    'validation': 'validation',
}  # fmt: skip
LOGS = {
    'log': 'path', 'use': 'use', 'samples': 'recorded', 'discarded': 'discarded', 'used': 'used',
    'payloads': 'payloads',
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'identify', 'identify inertial parameters from logs',
        'run1.npz run2.npz --robot arm.urdf --config arm_logs.yaml --validate run3.npz '
        '--out-urdf identified.urdf', full=True,
    )  # fmt: skip
    needed, names, file = {'required': True}, {'nargs': '+', 'default': []}, {'type': Path}
    method = {'choices': METHODS, 'default': 'entropic'}
    add_options(
        command,
        ('logs', 'LOG', 'npz, csv or bag; LOG@FROM:TO for a part [s]', {'nargs': '+'}),
        ('--robot', 'URDF', 'robot description', needed),
        ('--config', 'YAML', 'columns, filter and equations; or the parameter file of the node, '
         'for bags', needed),
        ('--method', None, 'solver (default: %(default)s)', method),
        ('--weight', 'NUMBER[-rows]', 'weight of the prior, in equations or relative (default: '
         '10-rows)', {'type': _weight}),
        ('--validate', 'LOG', 'logs to predict, not fitted', names),
        ('--lock', 'JOINT', 'joints that the logs do not move', names),
        ('--out-urdf', 'FILE', 'write the URDF; exit code 1 if inconsistent', file),
        ('--out-yaml', 'FILE', 'write friction, drives and FT offsets', file),
    )  # fmt: skip
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
    show(*_overview(found, summary), *findings_lines(found.findings, full=chosen.full))
    if chosen.full:
        show(*_tables(summary), width=FULL_WIDTH)
    if refusal is not None:
        raise refusal
    return 0


def _overview(found: RobotIdentification, s: Record) -> Iterator[Any]:
    """Yield parameters and errors."""
    prior = dict(zip(found.fit.robot.link_names, found.fit.prior[:, 0].tolist(), strict=True))
    links = [
        {'name': link, 'before': prior[link], **s['links'][link]}
        for block in found.fit.blocks
        for link in block.answer.unknowns.links
    ]
    masses: Columns = {
        'link': 'name', 'mass before': lambda one: f'{one["before"]:.3f}',
        'mass [kg]': lambda one: f'{one["m"]:.3f}',
    }  # fmt: skip
    yield records_table(f'Links, by {s["method"]}', links, {**masses, **CENTER})
    payloads = [{'name': name, **values} for name, values in s['payloads'].items()]
    weighed: Columns = {'payload': 'name', 'mass [kg]': lambda one: f'{one["m"]:.4g}'}
    yield records_table('Payloads', payloads, {**weighed, **CENTER})
    yield records_table('Residuals, root mean squares', list(_errors(s)), ERRORS)
    determined, possible = (
        sum(one[key] for one in s['submodels']) for key in ('determined', 'combinations')
    )
    yield (
        f'{determined} of {possible} combinations of parameters are determined; '
        f'parameters {"consistent" if s["consistent"] else "inconsistent"}\n'
    )


def _errors(s: Record) -> Iterator[Record]:
    """Yield the residuals of forces, moments and efforts of each submodel."""
    for submodel in s['submodels']:
        units: dict[str, list[Record]] = {}
        for kind, row in submodel['rows'].items():
            if not isnan(row['signal']):
                units.setdefault(kind.split('_')[0].split(' ')[0], []).append(row)
        for unit, rows in units.items():
            unseen = [row for row in rows if not isnan(row['validation'])]
            yield {
                'name': f'{submodel["name"]} {unit}',
                **{key: hypot(*(row[key] for row in rows)) for key in ('signal', 'before', 'fit')},
                **{
                    key: hypot(*(row[key] for row in unseen))
                    for key in ('validation', 'validation_signal')
                },
            }


def _percent(left: float, signal: float) -> str:
    """Return a share in percent."""
    return f'{100 * left / signal:.2f}' if signal else '-'


def _tables(s: Record) -> Iterator[Any]:
    """Yield all tables."""
    parts = [
        {**part, 'use': use}
        for use, key in (('fitted', 'logs'), ('predicted', 'validation_logs'))
        for part in s[key]
    ]
    yield records_table('Logs', parts, LOGS)
    yield records_table('Submodels', s['submodels'], SUBMODELS)
    rows = [
        {'name': submodel['name'], 'kind': kind, **row}
        for submodel in s['submodels']
        for kind, row in submodel['rows'].items()
    ]
    yield records_table('Residuals', rows, ROWS)
    extras = {
        name: {'name': name, 'value': value, 'deviation': one['deviations'].get(name),
               'unit': s['units'].get(name, '')}
        for one in s['submodels']
        for name, value in one['extras'].items()
    }  # fmt: skip
    columns: Columns = {
        'unknown': 'name',
        'value': 'value',
        'deviation': 'deviation',
        'unit': 'unit',
    }
    yield records_table('Friction, drives, offsets', extras.values(), columns)
    points = [{'link': link, **grid} for link, grid in s.get('points', {}).items()]
    columns = {'link': 'link', 'source': 'source', 'points': 'count'}
    yield records_table('Points that may carry mass', points, columns)
