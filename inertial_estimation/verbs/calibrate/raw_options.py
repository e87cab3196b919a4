# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Options of the ways that take raw readings of one sensor and an accelerometer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inertial_estimation.errors import ConfigError, NameNotFound

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.logs.raw_log import RawSignals

SOME_ROBOT = 'robot'
"""Name in a file of which nobody said the name."""


def add_signals(way: argparse.ArgumentParser) -> None:
    """
    Add what says where the signals are.

    Parameters
    ----------
    way : argparse.ArgumentParser
        Of the way.

    """
    way.add_argument(
        '--readings', type=_names, metavar='COLUMNS|TOPIC', default=(),
        help='readings of the FT sensor: columns of a table, six in all, or a topic of a bag '
        '(default: raw, or the only topic of wrenches)',
    )  # fmt: skip
    way.add_argument(
        '--accelerometer', type=_names, metavar='COLUMNS|TOPIC', default=(),
        help='of an accelerometer that is fixed to the body beyond the sensor (default: '
        'accelerometer, or the only topic of an IMU)',
    )  # fmt: skip
    way.add_argument(
        '--accelerometer-unit', choices=('m/s^2', 'g'), default='m/s^2',
        help='of these columns (default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--accelerometer-bias', nargs=3, type=float, metavar=('X', 'Y', 'Z'),
        help='what it reads too much [m/s^2]; 0 0 0 leaves it as it is (default: from gravity, '
        'where orientations are all around)',
    )  # fmt: skip
    way.add_argument(
        '--gyroscope', type=_names, metavar='COLUMNS', default=(),
        help='columns of a gyroscope on that body [rad/s], which tells when it moves (default: '
        'gyroscope, if there is such a column)',
    )  # fmt: skip
    way.add_argument(
        '--time', metavar='COLUMN', default='time',
        help='of a table [s], for parts of logs and the date (default: %(default)s)',
    )  # fmt: skip


def add_file(way: argparse.ArgumentParser) -> None:
    """
    Add what says which calibration is read and written.

    Parameters
    ----------
    way : argparse.ArgumentParser
        Of the way.

    """
    way.add_argument('--sensor', required=True, metavar='NAME', help='name of the FT sensor')
    way.add_argument(
        '--calibration', metavar='FILE',
        help='calibration file with the matrix of the sensor so far (default: none, and its '
        'readings are taken for wrenches [N, Nm])',
    )  # fmt: skip
    way.add_argument(
        '--temperature', type=float, metavar='DEGREES', default=float('nan'),
        help='of the sensor meanwhile, in degrees Celsius (default: not known)',
    )  # fmt: skip
    way.add_argument(
        '--robot-name', metavar='NAME', default='',
        help='of the robot in the file that is written (default: as in the one that is read, or '
        f'{SOME_ROBOT})',
    )  # fmt: skip
    way.add_argument(
        '--output', type=Path, metavar='FILE',
        help='calibration file to write; other sensors that it holds stay in it (default: none)',
    )  # fmt: skip
    way.add_argument(
        '--picture', type=Path, metavar='FILE', help='what was found as a picture (default: none)'
    )


def signals_of(chosen: argparse.Namespace) -> RawSignals:
    """
    Return where the signals are.

    Parameters
    ----------
    chosen : Namespace
        What was chosen.

    Returns
    -------
    RawSignals

    """
    from inertial_estimation.logs.raw_log import RawSignals

    return RawSignals(
        chosen.readings, chosen.accelerometer, chosen.gyroscope, chosen.time,
        chosen.accelerometer_unit,
    )  # fmt: skip


def check_files(chosen: argparse.Namespace, logs: Sequence[str]) -> None:
    """
    Refuse outputs that could not be written, before anything is read.

    Parameters
    ----------
    chosen : Namespace
        What was chosen.
    logs : sequence of str
        Logs, or parts of them.

    Raises
    ------
    ConfigError
        With the file and the reason.

    """
    from inertial_estimation import pictures
    from inertial_estimation.logs.raw_log import log_file
    from inertial_estimation.verbs import files

    inputs = [log_file(log) for log in logs]
    # What is written may be what was read: its other sensors stay in it.
    files.check_outputs((chosen.json, chosen.picture), (chosen.calibration, *inputs))
    files.check_outputs((chosen.output, chosen.json, chosen.picture), inputs)
    if chosen.picture:
        pictures.require(chosen.picture)


def before(chosen: argparse.Namespace) -> SensorCalibration | None:
    """
    Return the calibration of the sensor so far.

    Parameters
    ----------
    chosen : Namespace
        What was chosen.

    Returns
    -------
    SensorCalibration or None
        None: none was named.

    Raises
    ------
    NameNotFound
        If the file has no such sensor.

    """
    from inertial_estimation.calibration.calibration_file import read

    if chosen.calibration is None:
        return None
    _, sensors = read(chosen.calibration)
    if chosen.sensor not in sensors:
        raise NameNotFound('sensor', chosen.sensor, sensors, f"'{chosen.calibration}' is read")
    return sensors[chosen.sensor]


def write(
    chosen: argparse.Namespace, found: SensorCalibration, *, keeps_slopes: bool = False
) -> None:
    """
    Write what was found, if asked to.

    Parameters
    ----------
    chosen : Namespace
        What was chosen.
    found : SensorCalibration
        Of the sensor.
    keeps_slopes : bool, optional
        As for `calibration_file.write`.

    """
    from inertial_estimation.calibration import calibration_file

    if chosen.output is None:
        return
    robot = chosen.robot_name
    for path in (chosen.calibration, chosen.output):
        if not robot and path is not None and Path(path).exists():
            robot, _ = calibration_file.read(path)
    calibration_file.write(
        chosen.output, robot or SOME_ROBOT, {chosen.sensor: found}, keeps_slopes=keeps_slopes
    )


def _names(text: str) -> tuple[str, ...]:
    """Return names that commas separate."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names: write a,b,c")
    return names


def number(text: str, what: str) -> float:
    """
    Return a number of a data set.

    Parameters
    ----------
    text : str
        As it was written.
    what : str
        What it is, for the message.

    Returns
    -------
    float

    Raises
    ------
    ConfigError
        If it is none.

    """
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{what} is '{text}', expected a number") from None
