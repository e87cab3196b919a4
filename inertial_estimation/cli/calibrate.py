# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``calibrate``: its methods and their options."""

from __future__ import annotations

import argparse
from math import nan

import numpy as np

from inertial_estimation.calibration.calibration_file import as_entry, read
from inertial_estimation.cli import calibrate_body, calibrate_log
from inertial_estimation.cli.arguments import (
    CONFIG,
    FLAG,
    NAMES,
    NEEDED,
    NUMBER,
    OUTPUT,
    ROBOT,
    Command,
    Option,
)
from inertial_estimation.cli.calibrate_output import AXES, figures_table
from inertial_estimation.cli.render import escape, records_table, show, write_json

LOG: Option = ('log', 'LOG', 'bag or table; a part of one as LOG@FROM:TO [s]')
FT: Option = ('--ft', 'SENSOR', 'FT sensor', NEEDED)
CALIBRATION: Option = ('--calibration', 'FILE', 'former calibration (default: of --config)')
OUT: Option = ('--out', 'FILE', 'calibration file to write; its other sensors stay', OUTPUT)
BIAS: Option = (
    '--accelerometer-offset', ('X', 'Y', 'Z'), 'subtracted from accelerations [m/s^2]',
    NUMBER | {'nargs': 3},
)  # fmt: skip
OF_ROBOT = (LOG, ROBOT, CONFIG, CALIBRATION, OUT)
FTS: Option = ('--ft', 'SENSOR', 'FT sensors (default: all that can be calibrated)', NAMES)
SUPPORT: Option = (
    '--support', 'FRAME', 'the only contact (default: fixed_link)', {'default': ''}
)  # fmt: skip
OF_SENSOR = (
    FT, CALIBRATION, OUT, ('--robot-name', 'NAME', 'in the file that is written', {'default': ''}),
    ('--temperature', 'T', 'of the sensor [degrees Celsius]', NUMBER | {'default': nan}),
)  # fmt: skip
OF_BODY = (
    *OF_SENSOR, BIAS,
    ('--config', 'YAML', 'columns of tables, as for identify; parameter file of the node for bags',
     NEEDED),
    ('--imu', 'NAME', 'IMU of that file (default: the only one)', {'default': ''}),
)  # fmt: skip
IMU_RPY: Option = (
    '--imu-rpy', ('R', 'P', 'Y'), "rotation of the IMU in the sensor's frame, as in a URDF [rad]",
    NUMBER | {'nargs': 3},
)  # fmt: skip
DIRECTION: Option = (
    '--direction', 'DIRECTION', 'of readings: child_to_parent (default) or parent_to_child',
    {'choices': tuple(calibrate_body.DIRECTIONS)},
)  # fmt: skip
SET = ('LOG', 'KG', 'X', 'Y', 'Z')
SETS = {'nargs': 5, 'action': 'append', 'default': []}


def _show(chosen: argparse.Namespace) -> None:
    """Print a calibration file."""
    robot, sensors = read(chosen.file)
    entries = {name: as_entry(sensor) for name, sensor in sensors.items()}
    write_json(chosen.json, {'robot': robot, 'sensors': entries})
    tables, steps, warnings = [], [], []
    for name, one in sensors.items():
        of_steps = entries[name].pop('provenance')
        tables.append(figures_table(name, entries[name]))
        steps += [{'sensor': name, 'samples': '', 'notes': ()} | step for step in of_steps]
        # Rows are scaled to one length, as units and gains differ.
        lengths = np.linalg.norm(one.matrix, axis=1)
        scaled = one.matrix / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        if (rank := int(np.linalg.matrix_rank(scaled))) < len(AXES):
            warnings.append(f'{name}: the matrix has rank {rank} of {len(AXES)}')
    columns = ('sensor', 'method', 'date', 'samples', 'notes')
    show(
        escape(f"FT calibration of robot '{robot}'"),
        *tables,
        records_table('Provenance', steps, columns),
        *(f'[yellow]warning[/] {escape(text)}' for text in warnings),
    )


