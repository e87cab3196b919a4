# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What ways of calibrating from the bag of a robot have in common on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inertial_estimation.cli import files
from inertial_estimation.verbs.calibrate import common_options
from inertial_estimation.verbs.terminal import escape, show

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.predicted_wrenches import Predicted
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.logs.stretch import Stretch
    from inertial_estimation.model.robot import Robot

LEFT = 'what is left of the readings before and after, over time, as a png, svg or pdf'
"""In the picture of each of these ways."""


class RobotLog(NamedTuple):
    """What was read."""

    robot: Robot
    predicted: Predicted
    calibrations: dict[str, SensorCalibration]
    """In use so far, in the order of the robot's FT sensors."""
    origin_ns: int
    """Stamp that times are counted from [ns]."""


def add_bag(way: argparse.ArgumentParser) -> None:
    """Add the bag, or the part of one, that is calibrated by."""
    way.add_argument(
        'log', metavar='LOG',
        help='bag: its folder, or its mcap or db3 file; a part of one as LOG@FROM:TO, in seconds '
        'after its first FT message',
    )  # fmt: skip


def add_robot(way: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what says which robot it is, and how its sensors are calibrated so far."""
    default = '' if required else ' (default: none)'
    way.add_argument(
        '--robot', required=required, metavar='URDF', help=f'robot description file{default}'
    )
    way.add_argument(
        '--config', required=required, metavar='YAML', help=f"the node's parameter file{default}"
    )
    holds = 'calibration_file of the parameter file'
    common_options.add_calibration(way, holds if required else f'{holds} if there is one, or none')


def add_support(way: argparse.ArgumentParser) -> None:
    """Add the one contact that carries the robot."""
    way.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact, which carries the robot: one frame, as only calibrate offsets '
        'tells anything with several (default: fixed_link of the parameter file)',
    )  # fmt: skip


def stretch_of(chosen: argparse.Namespace) -> Stretch:
    """Return which part of which log is calibrated by."""
    from inertial_estimation.logs.stretch import Stretch

    return Stretch.parse(chosen.log)


def time_range(part: Stretch) -> TimeRange:
    """Return a part of a log as times after its first FT message."""
    from inertial_estimation.logs.recording import TimeRange

    # Joint states may come before the first FT message.
    return TimeRange(part.start or -inf, part.stop)


def check_files(chosen: argparse.Namespace) -> None:
    """Refuse files that could not be written, before the work."""
    from inertial_estimation.pictures import require

    read = (stretch_of(chosen).path, chosen.robot, *files.config_files(chosen.config))
    # What is written may be what was in use: other sensors stay in it.
    files.check_outputs((chosen.json, chosen.picture), (chosen.calibration, *read))
    files.check_outputs((chosen.json, chosen.out, chosen.picture), read)
    if chosen.picture is not None:
        require(chosen.picture)


def settings_of(chosen: argparse.Namespace) -> EstimatorSettings:
    """Return the parameters of the node, with the calibration that was named."""
    from inertial_estimation.config import EstimatorSettings

    _call_by_option(chosen)
    settings = EstimatorSettings.from_yaml(chosen.config)
    if chosen.calibration is None:
        return settings
    common_options.require_calibration(chosen)
    return replace(settings, calibration_file=str(chosen.calibration))


def _call_by_option(chosen: argparse.Namespace) -> None:
    """Have errors call the calibration so far as it was named, if an option did so."""
    if chosen.calibration is not None:
        chosen.names = {**chosen.names, 'calibration_file': '--calibration'}


def say_support(chosen: argparse.Namespace, settings: EstimatorSettings) -> None:
    """Say what carries the robot, before anything else, if nobody named it."""
    if settings.fixed_link and not chosen.support:
        assumed = (
            f'assumed: {settings.fixed_link} alone carries and touches the robot, as it is the '
            'fixed_link and --support names nothing'
        )
        show(f'[yellow]{escape(assumed)}[/]')


def read_log(
    chosen: argparse.Namespace,
    settings: EstimatorSettings,
    ranges: Iterable[TimeRange],
    progress: Callable[[str, float], None],
) -> RobotLog:
    """Read a log and predict what its FT sensors should say."""
    from inertial_estimation.building import build_robot, sensor_calibrations
    from inertial_estimation.logs.predicted_wrenches import in_hindsight, predict_wrenches
    from inertial_estimation.logs.recording import TimeRange, read_samples

    urdf = files.load_urdf(chosen.robot)
    settings = in_hindsight(settings)
    with files.naming(chosen.robot):
        robot = build_robot(settings, urdf)
    calibrations = sensor_calibrations(settings, robot)
    recording = read_samples(stretch_of(chosen).path, robot, settings, progress)
    asked = list(ranges)
    for one in asked:
        recording.within(one)  # Raises if it holds nothing.
    needed = TimeRange(min(one.start for one in asked), max(one.stop for one in asked))
    part = recording.within(needed)
    predicted = predict_wrenches(part, robot, settings, chosen.support, progress)
    return RobotLog(robot, predicted, calibrations, recording.origin_ns)


def save(
    path: Path | None,
    robot: str,
    found: Mapping[str, SensorCalibration],
    *,
    keeps_slopes: bool = False,
) -> None:
    """Write a calibration file, if asked to."""
    from inertial_estimation.calibration.calibration_file import write

    if path is not None:
        write(path, robot, found, keeps_slopes=keeps_slopes)
