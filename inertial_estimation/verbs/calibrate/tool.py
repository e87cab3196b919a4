# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate tool``: what hangs on an FT sensor, from free motion."""

from __future__ import annotations

import argparse
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from inertial_estimation.cli import files
from inertial_estimation.errors import CallError
from inertial_estimation.verbs.calibrate.common_options import (
    add_accelerometer_offset,
    add_outputs,
    add_placement,
    add_robot_name,
    add_sensor,
    before,
    direction_of,
    robot_name,
)
from inertial_estimation.verbs.calibrate.log_options import (
    LEFT,
    add_bag,
    add_robot,
    check_files,
    save,
    settings_of,
    stretch_of,
    time_range,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.tool import ToolFit
    from inertial_estimation.logs.tool_log import ToolSource

WITHOUT = 'without a robot: '
NAMES = {
    'ft': '--ft', 'imu': '--imu', 'direction': '--direction', 'sensor_H_imu': '--imu-rpy',
    'inertia': '--inertia', 'most_delay': '--most-delay', 'n_blocks': '--blocks',
}  # fmt: skip
"""What arguments of the library are called here."""
OF_ROBOT = {'direction': 'measure_direction of --robot', 'sensor_H_imu': 'its pose in --robot'}
"""What some are called where a description of the robot says them."""


def add(ways: Any) -> None:
    """Add the way that identifies a tool."""
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
        '--accelerometer-offset takes it out. With --robot and --config, --imu is the name of an '
        'IMU; else it is a topic, --readings is that of the FT sensor, and --imu-rpy, --imu-xyz '
        'and --direction say how the two sit'
    )
    add_bag(way)
    add_robot(way, required=False)
    add_sensor(way)
    way.add_argument(
        '--imu', required=True, metavar='NAME|TOPIC',
        help='IMU that is fixed to the tool: of a robot its name, else its topic',
    )  # fmt: skip
    way.add_argument(
        '--readings', metavar='TOPIC',
        help='without a robot: WrenchStamped of the FT sensor (default: none)',
    )  # fmt: skip
    add_placement(way, WITHOUT, 'all zero')
    way.add_argument(
        '--imu-xyz', nargs=3, type=float, metavar=('X', 'Y', 'Z'),
        help=f"{WITHOUT}origin of the IMU in the sensor's frame [m] (default: all zero)",
    )  # fmt: skip
    add_accelerometer_offset(way, 'all zero')
    way.add_argument(
        '--inertia', action='store_true', help='identify the inertia too (default: no)'
    )
    way.add_argument(
        '--most-delay', type=float, default=0.05, metavar='S',
        help='by which the IMU may be later or earlier (default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--blocks', type=int, default=10, metavar='N',
        help='parts of the log whose differences tell deviations (default: %(default)s)',
    )  # fmt: skip
    add_robot_name(way, 'that of its description, or as in the calibration file that is read')
    add_outputs(way, LEFT)
    way.set_defaults(run=_run, names=NAMES)


class _Asked(NamedTuple):
    """What is read, and what it is called."""

    source: ToolSource
    calibration: SensorCalibration
    """In use so far."""
    robot: str


def _run(chosen: argparse.Namespace) -> None:
    """Identify a tool."""
    from inertial_estimation.calibration.tool import ToolSettings, fit_tool
    from inertial_estimation.logs.calibration_figures import date_of, tool_dict, tool_tables
    from inertial_estimation.logs.tool_log import read_tool_log, tool_calibration

    check_files(chosen)
    asked = _on_robot(chosen) if chosen.robot or chosen.config else _by_topics(chosen)
    settings = ToolSettings(
        direction=asked.source.direction, inertia=chosen.inertia, most_delay=chosen.most_delay,
        n_blocks=chosen.blocks,
    )  # fmt: skip
    part = stretch_of(chosen)
    with progress_bars() as progress:
        log = read_tool_log(
            part.path, asked.source, time_range(part), asked.calibration,
            chosen.accelerometer_offset or (0.0, 0.0, 0.0),
        )  # fmt: skip
        progress('reading', 1.0)
        fit = fit_tool(log.motion, settings, name=chosen.ft)
        progress('fitting', 1.0)
    found = tool_calibration(fit, asked.calibration, date_of(log.origin_ns))
    files.write_json(chosen.json, tool_dict(fit))
    _draw(chosen, fit)
    show(*(table(*drawn) for drawn in tool_tables(chosen.ft, fit)))
    if fit.delay_deviation < inf and abs(fit.delay) > fit.delay_deviation:
        later = asked.source.imu_time_offset - fit.delay
        show(escape(f'time_offset of the IMU, if the FT sensor has none: {later:.5f}'))
    # At the end: what was found is seen even if it does not belong into that file.
    save(chosen.out, asked.robot, {chosen.ft: found}, keeps_slopes=True)


def _on_robot(chosen: argparse.Namespace) -> _Asked:
    """Return what the description of a robot and the node's parameters say."""
    from inertial_estimation.building import build_robot, sensor_calibrations
    from inertial_estimation.logs.tool_log import source_on_robot

    if not (chosen.robot and chosen.config):
        raise CallError('--robot and --config go together: give both, or topics')
    for option in ('readings', 'imu_rpy', 'imu_xyz', 'direction'):
        if getattr(chosen, option):
            raise CallError(
                f'--{option.replace("_", "-")} is what --robot and --config say: leave it out'
            )
    chosen.names = NAMES | OF_ROBOT
    urdf = files.load_urdf(chosen.robot)
    settings = settings_of(chosen)
    with files.naming(chosen.robot):
        robot = build_robot(settings, urdf)
    source = source_on_robot(robot, settings, chosen.ft, chosen.imu)
    calibration = sensor_calibrations(settings, robot, new_file=True)[chosen.ft]
    return _Asked(source, calibration, chosen.robot_name or robot.name)


def _by_topics(chosen: argparse.Namespace) -> _Asked:
    """Return what the options alone say."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.wrench_axes import require_sensor_axes
    from inertial_estimation.logs.tool_log import ToolSource
    from inertial_estimation.model.urdf import pose_from_xyz_rpy

    if not chosen.readings:
        raise CallError(
            'without a robot nothing says what the FT sensor reads: name its topic with '
            '--readings, or give --robot and --config'
        )
    zero = [0.0] * 3
    pose = pose_from_xyz_rpy(chosen.imu_xyz or zero, chosen.imu_rpy or zero)
    source = ToolSource(chosen.readings, chosen.imu, pose, direction_of(chosen))
    calibration = before(chosen) or SensorCalibration()
    require_sensor_axes(chosen.ft, calibration.axes)
    return _Asked(source, calibration, robot_name(chosen))


def _draw(chosen: argparse.Namespace, fit: ToolFit) -> None:
    """Draw what is left, if asked to."""
    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

    if chosen.picture is not None:
        draw(
            [Residuals(chosen.ft, fit.times, fit.residuals_before, fit.residuals, fit.used)],
            chosen.picture,
        )
