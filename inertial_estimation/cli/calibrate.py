# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``calibrate``; its methods offset-without-model, matrix, live and show."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from itertools import combinations
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import calibrate_log, files
from inertial_estimation.cli import calibrate_options as options
from inertial_estimation.cli.arguments import COMMANDS, add_verb, add_ways
from inertial_estimation.cli.calibrate_options import (
    AXES,
    KEPT_SLOPES,
    add_method,
    check_files,
    figures_tables,
    finish,
    former,
    robot_name,
)
from inertial_estimation.cli.render import escape, progress_bars, records_table, show, write_json
from inertial_estimation.errors import CallError, ConfigError

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.in_situ_matrix import AddedMass
    from inertial_estimation.calibration.in_situ_offset import InSituOffset
    from inertial_estimation.logs.raw_log import RawLog
    from inertial_estimation.ros.calibration_session import SessionNode


def add(commands: Any) -> None:
    """Add the subcommand."""
    ways = add_ways(commands, 'calibrate', COMMANDS['calibrate'])
    calibrate_log.add(ways)
    names = {'type': _names, 'default': ()}
    shared = (
        options.FT, options.CALIBRATION, options.TEMPERATURE, options.BIAS, options.ROBOT_NAME,
        options.OUT,
        ('--readings', 'COLUMNS|TOPIC',
         'of the FT sensor (default: raw, or the only topic)', names),
        ('--accelerometer', 'COLUMNS', 'of a table (default: accelerometer)', names),
        ('--gyroscope', 'COLUMNS',
         'of a table [rad/s] (default: gyroscope, if there is one)', names),
        ('--imu', 'TOPIC', 'of a bag (default: the only one)', {'default': ''}),
        ('--accelerometer-unit', '', None, {'choices': ('m/s^2', 'g'), 'default': 'm/s^2'}),
        ('--time', 'COLUMN', 'of a table [s] (default: %(default)s)', {'default': 'time'}),
    )  # fmt: skip
    of_set = 'LOG', 'KG', 'X', 'Y', 'Z'
    sets = {'nargs': 5, 'action': 'append', 'default': []}
    add_method(
        ways, 'offset-without-model', 'offset from raw readings of one body in several poses',
        'poses.npz --ft l_leg_ft --out icub.yaml', _offset, options.LOG, *shared,
    ).usage = '%(prog)s [options] LOG'  # fmt: skip
    add_method(
        ways, 'matrix', 'matrix from three data sets or more with known masses added',
        '--data none.npz 0 0 0 0 --data far.npz 0.51 0.3 0 0.05 --data side.npz 0.51 0 0.2 0.05 '
        '--ft l_foot_ft --imu-rpy 0 0 0 --out icub.yaml', _matrix,
        ('--data', of_set,
         "log, or LOG@FROM:TO, added mass [kg], its centre about the sensor's origin [m]",
         {**sets, 'required': True}),
        ('--validate', of_set, 'the same, weighed with the result only', sets),
        *shared, (*options.IMU_RPY[:3], {**options.IMU_RPY[3], 'required': True}),
        options.DIRECTION,
    )  # fmt: skip
    add_method(
        ways, 'live', 'offset, or matrix with --load, step by step',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --load 0.51 0.3 0 0.05 '
        '--load 0.51 0 0.2 0.05 --out icub_ft.yaml', _live,
        ('--config', 'YAML', 'parameter file of the node'),
        ('--robot', 'URDF', 'robot description'),
        options.FT, options.CALIBRATION, options.TEMPERATURE, options.IMU_RPY,
        options.DIRECTION, options.ROBOT_NAME, options.OUT,
        ('--imu', 'NAME|TOPIC', "IMU, or 'fixed link' (default: the nearest)", {'default': ''}),
        ('--readings', 'TOPIC', 'of the FT sensor, without --config'),
        ('--load', ('KG', 'X', 'Y', 'Z'),
         "added mass and its centre about the sensor's origin [m]",
         {'nargs': 4, 'type': float, 'action': 'append', 'default': []}),
        ('--estimator', 'NAME', "node to hand it to, '' for none",
         {'default': 'wrench_estimator'}),
        ('--namespace', 'NS', 'of the session', {'default': ''}),
    )  # fmt: skip
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

    return read_raw_log(log, RawSignals(*[getattr(chosen, key) for key in RawSignals._fields]))


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
    _finish_offset(chosen, found, before, log.date, {'log': log.name}, keeps=KEPT_SLOPES)


