# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``calibrate``: its methods and their options."""

from __future__ import annotations

import argparse

from inertial_estimation.calibration.calibration_file import as_entry, read, require_usable
from inertial_estimation.cli.calibrate_output import figures_table
from inertial_estimation.cli.render import escape, records_table, show, write_json
from inertial_estimation.errors import ConfigError


def show_file(chosen: argparse.Namespace) -> None:
    """Print a calibration file."""
    robot, sensors = read(chosen.file)
    entries = {name: as_entry(sensor) for name, sensor in sensors.items()}
    write_json(chosen.json, {'robot': robot, 'sensors': entries})
    tables, steps, warnings = [], [], []
    for name, one in sensors.items():
        of_steps = entries[name].pop('provenance')
        tables.append(figures_table(name, entries[name]))
        steps += [{'sensor': name, 'samples': '', 'notes': ()} | step for step in of_steps]
        try:
            require_usable(name, one)
        except ConfigError as error:
            warnings.append(str(error))
    columns = ('sensor', 'method', 'date', 'samples', 'notes')
    show(
        escape(f"FT calibration of robot '{robot}'"),
        *tables,
        records_table('Provenance', steps, columns),
        *(f'[yellow]warning[/] {escape(text)}' for text in warnings),
    )
