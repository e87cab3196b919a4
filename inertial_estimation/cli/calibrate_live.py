# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration with a robot that publishes: live."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli.calibrate_options import (
    DIRECTIONS,
    add_method,
    check_files,
    figures_tables,
    finish,
    former,
    robot_name,
)
from inertial_estimation.cli.render import escape, show
from inertial_estimation.errors import CallError, ConfigError

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.ros.calibration_session import SessionNode


def add(ways: Any) -> None:
    """Add the method."""
    load = {'nargs': 4, 'type': float, 'action': 'append', 'default': [],
            'metavar': ('KG', 'X', 'Y', 'Z'),
            'help': "added mass and its centre about the sensor's origin [m]"}  # fmt: skip
    add_method(
        ways, 'live', 'offset, or matrix with --load, step by step',
        '--ft l_foot_ft --config icub.yaml --robot icub.urdf --load 0.51 0.3 0 0.05 '
        '--load 0.51 0 0.2 0.05 --out icub_ft.yaml', _run, (
            '--config', '--robot', '--ft', '--calibration', '--temperature', '--imu-rpy',
            '--direction', '--robot-name', '--out',
            ('--imu', {'metavar': 'NAME|TOPIC', 'default': '',
                       'help': "IMU, or 'fixed link' (default: the nearest)"}),
            ('--readings', {'metavar': 'TOPIC', 'help': 'of the FT sensor, without --config'}),
            ('--load', load),
            ('--estimator', {'metavar': 'NAME', 'default': 'wrench_estimator',
                             'help': "node to hand it to, '' for none"}),
            ('--namespace', {'metavar': 'NS', 'default': '', 'help': 'of the session'}),
        ),
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> None:
    """Run a session, and hand its result to the estimator."""
    of_topics = {'--readings': chosen.readings, '--imu-rpy': chosen.imu_rpy,
                 '--direction': chosen.direction}  # fmt: skip
    wrong = of_topics if chosen.config else {'--robot': chosen.robot}
    if given := [name for name, value in wrong.items() if value]:
        raise CallError(f'{given[0]} {"excludes" if chosen.config else "needs"} --config')
    if not chosen.config and not (chosen.readings and chosen.imu):
        raise CallError('name --config, or both --readings and --imu')
    if any(one[0] < 0.0 or not all(map(isfinite, one)) for one in chosen.load):
        raise CallError('--load is a mass, 0 kg or more, and its centre [m]')
    check_files(chosen, (chosen.config, chosen.robot))
    if find_spec('rclpy') is None:
        raise ConfigError('a live session needs ROS')
    from inertial_estimation.calibration.calibration_file import others_in
    from inertial_estimation.ros.calibration_session import collect, hand_over, session_node

    chosen.names = chosen.names | {'sensor': '--ft', 'loads': '--load'}
    with session_node(chosen.namespace) as node:
        feed, session = set_up(chosen, node)
        if chosen.out is not None:
            others_in(chosen.out, chosen.robot_name, {chosen.ft: session.axes})
        collect(node, feed, session)
        given = chosen.temperature
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        found = session.outcome(date, given if isfinite(given) else feed.temperature)
        figures = {'sensor': chosen.ft, 'date': date, 'gravity': feed.gravity, **found.figures}
        tables = figures_tables(chosen.ft, figures)
        calibrations = {chosen.ft: found.calibration}
        finish(chosen, chosen.robot_name, calibrations, found.findings, figures, tables)
        if chosen.out is not None and chosen.estimator:
            show(escape(hand_over(node, chosen.estimator, chosen.out)[1]))


def set_up(chosen: argparse.Namespace, node: SessionNode) -> tuple[Any, Any]:
    """Return feed and session; complete the file to write and its robot."""
    import numpy as np
    from pinocchio.rpy import rpyToMatrix

    from inertial_estimation.calibration.calibration_file import SensorCalibration, read
    from inertial_estimation.calibration.configured_estimator import (
        calibration_path,
        sensor_calibrations,
    )
    from inertial_estimation.calibration.session import Load, Session
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.ros.calibration_session import RobotFeed, TopicFeed, find_description

    before: SensorCalibration | None = former(chosen)
    feed: Any
    rotation: Any
    if chosen.config:
        settings = EstimatorSettings.from_yaml(chosen.config)
        urdf = find_description(node, settings, chosen.robot)
        feed = RobotFeed(node, settings, urdf, chosen.ft, chosen.imu)
        direction, rotation = feed.body.sensor.direction, np.eye(3)
        if before is None:
            before = sensor_calibrations(settings, feed.robot, new_file=True)[chosen.ft]
            # Without a calibration it may read counts.
            before = None if before.same_as(SensorCalibration()) else before
        chosen.robot_name = chosen.robot_name or feed.robot.name
        chosen.out = chosen.out or calibration_path(settings)
    else:
        feed = TopicFeed(node, chosen.readings, chosen.imu)
        direction = DIRECTIONS[chosen.direction or 'child_to_parent']
        rotation = None if chosen.imu_rpy is None else rpyToMatrix(*chosen.imu_rpy)
        if before is None and chosen.out is not None and chosen.out.exists():
            before = read(chosen.out)[1].get(chosen.ft)
        chosen.robot_name = robot_name(chosen)
    loads = [Load(mass, tuple(centre)) for mass, *centre in chosen.load]
    return feed, Session(
        chosen.ft, feed.gravity, loads, before=before, rotation=rotation, direction=direction
    )
