# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration from raw readings and an accelerometer: offset-without-model, matrix."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli.calibrate_options import (
    DIRECTIONS,
    add_method,
    check_files,
    figures_tables,
    finish,
    former,
    robot_name,
)
from inertial_estimation.cli.render import progress_bars, records_table
from inertial_estimation.errors import CallError

if TYPE_CHECKING:
    from inertial_estimation.calibration.in_situ_matrix import AddedMass
    from inertial_estimation.calibration.in_situ_offset import InSituOffset
    from inertial_estimation.logs.raw_log import RawSignals

FIELDS = ('LOG', 'KG', 'X', 'Y', 'Z')
"""Of a data set: added mass [kg], and its centre about the sensor's origin [m]."""


def add(ways: Any) -> None:
    """Add the methods."""
    columns = {'type': _names, 'metavar': 'COLUMNS', 'default': ()}
    shared = (
        '--ft', '--calibration', '--temperature', '--accelerometer-offset', '--robot-name',
        '--out',
        ('--readings', {**columns, 'metavar': 'COLUMNS|TOPIC',
                        'help': 'of the FT sensor (default: raw, or the only topic)'}),
        ('--accelerometer', {**columns, 'help': 'of a table (default: accelerometer)'}),
        ('--gyroscope', {**columns, 'help':
         'of a table [rad/s] (default: gyroscope, if there is one)'}),
        ('--imu', {'metavar': 'TOPIC', 'default': '', 'help': 'of a bag (default: the only one)'}),
        ('--accelerometer-unit', {'choices': ('m/s^2', 'g'), 'default': 'm/s^2'}),
        ('--time', {'metavar': 'COLUMN', 'default': 'time',
                    'help': 'of a table [s] (default: %(default)s)'}),
    )  # fmt: skip
    data = {'nargs': 5, 'action': 'append', 'metavar': FIELDS}
    add_method(
        ways, 'offset-without-model', 'offset from raw readings of one body in several poses',
        'poses.npz --ft l_leg_ft --out icub.yaml', _offset, ('log', *shared),
    )  # fmt: skip
    add_method(
        ways, 'matrix', 'matrix from three data sets or more with known masses added',
        '--data none.npz 0 0 0 0 --data far.npz 0.51 0.3 0 0.05 --data side.npz 0.51 0 0.2 0.05 '
        '--ft l_foot_ft --imu-rpy 0 0 0 --out icub.yaml', _matrix, (
            ('--data', {**data, 'required': True, 'help':
             "log, or LOG@FROM:TO, added mass [kg], its centre about the sensor's origin [m]"}),
            ('--validate', {**data, 'default': [],
                            'help': 'the same, weighed with the result only'}),
            *shared, '--imu-rpy', '--direction',
        ),
    )  # fmt: skip


