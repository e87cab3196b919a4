# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate show``: what a calibration file says."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, show, table


def add(ways: Any) -> None:
    """Add the way that shows what was saved."""
    way = add_verb(ways, 'show', 'what a calibration file says', 'icub.yaml', 'calibrate')
    way.add_argument('file', metavar='FILE', help='calibration file, as the other ways write it')
    way.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    """Show a calibration file."""
    from inertial_estimation.calibration.calibration_file import as_entry, read
    from inertial_estimation.calibration.tables import sensor_tables, sensor_warnings

    files.check_outputs((chosen.json,), (chosen.file,))
    robot, sensors = read(chosen.file)
    tables, warnings = sensor_tables(sensors), sensor_warnings(sensors)
    files.write_json(
        chosen.json,
        {'robot': robot, 'sensors': {name: as_entry(sensor) for name, sensor in sensors.items()},
         'warnings': list(warnings)},
    )  # fmt: skip
    show(
        escape(f"FT calibration of robot '{robot}'"),
        *(table(*found) for found in tables),
        *(f'[yellow]warning:[/] {escape(text)}' for text in warnings),
    )
