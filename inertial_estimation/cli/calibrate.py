# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Former calibrations and results of the methods of ``calibrate``, and the method ``show``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    as_entry,
    read,
    require_usable,
    write,
)
from inertial_estimation.cli.render import (
    escape,
    findings_lines,
    plain,
    records_table,
    show,
    table,
    write_json,
)
from inertial_estimation.errors import CalibrationError, ConfigError, NameNotFound
from inertial_estimation.findings import Finding, Level
from inertial_estimation.model.sensors import AXES

WRENCH, MATRIX = 'N, Nm', 'N, Nm/raw'
UNITS = {
    name: unit
    for unit, names in {
        WRENCH: 'offset offset_deviations deviations spread drift drift_deviations rms rms_before '
        'rms_held_out rms_offset_only rms_without_delay test_rms test_rms_before deviation',
        MATRIX: 'matrix matrix_deviations', 'N': 'spreads', 'N^2': 'weight',
        'm/s^2': 'accelerometer_bias', 'N/K, Nm/K': 'coefficients temperature_coefficients',
        'degC': 'reference range reference_temperature', 'm': 'centre centre_deviations',
        'kg': 'mass mass_deviation body_mass', 'kg m': 'body_first_moment', 'rad': 'misalignment',
        'kg, kg m': 'body_deviations', 'kg m^2': 'inertia inertia_deviations',
        's': 'delay delay_deviation',
    }.items()
    for name in names.split()
}  # fmt: skip
"""Of figures that have one."""
SOME_ROBOT = 'robot'
"""Name in a file for which no robot is named."""
KEPT_SLOPES = ('matrix', 'temperature_coefficients')
"""Entries of a file that an offset is not written beside, if they are others."""


def former(chosen: argparse.Namespace) -> SensorCalibration | None:
    """Return the calibration of --ft in the file of --calibration."""
    if chosen.calibration is None:
        return None
    _, sensors = read(chosen.calibration)
    if chosen.ft not in sensors:
        where = f"--ft names '{chosen.ft}' and --calibration '{chosen.calibration}'"
        raise NameNotFound('FT sensor', chosen.ft, sensors, where)
    return sensors[chosen.ft]


def robot_name(chosen: argparse.Namespace) -> str:
    """Return the name of the robot in the file that is written."""
    robot: str = chosen.robot_name
    for path in (chosen.calibration, chosen.out):
        if not robot and path is not None and Path(path).exists():
            robot, _ = read(path)
    return robot or SOME_ROBOT


class Result(NamedTuple):
    """Calibration of a sensor, and the figures that it comes with."""

    calibration: SensorCalibration
    figures: Mapping[str, Any]


def finish(
    chosen: argparse.Namespace,
    robot: str,
    results: Mapping[str, Result],
    findings: Sequence[Finding],
    *,
    others: Mapping[str, Any] | None = None,
    tables: Iterable[Any] = (),
    keeps: Sequence[str] = (),
    **units: str,
) -> None:
    """
    Print results, and write them unless there is an error that --accept does not accept.

    others: figures that are of no sensor; units: of figures, see `figures_table`.
    """
    figures = {name: one.figures for name, one in results.items()}
    write_json(chosen.json, {**(others or {}), 'sensors': figures, 'findings': list(findings)})
    shown = [figures_table(name, one, **units) for name, one in figures.items()]
    show(*shown, *tables, *findings_lines(findings))
    errors = [str(one) for one in findings if one.level >= Level.ERROR]
    if errors and not chosen.accept:
        what = f"not written to '{chosen.out}'" if chosen.out else 'not usable'
        wrong = {one.subject for one in findings if one.level >= Level.ERROR}
        if wrong < results.keys():
            errors.append('without them: --ft ' + ' '.join(n for n in results if n not in wrong))
        raise CalibrationError(f'{what}: {"; ".join(errors)}')
    if chosen.out is not None:
        notes = [f'accepted: {error}' for error in errors]
        found = {name: one.calibration.noted(notes) for name, one in results.items()}
        write(chosen.out, robot, found, keeps=keeps)


def figures_table(title: str, figures: Mapping[str, Any], **units: str) -> Any:
    """Return a table of the figures of a result; matrices by rows; units: besides `UNITS`."""
    rows: list[tuple[str, str, Any]] = []
    for key, value in plain(figures).items():
        unit = (UNITS | units).get(key, '')
        if isinstance(value, list) and value and isinstance(value[0], list):
            for axis, row in zip(AXES, value, strict=False):
                of_axis = unit.replace(WRENCH, 'N' if axis[0] == 'f' else 'Nm')
                rows.append((f'{key} {axis}', of_axis, row))
        elif not isinstance(value, dict):
            rows.append((key, unit, value))
    return table(title, ('', 'unit', 'value'), rows)


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
