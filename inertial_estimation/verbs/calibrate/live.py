# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate live``: a session with a robot that publishes, step by step."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.errors import CalibrationError, CallError, ConfigError
from inertial_estimation.table import Table
from inertial_estimation.verbs.calibrate import raw_options
from inertial_estimation.verbs.calibrate.common_options import (
    add_placement,
    direction_of,
    require_calibration,
)
from inertial_estimation.verbs.options import INTERRUPTED, add_verb
from inertial_estimation.verbs.terminal import escape, show, table

MAIN = 'import sys; from inertial_estimation.ros.calibration_session import main; sys.exit(main())'
NOTHING = 'nothing'
NAMES = raw_options.NAMES | {'imu': '--imu', 'sensor': '--ft', 'restate': '--restate'}
"""What arguments of the library are called here."""
SVG = '.svg'


def add(ways: Any) -> None:
    """Add the way that leads through a session."""
    way = add_verb(
        ways, 'live',
        'a session with a robot that publishes: says which way to turn the sensor and which load '
        'to hang on, leaves out motion and contacts, finds the offset from one data set and the '
        'matrix from three or more, and hands them to the running estimator',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --load 0.51 0.3 0 0.05 '
        '--load 0.51 0 0.2 0.05 --session l_foot.json --out icub_ft.yaml', 'calibrate',
    )  # fmt: skip
    _add_sources(way)
    way.add_argument(
        '--load', nargs=4, type=float, action='append', metavar=('KG', 'X', 'Y', 'Z'), default=[],
        help="a known mass and its centre about the sensor's origin [m], hung on for a data set "
        'that follows the one without any; two or more for a matrix (default: none)',
    )  # fmt: skip
    way.add_argument(
        '--loads', metavar='FILE',
        help='YAML file with a list of all data sets instead, each with name, mass [kg] and '
        'centre [m] (default: none)',
    )  # fmt: skip
    way.add_argument(
        '--session', type=Path, metavar='FILE',
        help='where the session is kept, and gone on with if it is there already (default: '
        'nowhere)',
    )  # fmt: skip
    way.add_argument(
        '--restate', action='store_true',
        help='loads, rotation and direction of the session were stated wrong, and hold as they '
        'are given now (default: they must be as they were)',
    )  # fmt: skip
    way.add_argument(
        '--unattended', type=float, metavar='S',
        help='ask for no keys: a load hangs so long after it was asked for [s] (default: Enter '
        'says so)',
    )  # fmt: skip
    way.add_argument(
        '--moments', type=int, default=40, metavar='N',
        help='still moments, a fifth of a second each, that are enough for a data set (default: '
        '%(default)d)',
    )  # fmt: skip
    way.add_argument(
        '--directions',
        type=int,
        default=12,
        metavar='N',
        help='of gravity, more than ten degrees apart, that are enough (default: %(default)d)',
    )
    way.add_argument(
        '--spread', type=float, default=0.1, metavar='SHARE',
        help='of gravity along each direction, over its size, that is enough (default: '
        '%(default)g, tilting by 40 degrees to each side)',
    )  # fmt: skip
    way.add_argument(
        '--estimator', metavar='NAME', default='wrench_estimator',
        help="node whose ~/restore is called in the end; '' for none (default: %(default)s)",
    )  # fmt: skip
    way.add_argument(
        '--namespace', metavar='NS', default='',
        help='of the session, in which topics and the estimator are (default: none)',
    )  # fmt: skip
    raw_options.add_file(way, 'what was reached, as an svg', of_robot=True)
    way.set_defaults(run=_run)


