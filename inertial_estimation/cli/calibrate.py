# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``calibrate``."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.cli import calibrate_live, calibrate_log, calibrate_raw, files
from inertial_estimation.cli.arguments import add_verb, add_ways
from inertial_estimation.cli.calibrate_options import AXES, figures_tables
from inertial_estimation.cli.render import escape, records_table, show, write_json


def add(commands: Any) -> None:
    """Add the subcommand."""
    ways = add_ways(commands, 'calibrate', 'calibrate FT sensors')
    for module in (calibrate_log, calibrate_raw, calibrate_live):
        module.add(ways)
    way = add_verb(ways, 'show', 'print a calibration file', 'icub.yaml', 'calibrate')
    way.add_argument('file', metavar='FILE', help='calibration file')
    way.set_defaults(run=_show)


def _show(chosen: argparse.Namespace) -> None:
    """Print a calibration file."""
    import numpy as np

    from inertial_estimation.calibration.calibration_file import SENSOR, as_entry, read

    files.check_outputs((chosen.json,), (chosen.file,))
    robot, sensors = read(chosen.file)
    entries = {name: as_entry(sensor) for name, sensor in sensors.items()}
    write_json(chosen.json, {'robot': robot, 'sensors': entries})
    tables, steps, warnings = [], [], []
    for name, one in sensors.items():
        tables += figures_tables(name, entries[name])
        steps += [{'sensor': name, 'samples': '', 'notes': ()} | step
                  for step in entries[name]['provenance']]  # fmt: skip
        # Rows are scaled to one length, as units and gains differ.
        lengths = np.linalg.norm(one.matrix, axis=1)
        scaled = one.matrix / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        if (rank := int(np.linalg.matrix_rank(scaled))) < len(AXES):
            warnings.append(f'{name}: the matrix has rank {rank} of {len(AXES)}')
        if one.axes != SENSOR:
            warnings.append(f'{name}: wrenches are in the axes of an {one.axes}; nodes refuse it')
    columns = {key: key for key in ('sensor', 'method', 'date', 'samples', 'notes')}
    show(
        escape(f"FT calibration of robot '{robot}'"),
        *tables,
        *([records_table('Provenance', steps, columns)] if steps else []),
        *(f'[yellow]warning[/] {escape(text)}' for text in warnings),
    )
