# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate tool``: what hangs on an FT sensor, from free motion."""

from __future__ import annotations

import argparse
from math import inf
from typing import TYPE_CHECKING, Any

from inertial_estimation.verbs import files
from inertial_estimation.verbs.calibrate.log_options import (
    add_outputs,
    add_range,
    check_files,
    save,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.calibration.tool import ToolFit, ToolSettings

DIRECTIONS = {'child_to_parent': 1, 'parent_to_child': -1}


def add(ways: Any) -> None:
    """
    Add the way that identifies a tool.

    Parameters
    ----------
    ways : object
        Where argparse keeps the ways of the verb.

    """
    way = add_verb(
        ways, 'tool', 'mass and centre of mass of a tool, offset of the FT sensor that carries '
        'it, and delay of an IMU on it, from free motion',
        'free.mcap --ft /ft --imu /imu --imu-pose 0 0 0.05 0 0 1.5708',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'least squares over mass, first moments, offset and delay while nothing touches the '
        'tool; with --inertia over its inertia too. Touches and knocks are left out and counted. '
        'An accelerometer that is off makes an offset that is: the two belong together, unless '
        '--imu-offset takes it out'
    )
    way.add_argument('bag', metavar='BAG', help='bag: its folder, or its mcap or db3 file')
    way.add_argument(
        '--ft', required=True, metavar='TOPIC', help='WrenchStamped topic of the FT sensor'
    )
    way.add_argument('--imu', required=True, metavar='TOPIC', help='Imu topic of the tool')
    way.add_argument(
        '--imu-pose', nargs=6, type=float, default=(0.0,) * 6,
        metavar=('X', 'Y', 'Z', 'ROLL', 'PITCH', 'YAW'),
        help='of the IMU in the sensor frame, angles as in a URDF [m, rad] (default: all zero)',
    )  # fmt: skip
    way.add_argument(
        '--imu-offset', nargs=3, type=float, default=(0.0,) * 3, metavar=('X', 'Y', 'Z'),
        help='subtracted from its acceleration, in its axes [m/s^2] (default: all zero)',
    )  # fmt: skip
    way.add_argument(
        '--direction', choices=tuple(DIRECTIONS), default='child_to_parent',
        help='whether the sensor tells what the tool does to the robot, or the opposite (default: '
        '%(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--inertia', action='store_true', help='identify the inertia too (default: no)'
    )
    way.add_argument(
        '--most-delay', type=float, default=0.05, metavar='S',
        help='by which the IMU may be later or earlier (default: %(default)s)',
    )  # fmt: skip
    add_range(way, '--range', 'what is fitted to')
    way.add_argument(
        '--sensor', default='ft_sensor', metavar='NAME',
        help='of the FT sensor, for the calibration file (default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--robot-name', default='robot', metavar='NAME',
        help='of the robot, for the calibration file (default: %(default)s)',
    )  # fmt: skip
    add_outputs(way)
    way.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    """Identify a tool."""
    from inertial_estimation.logs.calibration_figures import date_of, tool_dict, tool_tables
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.logs.tool_log import read_tool_log, tool_calibration

    check_files(chosen)
    settings = _settings(chosen)
    calibration = _calibration_so_far(chosen)
    with progress_bars() as progress:
        log = read_tool_log(
            chosen.bag, chosen.ft, chosen.imu, chosen.imu_pose, chosen.imu_offset,
            TimeRange(*chosen.range), calibration,
        )  # fmt: skip
        progress('reading', 1.0)
        from inertial_estimation.calibration.tool import fit_tool

        fit = fit_tool(log.motion, settings, name=chosen.sensor)
        progress('fitting', 1.0)
    found = tool_calibration(fit, calibration, date_of(log.origin_ns))
    save(chosen.output, chosen.robot_name, {chosen.sensor: found})
    files.write_json(chosen.json, tool_dict(fit))
    _draw(chosen, fit)
    show(*(table(*drawn) for drawn in tool_tables(chosen.sensor, fit)))
    if fit.delay_deviation < inf and abs(fit.delay) > fit.delay_deviation:
        show(escape(f'time_offset of the IMU: {-fit.delay:.5f}'))


def _settings(chosen: argparse.Namespace) -> ToolSettings:
    """Return what is asked for."""
    from inertial_estimation.calibration.tool import ToolSettings

    return ToolSettings(
        direction=DIRECTIONS[chosen.direction],
        inertia=chosen.inertia,
        most_delay=chosen.most_delay,
    )


def _calibration_so_far(chosen: argparse.Namespace) -> Any:
    """Return what the calibration file holds of the sensor, or the identity."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration, read

    if chosen.output is None or not chosen.output.exists():
        return SensorCalibration()
    return read(chosen.output)[1].get(chosen.sensor) or SensorCalibration()


def _draw(chosen: argparse.Namespace, fit: ToolFit) -> None:
    """Draw what is left, if asked to."""
    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

    if chosen.picture is not None:
        draw(
            [Residuals(chosen.sensor, fit.times, fit.residuals_before, fit.residuals, fit.used)],
            chosen.picture,
        )
