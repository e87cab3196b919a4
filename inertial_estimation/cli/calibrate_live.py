# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration with a robot that publishes: live."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

from inertial_estimation.cli.arguments import INTERRUPTED
from inertial_estimation.cli.calibrate_options import (
    DIRECTIONS,
    NAMES,
    add_method,
    check_files,
)
from inertial_estimation.cli.render import escape, findings_lines, show, write_json
from inertial_estimation.errors import CalibrationError, CallError, ConfigError

MAIN = 'import sys; from inertial_estimation.ros.calibration_session import main; sys.exit(main())'
NOTHING = 'nothing'


def add(ways: Any) -> None:
    """Add the method."""
    options: list[Any] = [
        '--config', '--robot', '--ft', '--calibration', '--temperature', '--imu-rpy',
        '--direction', '--robot-name', '--out',
    ]  # fmt: skip
    for option, kind, metavar, default, text in (
        ('--imu', str, 'NAME|TOPIC', None, "IMU, or 'fixed link' (default: the nearest)"),
        ('--readings', str, 'TOPIC', None, 'of the FT sensor, without --config'),
        ('--loads', str, 'FILE', None, 'YAML list of all data sets: name, mass, centre'),
        ('--session', Path, 'FILE', None, 'keep the session, and continue it'),
        ('--unattended', float, 'S', None, 'time to mount a load (default: until Enter)'),
        ('--moments', int, 'N', 40, 'still poses of a data set (default: %(default)s)'),
        ('--directions', int, 'N', 12, 'of gravity (default: %(default)s)'),
        ('--spread', float, 'SHARE', 0.1, 'of gravity over its size (default: %(default)s)'),
        ('--estimator', str, 'NAME', 'wrench_estimator', "node to hand it to, '' for none"),
        ('--namespace', str, 'NS', '', 'of the session'),
    ):
        given = {'type': kind, 'metavar': metavar, 'default': default, 'help': text}
        options.append((option, given))
    options += [
        ('--load', {'nargs': 4, 'type': float, 'action': 'append', 'default': [],
                    'metavar': ('KG', 'X', 'Y', 'Z'),
                    'help': "added mass and its centre about the sensor's origin [m]"}),
        ('--restate', {'action': 'store_true', 'help':
         'other loads, rotation or direction for the poses of --session'}),
    ]  # fmt: skip
    add_method(
        ways, 'live', 'offset, or matrix with --load, step by step',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --load 0.51 0.3 0 0.05 '
        '--load 0.51 0 0.2 0.05 --session l_foot.json --out icub_ft.yaml', _run, options,
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    """Run a session in a process with ROS; return the exit code."""
    from inertial_estimation.findings import Finding, Level

    _check(chosen)
    job = vars(chosen) | {
        'names': NAMES | {
            'imu': '--imu', 'sensor': '--ft', 'restate': '--restate',
            'loads': '--loads' if chosen.loads else '--load',
        },
        'loads': _loads(chosen),
        'direction': DIRECTIONS[chosen.direction or 'child_to_parent'],
    }  # fmt: skip
    if find_spec('rclpy') is None:
        raise ConfigError('a live session needs ROS')
    process = subprocess.Popen(
        [sys.executable, '-c', MAIN, json.dumps(job, default=str)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    interrupted = False
    while True:
        try:
            text, _ = process.communicate()
            break
        except KeyboardInterrupt:
            # The process receives it too, saves the session and ends.
            interrupted = True
    if not text:
        return INTERRUPTED if interrupted else (process.returncode or 1)
    found: dict[str, Any] = json.loads(text)
    if 'failed' in found:
        raise (CallError if found['wrong_call'] else ConfigError)(found['failed'])
    write_json(chosen.json, found)
    findings = [Finding(**{**one, 'level': Level[one['level'].upper()]})
                for one in found['findings']]  # fmt: skip
    show(*map(escape, found['lines']), *findings_lines(findings))
    if found['refused']:
        raise CalibrationError(found['refused'])
    return process.returncode


def _check(chosen: argparse.Namespace) -> None:
    """Refuse options that exclude each other, and outputs that cannot be written."""
    of_topics = {'--readings': chosen.readings, '--imu-rpy': chosen.imu_rpy,
                 '--direction': chosen.direction}  # fmt: skip
    wrong = of_topics if chosen.config else {'--robot': chosen.robot}
    if given := [name for name, value in wrong.items() if value]:
        raise CallError(f'{given[0]} {"excludes" if chosen.config else "needs"} --config')
    if not chosen.config and not (chosen.readings and chosen.imu):
        raise CallError('name --config, or both --readings and --imu')
    if chosen.loads and chosen.load:
        raise CallError('--load excludes --loads')
    if any(one[0] < 0.0 or not all(map(isfinite, one)) for one in chosen.load):
        raise CallError('--load is a mass, 0 kg or more, and its centre [m]')
    if min(chosen.moments, chosen.directions) < 1 or not 0.0 < chosen.spread < 1.0:
        raise CallError('--moments and --directions must be 1 or more, --spread between 0 and 1')
    if chosen.restate and not (chosen.session and chosen.session.exists()):
        raise CallError('--restate needs an existing --session')
    if chosen.unattended is not None and not chosen.unattended >= 0.0:
        raise CallError('--unattended is 0 s or more')
    check_files(chosen, (chosen.config, chosen.robot, chosen.loads))


def _loads(chosen: argparse.Namespace) -> list[list[Any]]:
    """Return name, mass and centre of each data set."""
    from inertial_estimation.config.files import load_mapping
    from inertial_estimation.model.arguments import numbers

    if not chosen.loads:
        named = [[f'load {k}', *values] for k, values in enumerate(chosen.load, 1)]
        return [[NOTHING, 0.0, 0.0, 0.0, 0.0], *named]
    path = chosen.loads
    given = load_mapping(Path(path)).get('loads')
    if not isinstance(given, list) or not given:
        raise ConfigError(f"'{path}' holds no list of 'loads'")
    found: list[list[Any]] = []
    for k, one in enumerate(given, 1):
        where = f"'{path}': load {k}"
        if not isinstance(one, dict) or set(one) - {'name', 'mass', 'centre'}:
            raise ConfigError(f'{where} is {one!r}, expected name, mass and centre')
        mass = float(numbers(f'{where}: mass', one.get('mass', 0.0), ()))
        if mass and 'centre' not in one:
            raise ConfigError(f'{where} has a mass and no centre')
        centre = numbers(f'{where}: centre', one.get('centre', (0.0, 0.0, 0.0)), (3,))
        name = str(one.get('name', f'load {k}' if mass else NOTHING))
        found.append([name, mass, *centre.tolist()])
    return found