METHODS = {
    'offsets': Command(
        'offsets from the model, while supports carry the robot',
        'stand.mcap --robot robot.urdf --config node.yaml --support l_sole --out ft.yaml',
        calibrate_log.offsets,
        (*OF_ROBOT, FTS,
         ('--support', 'FRAME', 'all contacts of the robot (default: fixed_link)', NAMES),
         ('--accept-split', '',
          'of several supports, assume the smallest wrenches that add up', FLAG)),
    ),
    'affine': Command(
        'matrices and offsets from the model, while one contact carries the robot',
        'swing.mcap@5:40 --validate swing.mcap@40:75 --robot robot.urdf --config robot.yaml',
        calibrate_log.affine,
        (*OF_ROBOT, FTS, SUPPORT,
         ('--validate', 'LOG@FROM:TO', 'other part of the log, to test the result')),
    ),
    'temperature': Command(
        'temperature coefficients, while one contact carries the robot',
        'warm_up.mcap --robot robot.urdf --config robot.yaml', calibrate_log.temperature,
        (*OF_ROBOT, FTS, SUPPORT),
    ),
    'tool': Command(
        'mass of a tool, FT offset and delay of an IMU on it, from free motion',
        'free.mcap --robot arm.urdf --config arm.yaml --ft wrist_ft --imu tool_imu',
        calibrate_log.tool,
        (*OF_ROBOT, FT, BIAS, ('--imu', 'NAME', 'IMU on the tool', NEEDED),
         ('--inertia', '', 'identify the inertia too', FLAG),
         ('--max-delay', 'S', 'of the IMU, either way (default: %(default)s)',
          NUMBER | {'default': 0.05})),
    ),
    'offset-without-model': Command(
        'offset from raw readings of one body in several poses',
        'poses.npz --config poses.yaml --ft l_leg_ft --out icub.yaml', calibrate_body.offset,
        (LOG, *OF_BODY),
    ),
    'matrix': Command(
        'matrix from three data sets or more with known masses added',
        '--data none.npz 0 0 0 0 --data far.npz 0.51 0.3 0 0.05 --data side.npz 0.51 0 0.2 0.05 '
        '--config poses.yaml --ft l_foot_ft --imu-rpy 0 0 0 --out icub.yaml',
        calibrate_body.matrix,
        (('--data', SET,
          "log, or LOG@FROM:TO, added mass [kg], its centre about the sensor's origin [m]",
          SETS | NEEDED),
         ('--validate', SET, 'the same, weighed with the result only', SETS),
         *OF_BODY, (*IMU_RPY[:3], IMU_RPY[3] | NEEDED), DIRECTION),
    ),
    'live': Command(
        'offset, or matrix with --load, step by step',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --load 0.51 0.3 0 0.05 '
        '--load 0.51 0 0.2 0.05 --out icub_ft.yaml', calibrate_body.live,
        (('--config', 'YAML', 'parameter file of the node'),
         ('--robot', 'URDF', 'robot description'), *OF_SENSOR, IMU_RPY, DIRECTION,
         ('--imu', 'NAME|TOPIC', "IMU, or 'fixed link' (default: the nearest)", {'default': ''}),
         ('--readings', 'TOPIC', 'of the FT sensor, without --config'),
         ('--load', SET[1:], "added mass and its centre about the sensor's origin [m]",
          NUMBER | {'nargs': 4, 'action': 'append', 'default': []}),
         ('--estimator', 'NAME', "node to hand it to, '' for none",
          {'default': 'wrench_estimator'}),
         ('--namespace', 'NS', 'of the session', {'default': ''})),
    ),
    'show': Command(
        'print a calibration file', 'icub.yaml', _show, (('file', 'FILE', 'calibration file'),)
    ),
}  # fmt: skip
