# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What ways of calibrating from the log of a robot have in common on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inertial_estimation.verbs import files

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.logs.predicted_wrenches import Predicted
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.model.robot import Robot


class RobotLog(NamedTuple):
    """What was read."""

    robot: Robot
    predicted: Predicted
    calibrations: dict[str, SensorCalibration]
    """In use so far, in the order of the robot's FT sensors."""
    origin_ns: int
    """Stamp that times are counted from [ns]."""


def add_log(way: argparse.ArgumentParser) -> None:
    """
    Add the options that say which log of which robot.

    Parameters
    ----------
    way : argparse.ArgumentParser
        Of the way.

    """
    way.add_argument('bag', metavar='BAG', help='bag: its folder, or its mcap or db3 file')
    way.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    way.add_argument('--config', required=True, metavar='YAML', help="the node's parameter file")
    way.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact, which carries the robot (default: fixed_link of the parameter '
        'file)',
    )  # fmt: skip
    add_range(way, '--range', 'what is fitted to')


def add_range(way: argparse.ArgumentParser, option: str, what: str, default: str = 'all') -> None:
    """
    Add a time range.

    Parameters
    ----------
    way : argparse.ArgumentParser
        Of the way.
    option, what : str
        The option, and what the range is for.
    default : str, optional
        What is taken without it: 'all' or 'none'.

    """
    way.add_argument(
        option, nargs=2, type=float, metavar=('FROM', 'TO'),
        default=(-inf, inf) if default == 'all' else None,
        help=f'{what}, in seconds after the first FT message (default: {default})',
    )  # fmt: skip


def add_outputs(way: argparse.ArgumentParser) -> None:
    """
    Add where results go besides the terminal.

    Parameters
    ----------
    way : argparse.ArgumentParser
        Of the way.

    """
    way.add_argument(
        '--output', type=Path, metavar='YAML',
        help='calibration file; of one that is there already the other sensors stay (default: no '
        'file)',
    )  # fmt: skip
    way.add_argument(
        '--picture', type=Path, metavar='FILE',
        help='what is left of the readings before and after, over time, as a png, svg or pdf '
        '(default: no file)',
    )  # fmt: skip


def check_files(chosen: argparse.Namespace) -> None:
    """
    Refuse files that could not be written, before the work.

    Parameters
    ----------
    chosen : argparse.Namespace
        What was asked for.

    Raises
    ------
    ConfigError
        If one cannot be written, or is one that is read.

    """
    from inertial_estimation.pictures import require

    config = getattr(chosen, 'config', None)
    inputs = (chosen.bag, getattr(chosen, 'robot', None), *files.config_files(config))
    files.check_outputs((chosen.json, chosen.output, chosen.picture), inputs)
    if chosen.picture is not None:
        require(chosen.picture)


def read_log(
    chosen: argparse.Namespace,
    ranges: Iterator[TimeRange],
    progress: Callable[[str, float], None],
) -> RobotLog:
    """
    Read a log and predict what its FT sensors should say.

    Parameters
    ----------
    chosen : argparse.Namespace
        What was asked for.
    ranges : iterator of TimeRange
        All that is needed of it.
    progress : callable
        Called now and then.

    Returns
    -------
    RobotLog

    Raises
    ------
    InertialEstimationError
        If robot, settings and log do not fit together.

    """
    from inertial_estimation.building import build_robot, sensor_calibrations
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.predicted_wrenches import in_hindsight, predict_wrenches
    from inertial_estimation.logs.recording import TimeRange, read_samples

    urdf = files.load_urdf(chosen.robot)
    settings = in_hindsight(EstimatorSettings.from_yaml(chosen.config))
    with files.naming(chosen.robot):
        robot = build_robot(settings, urdf)
    calibrations = sensor_calibrations(settings, robot)
    recording = read_samples(chosen.bag, robot, settings, progress)
    asked = list(ranges)
    for one in asked:
        recording.within(one)  # Raises if it holds nothing.
    needed = TimeRange(min(one.start for one in asked), max(one.stop for one in asked))
    part = recording.within(needed)
    predicted = predict_wrenches(part, robot, settings, chosen.support, progress)
    return RobotLog(robot, predicted, calibrations, recording.origin_ns)


def save(path: Path | None, robot: str, found: Mapping[str, SensorCalibration]) -> None:
    """
    Write a calibration file, if asked to.

    Parameters
    ----------
    path : Path, optional
        Where to.
    robot : str
        Name of the robot.
    found : mapping of str to SensorCalibration
        By sensor.

    Raises
    ------
    ConfigError
        If the file is of another robot, or cannot be written.

    """
    from inertial_estimation.calibration.calibration_file import write

    if path is not None:
        write(path, robot, found)