def _add_sources(way: argparse.ArgumentParser) -> None:
    """Add what says where readings come from."""
    way.add_argument(
        '--config', metavar='YAML',
        help="the node's parameter file: gravity then comes from any of its IMUs through the "
        'joints, or from its fixed link (default: two topics instead)',
    )  # fmt: skip
    way.add_argument(
        '--robot', metavar='URDF',
        help='of a robot: robot description file (default: that of the parameters, or the '
        'topic)',
    )  # fmt: skip
    way.add_argument(
        '--imu', metavar='NAME|TOPIC',
        help="of a robot: IMU that tells gravity, or 'fixed link' (default: the nearest by "
        'joints); of two topics: Imu that is fixed to the body beyond the sensor',
    )  # fmt: skip
    way.add_argument(
        '--readings', metavar='TOPIC',
        help='of two topics: WrenchStamped of the FT sensor, raw or wrenches (default: none)',
    )  # fmt: skip
    add_placement(
        way, 'of two topics: ',
        'not known; a matrix is in the axes of the accelerometer, and so are centres of loads',
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    """Lead through a session; return the exit code."""
    _check(chosen)
    job = _job(chosen)
    if find_spec('rclpy') is None:
        raise ConfigError('a live session needs ROS: source it; logs need none')
    found, code = _in_ros(job)
    if found is None:
        # What was wrong has been said.
        return code
    files.write_json(chosen.json, found['figures'] | {'stopped': found['stopped']})
    show(
        *(table(*Table(*one)) for one in found['tables']),
        *map(escape, found['said']),
        *(f'[yellow]warning:[/] {escape(text)}' for text in found['warnings']),
    )
    if found['refused']:
        raise CalibrationError(found['refused'])
    return code


def _check(chosen: argparse.Namespace) -> None:
    """Refuse options that do not go together, and outputs that could not be written."""
    of_robot = {'--robot': chosen.robot}
    of_topics = {
        '--readings': chosen.readings, '--imu-rpy': chosen.imu_rpy,
        '--direction': chosen.direction,
    }  # fmt: skip
    wrong = of_topics if chosen.config else of_robot
    if given := [name for name, value in wrong.items() if value]:
        how = 'is not for' if chosen.config else 'needs'
        raise CallError(f'{given[0]} {how} a session with --config')
    if not chosen.config and not (chosen.readings and chosen.imu):
        raise CallError('name --config, or both --readings and --imu')
    if chosen.loads and chosen.load:
        raise CallError('--load and --loads both say what is hung on: leave one out')
    if any(one[0] < 0.0 or not all(map(isfinite, one)) for one in chosen.load):
        raise CallError('--load is a mass [kg], 0 or more, and its centre [m], all finite')
    if min(chosen.moments, chosen.directions) < 1 or not 0.0 < chosen.spread < 1.0:
        raise CallError('--moments and --directions must be 1 or more, --spread between 0 and 1')
    if chosen.restate and not (chosen.session and chosen.session.exists()):
        raise CallError('--restate is of a session that is there already: name it with --session')
    if chosen.unattended is not None and not chosen.unattended >= 0.0:
        raise CallError('--unattended is a time in seconds, 0 or more')
    if chosen.picture and chosen.picture.suffix != SVG:
        raise CallError(f"'{chosen.picture}': the picture of a live session is an {SVG} file")
    require_calibration(chosen)
    inputs = (chosen.config, chosen.robot, chosen.loads)
    files.check_outputs((chosen.out, chosen.json, chosen.picture, chosen.session), inputs)
    # The former calibration may be in the file that is written.
    files.check_outputs((chosen.json, chosen.picture, chosen.session), (chosen.calibration,))


def _job(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what the process with ROS is to do."""
    warm = chosen.temperature == chosen.temperature
    return {
        'names': NAMES | {'loads': '--loads' if chosen.loads else '--load'},
        'sensor': chosen.ft,
        'loads': _loads(chosen),
        'config': chosen.config,
        'robot': chosen.robot,
        'imu': chosen.imu if chosen.config else None,
        'ft_topic': chosen.readings,
        'imu_topic': None if chosen.config else chosen.imu,
        'rotation': chosen.imu_rpy,
        'direction': direction_of(chosen),
        'calibration': chosen.calibration,
        'output': _text(chosen.out),
        'session': _text(chosen.session),
        'restate': chosen.restate,
        'picture': _text(chosen.picture),
        'robot_name': chosen.robot_name,
        'temperature': chosen.temperature if warm else None,
        'unattended': chosen.unattended,
        'moments': chosen.moments,
        'directions': chosen.directions,
        'spread': chosen.spread,
        'estimator': chosen.estimator,
        'namespace': chosen.namespace,
    }


def _loads(chosen: argparse.Namespace) -> list[list[Any]]:
    """Return name, mass and centre of what is hung on, data set by data set."""
    if chosen.loads:
        return _from_file(chosen.loads)
    named = [[f'load {k}', *numbers] for k, numbers in enumerate(chosen.load, 1)]
    return [[NOTHING, 0.0, 0.0, 0.0, 0.0], *named]


def _from_file(path: str) -> list[list[Any]]:
    """Read loads."""
    from inertial_estimation.config.files import load_mapping
    from inertial_estimation.model.arguments import numbers

    given = load_mapping(Path(path)).get('loads')
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ConfigError(f"'{path}' holds no list of 'loads'")
    found: list[list[Any]] = []
    for k, one in enumerate(given, 1):
        where = f"'{path}': load {k}"
        if not isinstance(one, Mapping):
            raise ConfigError(f'{where} is {one!r}, expected name, mass and centre')
        if odd := [name for name in one if name not in ('name', 'mass', 'centre')]:
            raise ConfigError(f"{where}: '{odd[0]}' is not known; known: name, mass, centre")
        mass = float(numbers(f'{where}: mass', one.get('mass', 0.0), ()))
        if mass and 'centre' not in one:
            raise ConfigError(f'{where} has a mass and no centre')
        centre = numbers(f'{where}: centre', one.get('centre', (0.0, 0.0, 0.0)), (3,))
        name = str(one.get('name', f'load {k}' if mass else NOTHING))
        found.append([name, mass, *centre.tolist()])
    return found


def _in_ros(job: dict[str, Any]) -> tuple[dict[str, Any] | None, int]:
    """Return what a process with ROS found, None if it broke off, and its exit code."""
    process = subprocess.Popen(
        [sys.executable, '-c', MAIN, json.dumps(job)], stdout=subprocess.PIPE, text=True
    )
    interrupted = False
    while True:
        try:
            said, _ = process.communicate()
            break
        except KeyboardInterrupt:
            # The process has seen it too, saves the session and ends.
            interrupted = True
    if not said:
        return None, INTERRUPTED if interrupted else (process.returncode or 1)
    found: dict[str, Any] = json.loads(said)
    if 'failed' in found:
        raise (CallError if found['wrong_call'] else ConfigError)(found['failed'])
    return found, process.returncode


def _text(path: Path | None) -> str | None:
    """Return a path as JSON holds it."""
    return None if path is None else str(path)
