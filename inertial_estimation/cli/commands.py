# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subcommands as data, and the parsers that follow from them."""

from __future__ import annotations

import argparse
from math import inf, isnan, nan
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple


def number(text: str) -> float:
    """Read a number; NaN is none."""
    if isnan(value := float(text)):
        raise ValueError
    return value


WIDTH = 80
Option = tuple[Any, ...]
"""Name, metavar and help, and further arguments of argparse."""
NEEDED, FLAG = {'required': True}, {'action': 'store_true'}
NUMBER, COUNT = {'type': number}, {'type': int}
NAMES: dict[str, Any] = {'nargs': '+', 'default': []}
OUTPUT = {'type': Path}
"""Marks files that are written; all others are read."""
ROBOT: Option = ('--robot', 'URDF', 'robot description', NEEDED)
CONFIG: Option = ('--config', 'YAML', 'parameter file of the node', NEEDED)
FULL: Option = ('--full', '', 'print all tables', FLAG)
LAYOUT: Option = ('--layout', 'YAML', "columns of a table, as 'log' of identify's file")
JSON: Option = ('--json', 'FILE', 'write all figures as JSON', OUTPUT)


class Command(NamedTuple):
    """A subcommand."""

    job: str
    """A clause."""
    example: str
    """Arguments of a call."""
    run: str
    """Module of this folder and function of the parsed options, imported when it runs."""
    options: tuple[Option, ...]
    more: str = ''
    """Further sentences of the help."""


