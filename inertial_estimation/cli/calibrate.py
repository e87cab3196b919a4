# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``calibrate``; its methods offset-without-model, matrix and show."""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import calibrate_live, calibrate_log, files
from inertial_estimation.cli.arguments import add_verb, add_ways
from inertial_estimation.cli.calibrate_options import (
    AXES,
    DIRECTIONS,
    KEPT_SLOPES,
    add_method,
    check_files,
    figures_tables,
    finish,
    former,
    robot_name,
)
from inertial_estimation.cli.render import (
    escape,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.errors import CallError

if TYPE_CHECKING:
    from inertial_estimation.calibration.in_situ_offset import InSituOffset
    from inertial_estimation.logs.raw_log import RawLog


def add(commands: Any) -> None:
    """Add the subcommand."""
    ways = add_ways(commands, 'calibrate', 'calibrate FT sensors')
    calibrate_log.add(ways)
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
    data = {'nargs': 5, 'action': 'append', 'metavar': ('LOG', 'KG', 'X', 'Y', 'Z')}
    way = add_method(
        ways, 'offset-without-model', 'offset from raw readings of one body in several poses',
        'poses.npz --ft l_leg_ft --out icub.yaml', _offset, ('log', *shared),
    )  # fmt: skip
    way.usage = '%(prog)s [options] LOG'
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
    calibrate_live.add(ways)
    way = add_verb(ways, 'show', 'print a calibration file', 'icub.yaml', 'calibrate')
    way.add_argument('file', metavar='FILE', help='calibration file')
    way.set_defaults(run=_show)


def _names(text: str) -> tuple[str, ...]:
    """Return names separated by commas."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names")
    return names


def _read(chosen: argparse.Namespace, log: str) -> RawLog:
    """Read a log."""
    from inertial_estimation.logs.raw_log import RawSignals, read_raw_log

    signals = {name: getattr(chosen, name) for name in RawSignals._fields}
    return read_raw_log(log, RawSignals(**signals))


def _offset(chosen: argparse.Namespace) -> None:
    """Identify an offset without a model."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.in_situ_offset import in_situ_offset
    from inertial_estimation.logs.log import LogSlice

    check_files(chosen, (LogSlice.parse(chosen.log).path,))
    before = former(chosen) or SensorCalibration()
    log = _read(chosen, chosen.log)
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
        keeps=KEPT_SLOPES,
    )  # fmt: skip


def _matrix(chosen: argparse.Namespace) -> None:
    """Identify a matrix from added masses."""
    import numpy as np
    from pinocchio.rpy import rpyToMatrix

    from inertial_estimation.calibration.calibration_file import SENSOR
    from inertial_estimation.calibration.in_situ_matrix import AddedMass, in_situ_matrix
    from inertial_estimation.calibration.in_situ_offset import MIN_GAP
    from inertial_estimation.findings import Level
    from inertial_estimation.logs.log import LogSlice

    given, sets, dates = (*chosen.data, *chosen.validate), [], []
    parts = [LogSlice.parse(log) for log, *_ in given]
    for first, second in combinations(parts, 2):
        if first.overlaps(second):
            raise CallError(f"'{first}' and '{second}' of --data or --validate overlap")
    check_files(chosen, [part.path for part in parts])
    before, n = former(chosen), len(chosen.data)
    matrix = None if before is None else before.matrix
    with progress_bars() as progress:
        for k, (path, *values) in enumerate(given):
            progress('reading', k / len(given))
            try:
                mass, *centre = map(float, values)
            except ValueError as error:
                raise CallError(f'data set {path}: {error}') from None
            log = _read(chosen, path)
            dates.append(log.date)
            sets.append(AddedMass(
                log.name, log.raw, log.accelerations, mass, np.array(centre), log.turning
            ))  # fmt: skip
    date = dates[n - 1]
    bias, turned = chosen.accelerometer_offset, before is not None and before.axes != SENSOR
    found = in_situ_matrix(
        sets[:n], rotation=None if chosen.imu_rpy is None else rpyToMatrix(*chosen.imu_rpy),
        former=matrix, bias=bias, direction=DIRECTIONS[chosen.direction or 'child_to_parent'],
    )  # fmt: skip
    findings = tuple(found.findings(chosen.ft, matrix, turned=turned))
    # A wrong matrix makes no channels comparable.
    metric = matrix if any(one.level >= Level.ERROR for one in findings) else found.matrix
    entries = {}
    for k, one in enumerate(sets):
        offset = found.offsets[k] if k < n else one.offset(metric, bias, MIN_GAP)
        added = found.weigh(offset)
        entries[one.name] = {
            'added_mass': one.mass, 'centre': one.centre.tolist(), 'found_mass': added.mass,
            'found_first_moment': added.first_moment,
            'found_centre': added.centre.tolist() if one.mass else None,
            **_entry(offset, found.matrix), 'fitted': k < n,
            'residual_over_noise': found.residuals[k] if k < n else None,
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
             'residual / noise': 'residual_over_noise', 'gap': 'gap', 'samples': 'samples'},
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
        records_table('Provenance', steps, columns),
        *(f'[yellow]warning[/] {escape(text)}' for text in warnings),
    )