def _matrix(chosen: argparse.Namespace) -> None:
    """Identify a matrix from added masses."""
    import numpy as np
    from pinocchio.rpy import rpyToMatrix

    from inertial_estimation.calibration.in_situ_matrix import AddedMass
    from inertial_estimation.logs.log import LogSlice

    given, sets, dates = (*chosen.data, *chosen.validate), [], []
    parts = [LogSlice.parse(log) for log, *_ in given]
    for first, second in combinations(parts, 2):
        if first.overlaps(second):
            raise CallError(f"'{first}' and '{second}' of --data or --validate overlap")
    check_files(chosen, [part.path for part in parts])
    before, n = former(chosen), len(chosen.data)
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
    _finish_matrix(
        chosen, sets[:n], before, dates[n - 1], {}, others=sets[n:],
        bias=chosen.accelerometer_offset,
        rotation=rpyToMatrix(*chosen.imu_rpy),
        direction=options.DIRECTIONS[chosen.direction or 'child_to_parent'],
    )  # fmt: skip


def _finish_offset(
    chosen: argparse.Namespace,
    found: InSituOffset,
    before: SensorCalibration,
    date: str,
    more: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    keeps: Sequence[str] = (),
) -> None:
    """Print and write an offset; more: figures."""
    figures = {'sensor': chosen.ft, 'date': date, **more, **_figures(found, before.matrix)}
    calibration = found.calibration(before, date, chosen.temperature, notes)
    finish(
        chosen, robot_name(chosen), {chosen.ft: calibration},
        tuple(found.findings(before.matrix, chosen.ft)), figures,
        figures_tables(chosen.ft, figures), keeps=keeps,
    )  # fmt: skip


