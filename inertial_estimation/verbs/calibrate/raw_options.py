# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Options of the ways that take raw readings of one sensor and an accelerometer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inertial_estimation.errors import CallError
from inertial_estimation.verbs.calibrate import common_options

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.logs.raw_log import RawSignals

PICTURE = 'what was found, as a png, svg or pdf'
NAMES = {
    'bias': '--accelerometer-offset', 'temperature': '--temperature',
    'unit': '--accelerometer-unit', 'readings': '--readings', 'rotation': '--imu-rpy',
    'matrix': '--calibration',
}  # fmt: skip
"""What arguments of the library are called here."""


def add_signals(way: argparse.ArgumentParser) -> None:
    """Add what says where the signals are."""
    way.add_argument(
        '--readings', type=_names, metavar='COLUMNS|TOPIC', default=(),
        help='what the FT sensor reads: of a table six columns, with commas between their names '
        'as in fx,fy,fz,tx,ty,tz, or one that holds six; of a bag a topic (default: raw, or the '
        'only topic of wrenches)',
    )  # fmt: skip
    way.add_argument(
        '--imu', metavar='TOPIC', default='',
        help='of a bag: topic of an IMU that is fixed to the body beyond the sensor (default: the '
        'only one)',
    )  # fmt: skip
    way.add_argument(
        '--accelerometer', type=_names, metavar='COLUMNS', default=(),
        help='of a table: three columns, with commas between their names, or one that holds '
        'three, of an accelerometer that is fixed to that body (default: accelerometer)',
    )  # fmt: skip
    way.add_argument(
        '--accelerometer-unit', choices=('m/s^2', 'g'), default='m/s^2',
        help='of these columns (default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--gyroscope', type=_names, metavar='COLUMNS', default=(),
        help='of a table: likewise of a gyroscope on that body [rad/s], which tells when it moves '
        '(default: gyroscope, if there is such a column)',
    )  # fmt: skip
    common_options.add_accelerometer_offset(way, 'from gravity, where orientations are all around')
    way.add_argument(
        '--time', metavar='COLUMN', default='time',
        help='of a table [s], for parts of logs and the date (default: %(default)s)',
    )  # fmt: skip


def add_file(
    way: argparse.ArgumentParser, picture: str = PICTURE, *, of_robot: bool = False
) -> None:
    """Add what says which calibration is read and written."""
    wrenches = 'none, and the readings are taken for wrenches [N, Nm]'
    of_node = 'calibration_file of the parameter file if there is one'
    common_options.add_sensor(way)
    common_options.add_calibration(way, f'{of_node}; else {wrenches}' if of_robot else wrenches)
    way.add_argument(
        '--temperature', type=float, metavar='DEGREES', default=float('nan'),
        help='of the sensor meanwhile, in degrees Celsius (default: not known)',
    )  # fmt: skip
    common_options.add_robot_name(way, 'as in the calibration file that is read')
    default = f'{of_node}, or no file' if of_robot else 'no file'
    common_options.add_outputs(way, picture, default)


def signals_of(chosen: argparse.Namespace) -> RawSignals:
    """Return where the signals are."""
    from inertial_estimation.logs.raw_log import RawSignals

    return RawSignals(
        chosen.readings, chosen.accelerometer, chosen.gyroscope, chosen.time,
        chosen.accelerometer_unit, chosen.imu,
    )  # fmt: skip


def check_files(chosen: argparse.Namespace, logs: Sequence[str]) -> None:
    """Refuse outputs that could not be written, before anything is read."""
    from inertial_estimation import pictures
    from inertial_estimation.cli import files
    from inertial_estimation.logs.raw_log import log_file

    inputs = [log_file(log) for log in logs]
    # What is written may be what was read: its other sensors stay in it.
    files.check_outputs((chosen.json, chosen.picture), (chosen.calibration, *inputs))
    files.check_outputs((chosen.out, chosen.json, chosen.picture), inputs)
    if chosen.picture:
        pictures.require(chosen.picture)


def write(
    chosen: argparse.Namespace, found: SensorCalibration, *, keeps_slopes: bool = False
) -> None:
    """Write what was found, if asked to."""
    from inertial_estimation.calibration import calibration_file

    if chosen.out is None:
        return
    robot = common_options.robot_name(chosen)
    calibration_file.write(chosen.out, robot, {chosen.ft: found}, keeps_slopes=keeps_slopes)


def _names(text: str) -> tuple[str, ...]:
    """Return names that commas separate."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names: write a,b,c")
    return names


def number(text: str, what: str) -> float:
    """Return a number of a data set."""
    try:
        return float(text)
    except ValueError:
        raise CallError(f"{what} is '{text}', expected a number") from None
