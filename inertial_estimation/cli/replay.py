# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``replay``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import hypot, inf
from pathlib import Path
from typing import Any

from inertial_estimation.cli.files import load_urdf
from inertial_estimation.cli.render import (
    Columns,
    all_tables,
    escape,
    findings_lines,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, LogError
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.offsets import OffsetRequest
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import replay
from inertial_estimation.logs.results import Replay
from inertial_estimation.logs.table_formats import Layout
from inertial_estimation.model.configured_robot import build_robot

Record = dict[str, Any]

WRONG_OFFSETS = {'weight', 'offset_drift'}
"""Findings that FT offsets of another log cause."""
REMEDY = '--offsets-from model --offset-range FROM TO; on two feet calibrate offsets'
CONTACTS: Columns = {
    'contact': lambda one: one.get('contact') or f'none: {one["submodel"]}',
    'samples': 'n_samples',
    'force, mean [N]': lambda one: f'{hypot(*one["mean"][:3]):.2f}',
    'rms [N]': lambda one: f'{hypot(*one["rms"][:3]):.2f}',
    'noise [N]': lambda one: f'{hypot(*one["standard_deviation"][:3]):.2f}',
    'moment [Nm]': lambda one: f'{hypot(*one["mean"][3:]):.3f}',
}


def run(chosen: argparse.Namespace) -> None:
    """Run the estimator over a bag."""
    if chosen.offsets_from == 'settings' and (chosen.support or chosen.offset_range[0] > -inf):
        raise CallError('--support and --offset-range need --offsets-from model or torques')
    if chosen.out is not None and Path(chosen.out).exists():
        raise LogError(f"'{chosen.out}' exists already")
    urdf = load_urdf(chosen.robot)
    settings = EstimatorSettings.from_yaml(chosen.config)
    layout = Layout.from_yaml(chosen.layout) if chosen.layout else None
    with progress_bars() as progress:
        robot = build_robot(settings, urdf)
        log: Any = chosen.bag
        if layout is not None:
            log = open_log(log, robot, settings, layout=layout, progress=progress)
        found = replay(
            robot,
            log,
            settings,
            time_range=TimeRange(*chosen.range),
            offsets=OffsetRequest(
                chosen.offsets_from, TimeRange(*chosen.offset_range), chosen.support
            ),
            out=chosen.out,
            whole=False,
            progress=progress,
        )
    write_json(chosen.json, {**found.summary, 'findings': list(found.findings)})
    show(*_summary(found))
    if chosen.full:
        show(*all_tables(found.summary))


def _summary(found: Replay) -> Iterator[Any]:
    """Yield one screen: findings, a line for each sensor and contact, and what to do next."""
    s, findings = found.summary, found.findings
    start, stop = s['time_range_s']
    source = s['offset_source'] + (f' ({s["offset_support"]})' if s['offset_support'] else '')
    request = found.offsets.request
    is_own = request.source != 'settings' and bool(request.time_range.mask(found.times).all())
    yield escape(
        f'{s["robot"]}: {s["n_samples"]} samples, {start:.2f} s to {stop:.2f} s, '
        f'{s["judged_s"]:.1f} s judged, offsets from {source}{" and the same samples" * is_own}'
    )
    yield from findings_lines(findings) or ['[green]no findings[/]']
    for records, columns in (
        ([*s['fts'], *s['imus']], ('name', 'rate_hz', 'frozen_s')),
        ([*s['wrenches'], *s['residuals']], CONTACTS),
    ):
        if records:
            yield ''
            yield records_table('', records, columns)
    if is_own:
        yield 'Next: --offset-range FROM TO leaves samples to judge the offsets by'
    if s['offset_source'] == 'settings' and WRONG_OFFSETS & {one.code for one in findings}:
        yield f'Next: {REMEDY}'
