# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Options that mean the same in all ways of calibrating, each with one name.

An FT sensor is ``--ft``, by its name in descriptions and files. Where no description says so,
``--readings`` is what it reads, ``--imu`` the IMU beyond it, and ``--imu-rpy`` and ``--direction``
how the two sit. What is calibrated so far is ``--calibration``, what is found goes to ``--out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inertial_estimation.errors import CalibrationError, ConfigError, NameNotFound

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration

DIRECTIONS = {'child_to_parent': 1, 'parent_to_child': -1}
"""As descriptions of robots say whose wrench an FT sensor tells."""
SOME_ROBOT = 'robot'
"""Name in a file of which nobody said the name."""


def add_sensor(way: argparse.ArgumentParser) -> None:
    """Add the one FT sensor that is calibrated."""
    way.add_argument(
        '--ft', required=True, metavar='SENSOR',
        help='name of the FT sensor, as in the calibration file',
    )  # fmt: skip


def add_sensors(way: argparse.ArgumentParser, which: str, default: str) -> None:
    """Add the FT sensors that are calibrated."""
    way.add_argument(
        '--ft', nargs='+', default=[], metavar='SENSOR', help=f'{which} (default: {default})'
    )


def add_calibration(way: argparse.ArgumentParser, default: str) -> None:
    """Add the calibration so far."""
    way.add_argument(
        '--calibration', metavar='FILE',
        help=f'calibration file with what is in use so far (default: {default})',
    )  # fmt: skip


def add_placement(way: argparse.ArgumentParser, when: str, unknown: str) -> None:
    """Add how the IMU and the FT sensor sit, where no description of a robot says so."""
    way.add_argument(
        '--imu-rpy', nargs=3, type=float, metavar=('ROLL', 'PITCH', 'YAW'),
        help=f"{when}rotation of the IMU, or accelerometer, in the sensor's frame, about fixed "
        f'axes as in a URDF [rad] (default: {unknown})',
    )  # fmt: skip
    way.add_argument(
        '--direction', choices=tuple(DIRECTIONS),
        help=f'{when}whose wrench the readings are: of the body beyond the sensor on the sensor, '
        'or the opposite (default: child_to_parent)',
    )  # fmt: skip


def add_accelerometer_offset(way: argparse.ArgumentParser, default: str) -> None:
    """Add what an accelerometer reads too much."""
    way.add_argument(
        '--accelerometer-offset', nargs=3, type=float, metavar=('X', 'Y', 'Z'),
        help='subtracted from accelerations, in the axes of the accelerometer [m/s^2] (default: '
        f'{default})',
    )  # fmt: skip


def add_robot_name(way: argparse.ArgumentParser, default: str) -> None:
    """Add what a robot is called."""
    way.add_argument(
        '--robot-name', metavar='NAME', default='',
        help=f'of the robot in the file that is written (default: {default}, or {SOME_ROBOT})',
    )  # fmt: skip


def add_outputs(way: argparse.ArgumentParser, picture: str, default: str = 'no file') -> None:
    """Add where results go besides the terminal."""
    way.add_argument(
        '--out', type=Path, metavar='FILE',
        help='calibration file to write, which may be the one that is read; other sensors that '
        f'it holds stay in it (default: {default})',
    )  # fmt: skip
    way.add_argument(
        '--picture', type=Path, metavar='FILE',
        help=f'{picture} (default: no file)',
    )  # fmt: skip


def direction_of(chosen: argparse.Namespace) -> int:
    """Return whose wrench the readings are."""
    return DIRECTIONS[chosen.direction or 'child_to_parent']


def require_calibration(chosen: argparse.Namespace) -> None:
    """Refuse a calibration so far that is not there."""
    path = chosen.calibration
    if path is not None and not Path(path).exists():
        raise ConfigError(
            f"'{path}' of --calibration is not there: name another one, or leave the option out "
            'if nothing was calibrated so far'
        )


def before(chosen: argparse.Namespace) -> SensorCalibration | None:
    """Return the calibration of the sensor so far."""
    from inertial_estimation.calibration.calibration_file import read

    if chosen.calibration is None:
        return None
    require_calibration(chosen)
    _, sensors = read(chosen.calibration)
    if chosen.ft not in sensors:
        raise NameNotFound(
            'FT sensor', chosen.ft, sensors,
            f"--ft names '{chosen.ft}' and --calibration '{chosen.calibration}'",
        )  # fmt: skip
    return sensors[chosen.ft]


def robot_name(chosen: argparse.Namespace) -> str:
    """Return what the robot is called in the file that is written."""
    from inertial_estimation.calibration.calibration_file import read

    robot: str = chosen.robot_name
    for path in (chosen.calibration, chosen.out):
        if not robot and path is not None and Path(path).exists():
            robot, _ = read(path)
    return robot or SOME_ROBOT


def not_written(out: Path, why: Sequence[str], remedy: str) -> CalibrationError:
    """Say that a file is held back: what was found is shown all the same."""
    return CalibrationError(f"'{out}' is not written, as {'; '.join(why)}: {remedy}")