def _finish_matrix(
    chosen: argparse.Namespace,
    sets: Sequence[AddedMass],
    before: SensorCalibration | None,
    date: str,
    more: Mapping[str, Any],
    *,
    others: Sequence[AddedMass] = (),
    bias: Any = None,
    rotation: Any = None,
    direction: int = 1,
    notes: Sequence[str] = (),
) -> None:
    """Identify, print and write a matrix; more: figures; others: data sets weighed with it."""
    from inertial_estimation.calibration.in_situ_matrix import in_situ_matrix
    from inertial_estimation.findings import Level

    matrix = None if before is None else before.matrix
    found = in_situ_matrix(sets, rotation=rotation, former=matrix, bias=bias, direction=direction)
    findings = tuple(found.findings(chosen.ft, matrix))
    # A wrong matrix makes no channels comparable.
    metric = matrix if any(one.level >= Level.ERROR for one in findings) else found.matrix
    offsets = [*found.offsets, *(one.offset(metric, bias) for one in others)]
    residuals = [*found.residuals, *[None] * len(others)]
    entries = {}
    for one, offset, residual in zip([*sets, *others], offsets, residuals, strict=True):
        added = found.weigh(offset)
        entries[one.name] = {
            'added_mass': one.mass, 'centre': one.centre.tolist(), 'found_mass': added.mass,
            'found_first_moment': added.first_moment,
            'found_centre': added.centre.tolist() if one.mass else None,
            **_figures(offset, found.matrix), 'fitted': residual is not None,
            'residual_over_noise': residual,
        }  # fmt: skip
    figures = {
        'sensor': chosen.ft, 'date': date, **more, 'matrix': found.matrix,
        'deviations': found.deviations,
        'change': nan if matrix is None else found.change(matrix),
        'rank': len(found.singular_values),
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
    texts = [*notes, *(one.text for one in findings)]
    calibration = found.calibration(date, chosen.temperature, texts)
    finish(chosen, robot_name(chosen), {chosen.ft: calibration}, findings, figures, tables)


def _figures(found: InSituOffset, matrix: Any) -> dict[str, Any]:
    """Return the figures of an offset; matrix (6, 6)."""
    offset, deviations = found.in_wrench(matrix)
    drift, of_drift = found.drift(matrix)
    return {
        'raw_offset': found.offset, 'offset': offset, 'deviations': deviations, 'drift': drift,
        'drift_deviations': of_drift, 'singular_values': found.singular_values, 'gap': found.gap,
        'gravity_spreads': found.gravity_spreads, 'gravity': found.gravity,
        'accelerometer_bias': found.bias, 'unexplained': found.unexplained,
        'samples': found.slopes.n_samples, 'left_out': found.left_out,
    }  # fmt: skip


def _live(chosen: argparse.Namespace) -> None:
    """Run a session, and hand its result to the estimator."""
    of_topics = {'--readings': chosen.readings, '--imu-rpy': chosen.imu_rpy,
                 '--direction': chosen.direction}  # fmt: skip
    wrong = of_topics if chosen.config else {'--robot': chosen.robot}
    if given := [name for name, value in wrong.items() if value]:
        raise CallError(f'{given[0]} {"excludes" if chosen.config else "needs"} --config')
    if not chosen.config and not (chosen.readings and chosen.imu):
        raise CallError('name --config, or both --readings and --imu')
    if any(one[0] < 0.0 or not all(map(isfinite, one)) for one in chosen.load):
        raise CallError('--load is a mass, 0 kg or more, and its centre [m]')
    check_files(chosen, (chosen.config, chosen.robot))
    if find_spec('rclpy') is None:
        raise ConfigError('a live session needs ROS')
    from inertial_estimation.calibration.calibration_file import SensorCalibration, others_in
    from inertial_estimation.ros.calibration_session import collect, hand_over, session_node

    with session_node(chosen.namespace) as node:
        feed, session = set_up(chosen, node)
        if chosen.out is not None:
            others_in(chosen.out, chosen.robot_name)
        collect(node, feed, session)
        if not isfinite(chosen.temperature):
            chosen.temperature = feed.temperature
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        readings = {one.name: one.counts() for one in session.collections}
        more = {'gravity_from': feed.gravity, 'readings': readings}
        notes = [f'live, gravity from {feed.gravity}']
        if chosen.load:
            _finish_matrix(
                chosen, session.data_sets, session.before, date, more,
                rotation=session.rotation, direction=session.direction, notes=notes,
            )  # fmt: skip
        else:
            before = session.before or SensorCalibration()
            _finish_offset(chosen, session.collection.offset, before, date, more, notes=notes)
        if chosen.out is not None and chosen.estimator:
            show(escape(hand_over(node, chosen.estimator, chosen.out)[1]))


def set_up(chosen: argparse.Namespace, node: SessionNode) -> tuple[Any, Any]:
    """Return feed and session; complete the file to write and its robot."""
    import numpy as np
    from pinocchio.rpy import rpyToMatrix

    from inertial_estimation.calibration.calibration_file import SensorCalibration, read
    from inertial_estimation.calibration.configured_estimator import (
        calibration_path,
        sensor_calibrations,
    )
    from inertial_estimation.calibration.session import Session
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.ros.calibration_session import RobotFeed, TopicFeed, find_description

    before = former(chosen)
    feed: Any
    rotation: Any
    if chosen.config:
        settings = EstimatorSettings.from_yaml(chosen.config)
        urdf = find_description(node, settings, chosen.robot)
        feed = RobotFeed(node, settings, urdf, chosen.ft, chosen.imu)
        direction, rotation = feed.body.sensor.direction, np.eye(3)
        if before is None:
            before = sensor_calibrations(settings, feed.robot, new_file=True)[chosen.ft]
            # Without a calibration it may read counts.
            before = None if before.same_as(SensorCalibration()) else before
        chosen.robot_name = chosen.robot_name or feed.robot.name
        chosen.out = chosen.out or calibration_path(settings)
    else:
        feed = TopicFeed(node, chosen.readings, chosen.imu)
        direction = options.DIRECTIONS[chosen.direction or 'child_to_parent']
        rotation = None if chosen.imu_rpy is None else rpyToMatrix(*chosen.imu_rpy)
        if before is None and chosen.out is not None and chosen.out.exists():
            before = read(chosen.out)[1].get(chosen.ft)
        chosen.robot_name = robot_name(chosen)
    return feed, Session(chosen.load, before=before, rotation=rotation, direction=direction)


def _show(chosen: argparse.Namespace) -> None:
    """Print a calibration file."""
    import numpy as np

    from inertial_estimation.calibration.calibration_file import as_entry, read

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
    columns = {key: key for key in ('sensor', 'method', 'date', 'samples', 'notes')}
    show(
        escape(f"FT calibration of robot '{robot}'"),
        *tables,
        records_table('Provenance', steps, columns),
        *(f'[yellow]warning[/] {escape(text)}' for text in warnings),
    )
