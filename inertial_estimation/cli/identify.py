# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``identify``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import isnan
from pathlib import Path
from typing import Any

from inertial_estimation.cli.files import load_urdf
from inertial_estimation.cli.identify_summary import extra_values, extras_yaml, summarize
from inertial_estimation.cli.render import (
    Columns,
    all_tables,
    findings_lines,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.config.files import write_whole
from inertial_estimation.errors import CallError, ModelError, NameNotFound
from inertial_estimation.identification.solvers.answer import require_weight
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.identify import RobotIdentification, identify
from inertial_estimation.logs.identify_settings import IdentifySettings

Record = dict[str, Any]


def _center(key: str) -> Callable[[Record], str]:
    """Return a coordinate of the centre of mass of a record."""
    return lambda one: f'{one[key] / one["m"]:.3f}' if one['m'] else '-'


CENTER: Columns = {'centre x [m]': _center('mc_x'), 'y': _center('mc_y'), 'z': _center('mc_z')}
LINKS: Columns = {'link': 'name', 'mass before': 'before', 'mass [kg]': 'm', **CENTER}
PAYLOADS: Columns = {'payload': 'name', 'mass [kg]': 'm', **CENTER}
RESIDUALS = (
    'submodel', 'equations', 'signal', 'before', 'fit', 'validation_before', 'validation'
)  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    """Identify a robot."""
    if chosen.method not in SOLVERS:
        raise CallError(str(NameNotFound('method', chosen.method, SOLVERS)))
    if chosen.weight is not None:
        require_weight(chosen.weight)
        if not SOLVERS[chosen.method].weighted:
            raise CallError(f'--weight is not used by {chosen.method}')
    urdf = load_urdf(chosen.robot)
    with progress_bars() as progress:
        found = identify(
            urdf, chosen.logs, IdentifySettings.from_yaml(chosen.config), method=chosen.method,
            options={} if chosen.weight is None else {'weight': chosen.weight},
            validate=chosen.validate, lock=chosen.lock,
            mesh_folders=(Path(chosen.robot).parent,), progress=progress,
        )  # fmt: skip
    refusal = None
    if chosen.out_urdf is not None:
        try:
            written = found.urdf()
        except ModelError as error:
            # All else is written, to show what went wrong.
            refusal = ModelError(f"'{chosen.out_urdf}' is not written: {error}")
    summary = summarize(found)
    write_json(chosen.json, summary)
    if chosen.out_urdf is not None and refusal is None:
        write_whole(chosen.out_urdf, written)
    if chosen.out_yaml is not None:
        write_whole(chosen.out_yaml, extras_yaml(found))
    show(*_overview(found, summary), *findings_lines(found.findings))
    if chosen.full:
        show(*all_tables(summary))
    if refusal is not None:
        raise refusal
    return 0


def _overview(found: RobotIdentification, s: Record) -> Iterator[Any]:
    prior = dict(zip(found.fit.robot.link_names, found.fit.prior[:, 0].tolist(), strict=True))
    links = [
        {'name': link, 'before': prior[link], **s['links'][link]}
        for block in found.fit.blocks
        for link in block.answer.unknowns.links
    ]
    payloads = [{'name': name, **values} for name, values in s['payloads'].items()]
    determined = sum(len(one['base_parameters']) for one in s['submodels'])
    possible = sum(one['combinations'] for one in s['submodels'])
    yield records_table(f'Links, by {s["method"]}', links, LINKS)
    yield records_table('\nPayloads', payloads, PAYLOADS)
    residuals = [
        {'submodel': one['name'], 'equations': kind, **row}
        for one in s['submodels']
        for kind, row in one['rows'].items()
        if not isnan(row['signal'])
    ]
    title = '\nResiduals, root mean squares [N, N m]; before: links of the URDF, all else fitted'
    yield records_table(title, residuals, RESIDUALS)
    others = [
        {'unknown': str(extra), 'value': value, 'deviation': deviation, 'unit': unit}
        for extra, (value, deviation, unit) in extra_values(found).items()
    ]
    yield records_table('\nOther unknowns', others)
    yield (
        f'\n{determined} of {possible} combinations of parameters are determined; '
        f'parameters of links {"consistent" if s["consistent"] else "inconsistent"}\n'
    )