LOG: Option = ('log', 'LOG', 'bag or table; a part of one as LOG@FROM:TO [s]')
BAG: Option = ('log', 'BAG', 'bag; a part of one as BAG@FROM:TO [s]')
FT: Option = ('--ft', 'SENSOR', 'FT sensor', NEEDED)
CALIBRATION: Option = ('--calibration', 'FILE', 'former calibration (default: of --config)')
OUT: Option = ('--out', 'FILE', 'calibration file to write; its other sensors stay', OUTPUT)
ACCEPT: Option = ('--accept', '', 'write it although the log contradicts its model', FLAG)
BIAS: Option = (
    '--accelerometer-offset', ('X', 'Y', 'Z'), 'subtracted from accelerations [m/s^2]',
    NUMBER | {'nargs': 3},
)  # fmt: skip
OF_ROBOT = (ROBOT, CONFIG, CALIBRATION, OUT, ACCEPT)
FTS: Option = ('--ft', 'SENSOR', 'FT sensors (default: all that can be calibrated)', NAMES)
SUPPORT: Option = (
    '--support', 'FRAME', 'the only contact (default: fixed_link)', {'default': ''}
)  # fmt: skip
OF_SENSOR = (
    FT, CALIBRATION, OUT, ACCEPT,
    ('--robot-name', 'NAME', 'in the file that is written', {'default': ''}),
    ('--temperature', 'T', 'of the sensor [degrees Celsius]', NUMBER | {'default': nan}),
)  # fmt: skip
OF_BODY = (
    *OF_SENSOR, BIAS,
    ('--config', 'YAML', 'columns of tables, as for identify; parameter file of the node for bags',
     NEEDED),
    ('--imu', 'NAME', 'IMU of that file (default: the only one)', {'default': ''}),
)  # fmt: skip
SET = ('LOG', 'KG', 'X', 'Y', 'Z')
SETS = {'nargs': 5, 'action': 'append', 'default': []}
ENDS, SPAN = ('FROM', 'TO'), NUMBER | {'nargs': 2, 'default': (-inf, inf)}
FRICTION = ('viscous', 'coulomb', 'offset', 'drive_inertia')
ALL, NONE = 'all', 'none'
COMMANDS = {
    'init': Command(
        'write a first configuration for a robot, by its URDF and a log',
        '--robot robot.urdf --bag walk.mcap --out robot.yaml', 'init:run',
        (ROBOT,
         ('--bag', 'BAG', 'log of the robot in motion (default: the URDF alone)'),
         ('--log', 'TABLE', 'table with the joint efforts of an arm, for identify'),
         ('--joints', 'JOINT', 'of its columns (default: by their names, or all)', NAMES),
         ('--out', 'YAML', 'parameter file to write', OUTPUT | NEEDED)),
    ),
    'check': Command(
        'describe a robot: sensors, submodels, dependence, consistency',
        'robot.urdf --imu torso_imu --contacts l_foot r_foot', 'check:run',
        (('urdf', 'URDF', 'robot description'),
         ('--imu', 'FRAME', 'IMU in use, repeatable (default: all)', {'action': 'append'}),
         ('--fixed-link', 'FRAME', 'frame at rest', {'default': ''}),
         ('--config', 'YAML', 'parameter file of the node'),
         ('--contacts', 'FRAME', 'contacts, with a wrench each', NAMES),
         ('--base-parameters', 'FILE', 'base parameters to check for consistency'),
         ('--identifiable', None, 'combinations that logs can determine', FLAG),
         ('--ft', 'SENSOR', "FT sensors for that, 'all' or 'none'", NAMES),
         ('--efforts', 'JOINT', "joint efforts for that, or 'all'", NAMES)),
        'Exit code 0: the node would start with it; 1: it would not, and the last line states '
        'why; 2: wrong call.',
    ),
    'replay': Command(
        'run the estimator over a ROS 2 bag, without ROS',
        'walk.mcap --robot robot.urdf --config robot.yaml --range 5 20 --out results',
        'replay:run',
        (('bag', 'LOG', 'bag (folder, mcap, db3) or table of numbers'), ROBOT, CONFIG,
         LAYOUT,
         ('--range', ENDS, 'part to estimate [s after the first FT message]', SPAN),
         ('--offsets-from', None, 'origin of the FT offsets (default: %(default)s)',
          {'choices': ('settings', 'model', 'torques'), 'default': 'settings'}),
         ('--offset-range', ENDS, 'part that the offsets are computed from (default: --range) [s]',
          SPAN),
         ('--support', 'FRAME', 'the only contact in that part (default: fixed_link)',
          {'default': ''}),
         ('--out', 'FOLDER', 'write the results as a bag'), FULL),
    ),
    'calibrate': Command('calibrate FT sensors', '', '', ()),
    'excite': Command(
        'design an exciting motion for identification',
        '--robot arm.urdf --acceleration 3 --out-csv motion.csv', 'excite:run',
        (ROBOT,
         ('--joints', 'JOINT', 'moving joints (default: all)', NAMES | {'default': [ALL]}),
         ('--fixed-link', 'FRAME', 'frame at rest (default: the root link)', {'default': ''}),
         ('--limits', 'YAML', 'limits of joints: {elbow: {lower: -1.5, upper: 1.5}}'),
         ('--acceleration', 'LIMIT', 'of joints without a limit [rad/s^2 or m/s^2]', NUMBER),
         ('--clearance', 'M', 'between links (default: %(default)s) [m]',
          NUMBER | {'default': 0.02}),
         ('--ignore', 'LINK', 'pair of links that is not kept apart; repeatable',
          {'nargs': 2, 'action': 'append', 'default': []}),
         ('--meshes', 'FOLDER', 'folders of package:// and of relative names of meshes', NAMES),
         ('--ft', 'SENSOR', "FT sensors that give equations, or 'all' (default: none)",
          NAMES | {'default': [NONE]}),
         ('--efforts', 'JOINT', "joints whose efforts give equations, or 'none' (default: all)",
          NAMES | {'default': [ALL]}),
         ('--friction', 'TERM', f'unknowns of each joint: {", ".join(FRICTION)} (default) or none',
          NAMES | {'choices': (*FRICTION, NONE), 'default': list(FRICTION)}),
         ('--period', 'S', 'of the motion (default: %(default)s) [s]', NUMBER | {'default': 20.0}),
         ('--harmonics', 'N', 'of the Fourier series (default: %(default)s)',
          COUNT | {'default': 5}),
         ('--starts', 'N', 'random starts of the search (default: %(default)s)',
          COUNT | {'default': 5}),
         ('--time', 'S', 'limit of the search (default: %(default)s) [s]',
          NUMBER | {'default': 60.0}),
         ('--seed', 'N', 'of the random starts (default: %(default)s)', COUNT | {'default': 0}),
         ('--out-csv', 'FILE', 'time, positions, velocities, accelerations', OUTPUT),
         ('--rate', 'HZ', 'lines a second of that file (default: %(default)s)',
          NUMBER | {'default': 100.0}),
         ('--out-trajectory', 'FILE', 'YAML with the fields of trajectory_msgs/JointTrajectory',
          OUTPUT)),
        'A Fourier series from rest to rest, within limits and without self-collision, that '
        'minimises the condition number of the regressor over the base parameters.',
    ),
    'identify': Command(
        'identify inertial parameters from logs',
        'run1.npz run2.npz --robot arm.urdf --config arm_logs.yaml --validate run3.npz '
        '--out-urdf identified.urdf', 'identify:run',
        (('logs', 'LOG', 'bag or table of numbers; LOG@FROM:TO for a part [s]', {'nargs': '+'}),
         ROBOT,
         ('--config', 'YAML', 'columns, filter and equations; or the parameter file of the node, '
          'for bags', NEEDED),
         ('--method', 'NAME', 'solver, see docs/identification.md (default: %(default)s)',
          {'default': 'entropic'}),
         ('--weight', 'NUMBER', 'independent equations that the prior is worth (default: 10)',
          NUMBER),
         ('--validate', 'LOG', 'logs to predict, not fitted', NAMES),
         ('--lock', 'JOINT', 'joints that the logs do not move', NAMES),
         ('--out-urdf', 'FILE', 'write the URDF; exit code 1 if inconsistent', OUTPUT),
         ('--out-yaml', 'FILE', 'write friction, drives and FT offsets', OUTPUT), FULL),
    ),
    'demo': Command(
        'estimate the wrenches of a simulated iCub that is pushed and carries a load',
        '--duration 20 --json demo.json', 'demo:run',
        (('--duration', 'S',
          'of all scenes [s]; from 29 on with a load to pick up (default: %(default)g)',
          NUMBER | {'default': 60.0}),
         ('--seed', 'N', 'of motion, pushes and noise (default: 0)', COUNT | {'default': 0})),
    ),
}  # fmt: skip
"""Subcommands."""
METHODS = {
    'offsets': Command(
        'offsets from the model, while supports carry the robot',
        'stand.mcap --robot robot.urdf --config node.yaml --support l_sole --out ft.yaml',
        'calibrate_log:offsets',
        (LOG, *OF_ROBOT, LAYOUT, FTS,
         ('--support', 'FRAME', 'all contacts of the robot (default: fixed_link)', NAMES),
         ('--accept-split', '',
          'of several supports, assume the smallest wrenches that add up', FLAG)),
    ),
    'affine': Command(
        'matrices and offsets from the model, while one contact carries the robot',
        'swing.mcap@5:40 --validate swing.mcap@40:75 --robot robot.urdf --config robot.yaml',
        'calibrate_log:affine',
        (LOG, *OF_ROBOT, LAYOUT, FTS, SUPPORT,
         ('--validate', 'LOG@FROM:TO', 'other part of the log, to test the result')),
    ),
    'temperature': Command(
        'temperature coefficients, while one contact carries the robot',
        'warm_up.mcap --robot robot.urdf --config robot.yaml', 'calibrate_log:temperature',
        (LOG, *OF_ROBOT, LAYOUT, FTS, SUPPORT),
    ),
    'tool': Command(
        'mass of a tool, FT offset and delay of an IMU on it, from free motion',
        'free.mcap --robot arm.urdf --config arm.yaml --ft wrist_ft --imu tool_imu',
        'calibrate_log:tool',
        (BAG, *OF_ROBOT, FT, BIAS, ('--imu', 'NAME', 'IMU on the tool', NEEDED),
         ('--inertia', '', 'identify the inertia too', FLAG),
         ('--max-delay', 'S', 'of the IMU, either way (default: %(default)s)',
          NUMBER | {'default': 0.05})),
    ),
    'offset-without-model': Command(
        'offset from raw readings of one body in several poses',
        'poses.npz --config poses.yaml --ft l_leg_ft --out icub.yaml', 'calibrate_body:offset',
        (LOG, *OF_BODY),
    ),
    'matrix': Command(
        'matrix from three data sets or more with known masses added',
        '--data none.npz 0 0 0 0 --data far.npz 0.51 0.3 0 0.05 --data side.npz 0.51 0 0.2 0.05 '
        '--config poses.yaml --ft l_foot_ft --imu-rpy 0 0 0 --out icub.yaml',
        'calibrate_body:matrix',
        (('--data', SET,
          "log, or LOG@FROM:TO, added mass [kg], its centre about the sensor's origin [m]",
          SETS | NEEDED),
         ('--validate', SET, 'the same, weighed with the result only', SETS),
         *OF_BODY,
         ('--imu-rpy', ('R', 'P', 'Y'),
          "rotation of the IMU in the sensor's frame, as in a URDF [rad]",
          NUMBER | NEEDED | {'nargs': 3}),
         ('--direction', 'DIRECTION', 'of readings: child_to_parent (default) or parent_to_child',
          {'choices': ('child_to_parent', 'parent_to_child'), 'default': 'child_to_parent'})),
    ),
    'live': Command(
        'offset from a robot that publishes, with instructions how to turn it',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --out icub_ft.yaml',
        'calibrate_body:live',
        (('--config', 'YAML', 'parameter file of the node'),
         ('--robot', 'URDF', 'robot description'), *OF_SENSOR,
         ('--imu', 'NAME|TOPIC', 'IMU (default: the nearest)', {'default': ''}),
         ('--readings', 'TOPIC', 'of the FT sensor, without --config'),
         ('--estimator', 'NAME', "node to hand it to, '' for none",
          {'default': 'wrench_estimator'}),
         ('--namespace', 'NS', 'of the session', {'default': ''})),
    ),
    'show': Command(
        'print a calibration file', 'icub.yaml', 'calibrate:show_file',
        (('file', 'FILE', 'calibration file'),),
    ),
}  # fmt: skip
"""Of ``calibrate``."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    whole = argparse.ArgumentParser(
        prog='inertial-estimation',
        description='External wrenches and joint torques from embedded force-torque sensors, '
        'IMUs and joint encoders.',
        epilog='Options of a subcommand: inertial-estimation COMMAND --help',
    )
    whole.add_argument('--version', action='store_true', help='print the version')
    below = whole.add_subparsers(dest='command', metavar='COMMAND')
    for name, command in COMMANDS.items():
        if name != 'calibrate':
            _add(below, name, command)
            continue
        text = f'Options of a method: {whole.prog} {name} METHOD --help'
        ways = _below(below, name, command, text).add_subparsers(
            dest='way', metavar='METHOD', required=True
        )
        for way, method in METHODS.items():
            _add(ways, way, method, f'{name} ')
    return whole


def _add(commands: Any, name: str, command: Command, of: str = '') -> None:
    call = f'inertial-estimation {of}{name}'
    below = _below(commands, name, command, f'Example: {call} {command.example}')
    needed = [call]
    for option, metavar, text, *more in (*command.options, JSON):
        given = {'metavar': metavar} if metavar else {}
        action = below.add_argument(option, help=text, **given, **dict(*more))
        if action.required:
            values = metavar if isinstance(metavar, str) else ' '.join(metavar)
            needed.append(f'{option} {values}' if action.option_strings else values)
    below.usage = fill(f'{" ".join(needed)} [OPTION ...]', WIDTH - len('usage: '))
    below.set_defaults(run=command.run)


def _below(commands: Any, name: str, command: Command, epilog: str) -> Any:
    """Add a parser whose help does not break lines within an option."""
    job = command.job
    description, epilog = (
        fill(text, WIDTH, break_on_hyphens=False)
        for text in (f'{job[0].upper()}{job[1:]}. {command.more}', epilog)
    )
    return commands.add_parser(
        name, help=job, description=description, epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