def _offset(chosen: argparse.Namespace) -> None:
    """Identify an offset without a model."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.in_situ_offset import in_situ_offset
    from inertial_estimation.logs.log import LogSlice
    from inertial_estimation.logs.raw_log import read_raw_log

    check_files(chosen, (LogSlice.parse(chosen.log).path,))
    before = former(chosen) or SensorCalibration()
    log = read_raw_log(chosen.log, _signals(chosen))
    found = in_situ_offset(
        log.raw, log.accelerations, turning=log.turning, matrix=before.matrix,
        bias=chosen.accelerometer_offset, what=log.name,
    )  # fmt: skip
    entry = _entry(found, before.matrix)
    finish(
        chosen, robot_name(chosen),
        {chosen.ft: found.calibration(before, log.date, chosen.temperature)},
        tuple(found.findings(before.matrix, chosen.ft)),
        {'sensor': chosen.ft, 'log': log.name, 'date': log.date, **entry},
        figures_tables(chosen.ft, entry),
        keeps_slopes=True,
    )  # fmt: skip


def _matrix(chosen: argparse.Namespace) -> None:
    """Identify a matrix from added masses."""
    from pinocchio.rpy import rpyToMatrix

    from inertial_estimation.calibration.calibration_file import SENSOR
    from inertial_estimation.calibration.in_situ_matrix import in_situ_matrix
    from inertial_estimation.calibration.in_situ_offset import in_situ_offset
    from inertial_estimation.findings import Level
    from inertial_estimation.logs.log import LogSlice

    parts = [LogSlice.parse(log) for log, *_ in (*chosen.data, *chosen.validate)]
    for first, second in combinations(parts, 2):
        if first.overlaps(second):
            raise CallError(f"'{first}' and '{second}' of --data or --validate overlap")
    check_files(chosen, [part.path for part in parts])
    former_one = former(chosen)
    matrix = None if former_one is None else former_one.matrix
    sets, date = _read(chosen, chosen.data)
    others, _ = _read(chosen, chosen.validate)
    found = in_situ_matrix(
        sets, rotation=None if chosen.imu_rpy is None else rpyToMatrix(*chosen.imu_rpy),
        former=matrix, bias=chosen.accelerometer_offset,
        direction=DIRECTIONS[chosen.direction or 'child_to_parent'],
    )  # fmt: skip
    turned = former_one is not None and former_one.axes != SENSOR
    findings = tuple(found.findings(chosen.ft, matrix, turned=turned))
    # A wrong matrix makes no channels comparable.
    metric = matrix if any(one.level >= Level.ERROR for one in findings) else found.matrix
    weighed = [
        in_situ_offset(
            one.raw, one.accelerations, turning=one.turning, matrix=metric,
            bias=chosen.accelerometer_offset, what=f"data set '{one.name}'",
        )
        for one in others
    ]  # fmt: skip
    entries = {}
    for k, (one, offset) in enumerate(zip((*sets, *others), (*found.offsets, *weighed))):
        added = found.weigh(offset).less(found.body)
        before = None if matrix is None else found.weigh(offset, matrix).less(found.body).mass
        entries[one.name] = {
            'added_mass': one.mass, 'centre': one.centre.tolist(), 'found_mass': added.mass,
            'found_first_moment': added.first_moment, 'former_mass': before,
            'found_centre': added.centre.tolist() if one.mass else None,
            **_entry(offset, found.matrix), 'fitted': k < len(sets),
            'residual_over_noise': found.residuals[k] if k < len(sets) else None,
        }  # fmt: skip
    figures = {
        'sensor': chosen.ft, 'date': date, 'matrix': found.matrix, 'deviations': found.deviations,
        'axes': 'sensor' if found.in_sensor_axes else 'accelerometer',
        'change': found.change(matrix, turned=turned), 'rank': len(found.singular_values),
        'singular_values_over_noise': found.singular_values, 'body_mass': found.body.mass,
        'body_first_moment': found.body.first_moment, 'body_deviations': found.body_deviations,
        'share_left': found.share_left, 'data_sets': entries,
    }  # fmt: skip
    tables = [
        *figures_tables(chosen.ft, figures),
        records_table(
            'Data sets', [{'name': Path(name).name, **entry} for name, entry in entries.items()],
            {'data set': 'name', 'added [kg]': 'added_mass', 'found [kg]': 'found_mass',
             'former [kg]': 'former_mass', 'residual / noise': 'residual_over_noise',
             'gap': 'gap', 'samples': 'samples'},
        ),
    ]  # fmt: skip
    calibration = found.calibration(date, chosen.temperature, [one.text for one in findings])
    finish(chosen, robot_name(chosen), {chosen.ft: calibration}, findings, figures, tables)


def _entry(found: InSituOffset, matrix: Any) -> dict[str, Any]:
    """Return the figures of an offset; matrix (6, 6)."""
    offset, deviations = found.in_wrench(matrix)
    drift, of_drift = found.drift(matrix)
    return {
        'raw_offset': found.offset, 'raw_deviations': found.deviations, 'offset': offset,
        'deviations': deviations, 'drift': drift, 'drift_deviations': of_drift,
        'singular_values': found.subspace.singular_values, 'gap': found.subspace.gap,
        'gravity_spreads': found.orientations.spreads, 'gravity': found.gravity,
        'accelerometer_bias': found.bias.bias, 'unexplained': found.unexplained,
        'samples': found.slopes.n_samples, 'left_out': found.left_out,
    }  # fmt: skip


def _read(
    chosen: argparse.Namespace, given: Sequence[Sequence[str]]
) -> tuple[list[AddedMass], str]:
    """Return data sets, and the date of the last one."""
    import numpy as np

    from inertial_estimation.calibration.in_situ_matrix import AddedMass
    from inertial_estimation.logs.raw_log import read_raw_log

    sets, date = [], ''
    with progress_bars() as progress:
        for k, (path, *values) in enumerate(given):
            progress('reading', k / len(given))
            try:
                mass, *centre = map(float, values)
            except ValueError as error:
                raise CallError(f'data set {path}: {error}') from None
            log = read_raw_log(path, _signals(chosen))
            sets.append(AddedMass(
                log.name, log.raw, log.accelerations, mass, np.array(centre), log.turning
            ))  # fmt: skip
            date = log.date
    return sets, date


def _signals(chosen: argparse.Namespace) -> RawSignals:
    """Return the columns or topics."""
    from inertial_estimation.logs.raw_log import RawSignals

    return RawSignals(
        chosen.readings, chosen.accelerometer, chosen.gyroscope, chosen.time,
        chosen.accelerometer_unit, chosen.imu,
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    """Return names separated by commas."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names")
    return names
