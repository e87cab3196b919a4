# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Options, checks and output that the methods of ``calibrate`` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_options, add_verb
from inertial_estimation.cli.render import findings_lines, show, table, write_json
from inertial_estimation.errors import CalibrationError, ConfigError, NameNotFound

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.findings import Finding

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
DIRECTIONS = {'child_to_parent': 1, 'parent_to_child': -1}
SOME_ROBOT = 'robot'
"""Name in a file for which no robot is named."""
KEPT_SLOPES = ('matrix', 'temperature_coefficients')
"""Entries of a file that an offset is not written beside, if they are others."""
NAMES = {
    'supports': '--support', 'support': '--support', 'sensors': '--ft', 'ft': '--ft',
    'accept_split': '--accept-split', 'weight': '--prior-weight', 'test': '--validate',
    'imu': '--imu', 'topics': '--temperature-topic', 'inertia': '--inertia',
    'max_delay': '--most-delay', 'bias': '--accelerometer-offset', 'temperature': '--temperature',
    'rotation': '--imu-rpy', 'unit': '--accelerometer-unit', 'readings': '--readings',
    'matrix': '--calibration', 'sensor': '--ft', 'loads': '--load',
}  # fmt: skip
"""Options for arguments of the library."""
JSON_ONLY = (
    'raw_offset', 'singular_values', 'singular_values_over_noise', 'directions',
    'spreads', 'shares', 'gains', 'sensor', 'date', 'log',
)  # fmt: skip
"""Figures that are not printed."""
Option = tuple[Any, ...]
"""Name, metavar and help, and further arguments of argparse."""
LOG: Option = ('log', 'LOG', 'bag or table; a part of one as LOG@FROM:TO [s]')
FT: Option = ('--ft', 'SENSOR', 'FT sensor', {'required': True})
CALIBRATION: Option = (
    '--calibration', 'FILE', 'former calibration (default: of --config)'
)  # fmt: skip
TEMPERATURE: Option = (
    '--temperature', 'T', 'of the sensor [degrees Celsius]', {'type': float, 'default': nan}
)  # fmt: skip
IMU_RPY: Option = (
    '--imu-rpy', ('R', 'P', 'Y'), "rotation of the IMU in the sensor's frame, as in a URDF [rad]",
    {'nargs': 3, 'type': float},
)  # fmt: skip
DIRECTION: Option = (
    '--direction', 'DIRECTION', 'of readings: child_to_parent (default) or parent_to_child',
    {'choices': tuple(DIRECTIONS)},
)  # fmt: skip
BIAS: Option = (
    '--accelerometer-offset', ('X', 'Y', 'Z'), 'subtracted from accelerations [m/s^2]',
    {'nargs': 3, 'type': float},
)  # fmt: skip
ROBOT_NAME: Option = ('--robot-name', 'NAME', 'in the file that is written', {'default': ''})
OUT: Option = (
    '--out', 'FILE', 'calibration file to write; its other sensors stay', {'type': Path}
)  # fmt: skip


def add_method(
    ways: Any, name: str, job: str, example: str, run: Callable[..., Any], *options: Option
) -> argparse.ArgumentParser:
    """Add a method."""
    way = add_verb(ways, name, job, example, 'calibrate')
    add_options(way, *options)
    way.set_defaults(run=run, names=NAMES)
    return way


def check_files(chosen: argparse.Namespace, inputs: Sequence[str | Path | None]) -> None:
    """Refuse outputs that cannot be written, before anything is read."""
    # The former calibration may be in the file that is written.
    files.check_outputs((chosen.json,), (chosen.calibration, *inputs))
    files.check_outputs((chosen.out, chosen.json), inputs)
    if chosen.calibration is not None and not Path(chosen.calibration).exists():
        raise ConfigError(f"'{chosen.calibration}' of --calibration does not exist")


def former(chosen: argparse.Namespace) -> SensorCalibration | None:
    """Return the calibration of --ft in the file of --calibration."""
    from inertial_estimation.calibration.calibration_file import read

    if chosen.calibration is None:
        return None
    _, sensors = read(chosen.calibration)
    if chosen.ft not in sensors:
        where = f"--ft names '{chosen.ft}' and --calibration '{chosen.calibration}'"
        raise NameNotFound('FT sensor', chosen.ft, sensors, where)
    return sensors[chosen.ft]


def robot_name(chosen: argparse.Namespace) -> str:
    """Return the name of the robot in the file that is written."""
    from inertial_estimation.calibration.calibration_file import read

    robot: str = chosen.robot_name
    for path in (chosen.calibration, chosen.out):
        if not robot and path is not None and Path(path).exists():
            robot, _ = read(path)
    return robot or SOME_ROBOT


def finish(
    chosen: argparse.Namespace,
    robot: str,
    found: Mapping[str, SensorCalibration],
    findings: Sequence[Finding],
    figures: Mapping[str, Any],
    tables: Iterable[Any],
    *,
    insists: bool = False,
    keeps: Sequence[str] = (),
) -> None:
    """Print and write results; refuse to write a calibration with errors."""
    from inertial_estimation.calibration.calibration_file import write
    from inertial_estimation.findings import Level

    write_json(chosen.json, {**figures, 'findings': list(findings)})
    show(*tables, *findings_lines(findings))
    errors = [str(one) for one in findings if one.level >= Level.ERROR]
    if errors and not insists:
        target = 'cannot be used' if chosen.out is None else f"not written to '{chosen.out}'"
        more = f'; {len(errors) - 1} more errors' if errors[1:] else ''
        raise CalibrationError(f'calibration {target}: {errors[0]}{more}')
    if chosen.out is not None:
        write(chosen.out, robot, found, keeps=keeps)


def figures_tables(title: str, figures: Mapping[str, Any]) -> list[Any]:
    """Return tables of the figures of a result: single values, wrenches, and matrices by rows."""
    import numpy as np

    values: list[tuple[Any, ...]] = []
    wrenches: list[tuple[Any, ...]] = []
    for key, value in figures.items():
        shape = np.shape(value)
        if key in JSON_ONLY or isinstance(value, Mapping):
            continue
        if shape == (6, 6) and 'deviations' not in key:
            wrenches += [(f'{key} {axis}', *map(float, row)) for axis, row in zip(AXES, value)]
        elif shape == (6,):
            wrenches.append((key, *map(float, value)))
        elif len(shape) < 2:
            values.append((key, value.tolist() if hasattr(value, 'tolist') else value))
    found = [table(title, ('', 'value'), values)] if values else []
    return [*found, table(f'{title} [N, Nm]', ('', *AXES), wrenches)] if wrenches else found
