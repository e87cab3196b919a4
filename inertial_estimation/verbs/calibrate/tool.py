# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate tool``: what hangs on an FT sensor, from free motion."""

from __future__ import annotations

import argparse
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from inertial_estimation.verbs import files
from inertial_estimation.verbs.calibrate.log_options import (
    add_outputs,
    add_range,
    check_files,
    save,
)
from inertial_estimation.verbs.options import CallError, add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.tool import ToolFit
    from inertial_estimation.logs.tool_log import ToolSource

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
        'free.mcap --robot arm.urdf --config arm.yaml --ft wrist_ft --imu tool_imu',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'least squares over mass, first moments, offset and delay while nothing touches the '
        'tool; with --inertia over its inertia too. Touches and knocks are left out and counted. '
        'An accelerometer that is off makes an offset that is: the two belong together, unless '
        '--imu-offset takes it out. With --robot and --config, --ft and --imu are the names of '
        'the two sensors; else they are topics, and --imu-pose and --direction say how they sit'
    )
    way.add_argument('bag', metavar='BAG', help='bag: its folder, or its mcap or db3 file')
    way.add_argument('--robot', metavar='URDF', help='robot description file (default: none)')
    way.add_argument('--config', metavar='YAML', help="the node's parameter file (default: none)")
    way.add_argument(
        '--ft', required=True, metavar='NAME', help='FT sensor, or its WrenchStamped topic'
    )
    way.add_argument(
        '--imu', required=True, metavar='NAME', help='IMU that is fixed to the tool, or its topic'
    )
    way.add_argument(
        '--imu-pose', nargs=6, type=float,
        metavar=('X', 'Y', 'Z', 'ROLL', 'PITCH', 'YAW'),
        help='of the IMU in the sensor frame, angles as in a URDF [m, rad] (default: all zero)',
    )  # fmt: skip
    way.add_argument(
        '--imu-offset', nargs=3, type=float, default=(0.0,) * 3, metavar=('X', 'Y', 'Z'),
        help='subtracted from its acceleration, in its axes [m/s^2] (default: all zero)',
    )  # fmt: skip
    way.add_argument(
        '--direction', choices=tuple(DIRECTIONS),
        help='whether the sensor tells what the tool does to the robot, or the opposite (default: '
        'child_to_parent)',
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
        '--sensor', metavar='NAME',
        help='of the FT sensor in the calibration file (default: with a robot its '
        'name there, else ft_sensor)',
    )  # fmt: skip
    way.add_argument(
        '--robot-name', metavar='NAME',
        help='of the robot in the calibration file (default: that of its description, else robot)',
    )  # fmt: skip
    add_outputs(way)
    way.set_defaults(run=_run)


class _Asked(NamedTuple):
    """What is read, and what it is called."""

    source: ToolSource
    calibration: SensorCalibration
    """In use so far."""
    sensor: str
    robot: str


def _run(chosen: argparse.Namespace) -> None:
    """Identify a tool."""
    from inertial_estimation.calibration.tool import ToolSettings, fit_tool
    from inertial_estimation.logs.calibration_figures import date_of, tool_dict, tool_tables
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.logs.tool_log import read_tool_log, tool_calibration

    check_files(chosen)
    asked = _on_robot(chosen) if chosen.robot or chosen.config else _by_topics(chosen)
    settings = ToolSettings(
        direction=asked.source.direction, inertia=chosen.inertia, most_delay=chosen.most_delay
    )
    with progress_bars() as progress:
        log = read_tool_log(
            chosen.bag, asked.source, TimeRange(*chosen.range), asked.calibration,
            chosen.imu_offset,
        )  # fmt: skip
        progress('reading', 1.0)
        fit = fit_tool(log.motion, settings, name=asked.sensor)
        progress('fitting', 1.0)
    found = tool_calibration(fit, asked.calibration, date_of(log.origin_ns))
    save(chosen.output, asked.robot, {asked.sensor: found})
    files.write_json(chosen.json, tool_dict(fit))
    _draw(chosen, asked.sensor, fit)
    show(*(table(*drawn) for drawn in tool_tables(asked.sensor, fit)))
    if fit.delay_deviation < inf and abs(fit.delay) > fit.delay_deviation:
        later = asked.source.imu_time_offset - fit.delay
        show(escape(f'time_offset of the IMU, if the FT sensor has none: {later:.5f}'))


def _on_robot(chosen: argparse.Namespace) -> _Asked:
    """Return what the description of a robot and the node's parameters say."""
    from inertial_estimation.building import build_robot, sensor_calibrations
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.tool_log import source_on_robot

    if not (chosen.robot and chosen.config):
        raise CallError('--robot and --config go together: give both, or topics')
    if chosen.imu_pose or chosen.direction:
        raise CallError('--imu-pose and --direction are what --robot says: leave them out')
    urdf = files.load_urdf(chosen.robot)
    settings = EstimatorSettings.from_yaml(chosen.config)
    with files.naming(chosen.robot):
        robot = build_robot(settings, urdf)
    source = source_on_robot(robot, settings, chosen.ft, chosen.imu)
    calibration = sensor_calibrations(settings, robot)[chosen.ft]
    return _Asked(source, calibration, chosen.sensor or chosen.ft, chosen.robot_name or robot.name)


def _by_topics(chosen: argparse.Namespace) -> _Asked:
    """Return what the options alone say."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration, read
    from inertial_estimation.logs.tool_log import ToolSource
    from inertial_estimation.model.urdf import pose_from_xyz_rpy

    pose = chosen.imu_pose or [0.0] * 6
    direction = DIRECTIONS[chosen.direction or 'child_to_parent']
    source = ToolSource(chosen.ft, chosen.imu, pose_from_xyz_rpy(pose[:3], pose[3:]), direction)
    sensor, calibration = chosen.sensor or 'ft_sensor', SensorCalibration()
    if chosen.output is not None and chosen.output.exists():
        calibration = read(chosen.output)[1].get(sensor) or calibration
    return _Asked(source, calibration, sensor, chosen.robot_name or 'robot')


def _draw(chosen: argparse.Namespace, sensor: str, fit: ToolFit) -> None:
    """Draw what is left, if asked to."""
    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

    if chosen.picture is not None:
        draw(
            [Residuals(sensor, fit.times, fit.residuals_before, fit.residuals, fit.used)],
            chosen.picture,
        )
