# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Setup of a calibration session: robot, topics, former calibration."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pinocchio.rpy import rpyToMatrix
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.calibration_file import (
    SENSOR,
    SensorCalibration,
    as_entry,
    others_in,
    read,
)
from inertial_estimation.calibration.collection import Wanted
from inertial_estimation.calibration.configured_estimator import (
    calibration_path,
    sensor_calibrations,
)
from inertial_estimation.calibration.session import Load, Plan
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import is_xml, load_text
from inertial_estimation.ros.calibration_feeds import RobotFeed, TopicFeed

DESCRIPTION = 'robot_description'
WAIT = 10.0
"""For the robot description [s]."""
SOME_ROBOT = 'robot'
"""Name in a file of which no name is known."""
Take = Callable[[Reading], None]


@dataclass
class Setup:
    """Sources and former calibration of a session."""

    node: Node
    feed: TopicFeed | RobotFeed
    before: SensorCalibration | None
    """Of the sensor; None: not known."""
    output: Path | None
    """Where the calibration goes."""
    robot: str
    """Name of the robot in that file."""
    rotation: np.ndarray | None
    direction: int
    notes: tuple[str, ...] = ()

    def complaints(self) -> list[str]:
        """Return faults of the topics."""
        found = []
        for source in self._relevant():
            if source.kind != 'contacts' and not self.node.count_publishers(
                self.node.resolve_topic_name(source.topic)
            ):
                found.append(f"no publisher of '{self.node.resolve_topic_name(source.topic)}'")
            found += [f"'{source.topic}': {why}" for why, _ in source.problems.most_common(1)]
        return found

    def _relevant(self) -> list[Any]:
        """Return the sources of which readings are made."""
        if isinstance(self.feed, TopicFeed):
            return self.feed.sources
        names = {self.feed.body.sensor.name, self.feed.body.imu_name}
        return [
            one for one in self.feed.sources
            if one.kind in ('joints', 'contacts') or one.name in names
        ]  # fmt: skip


def set_up(node: Node, executor: Executor, job: dict[str, Any], take: Take) -> Setup:
    """Find out what a session needs, and subscribe."""
    return _of_robot(node, executor, job, take) if job['config'] else _of_topics(node, job, take)


def plan_of(job: dict[str, Any], setup: Setup) -> Plan:
    """Return what is to be calibrated, unless the file to write could not take it in the end."""
    loads = tuple(Load(name, mass, tuple(centre)) for name, mass, *centre in job['loads'])
    plan = Plan(
        job['sensor'], setup.feed.gravity, loads, setup.before, setup.rotation, setup.direction,
        Wanted(job['moments'], job['directions'], job['spread']),
    )  # fmt: skip
    if setup.output is not None:
        others_in(setup.output, setup.robot, {plan.sensor: plan.wrench_axes})
    return plan


def _of_topics(node: Node, job: dict[str, Any], take: Take) -> Setup:
    """Set up for two topics; of the robot nothing is known."""
    sensor, given = job['sensor'], job['calibration']
    output = Path(job['output']) if job['output'] else None
    robot, before = job['robot_name'], None
    if given is not None:
        name, sensors = read(given)
        if sensor not in sensors:
            raise NameNotFound('FT sensor', sensor, sensors, f"--calibration names '{given}'")
        robot, before = robot or name, sensors[sensor]
    elif output is not None and output.exists():
        name, sensors = read(output)
        robot, before = robot or name, sensors.get(sensor)
    angles = job['rotation']
    return Setup(
        node, TopicFeed(node, job['ft_topic'], job['imu_topic'], take), before, output,
        robot or SOME_ROBOT, None if angles is None else rpyToMatrix(*angles),
        job['direction'],
    )  # fmt: skip


def _of_robot(node: Node, executor: Executor, job: dict[str, Any], take: Take) -> Setup:
    """Set up for a robot with the parameters of its estimator."""
    settings = EstimatorSettings.from_yaml(job['config'])
    urdf = _description(node, executor, settings, job['robot'])
    feed = RobotFeed(node, settings, urdf, job['sensor'], job['imu'] or '', take)
    name, sensor = feed.robot.name, job['sensor']
    if job['calibration'] is not None:
        _, sensors = read(job['calibration'])
        if sensor not in sensors:
            raise NameNotFound(
                'FT sensor', sensor, sensors, f"--calibration names '{job['calibration']}'"
            )
        before = sensors[sensor]
    else:
        before = _former(settings, feed.robot, sensor)
        if as_entry(before) == as_entry(SensorCalibration()):
            # Nobody calibrated it: it may read counts.
            before = None
    output = Path(job['output']) if job['output'] else calibration_path(settings)
    given = settings.ft_of(sensor)
    twice = [f'ft.{sensor}.{key}' for key in ('matrix', 'offset') if any(getattr(given, key))]
    notes = ()
    if twice and output is not None:
        notes = (f'before the next start take {", ".join(twice)} out of the parameters',)
    return Setup(
        node, feed, before, output, job['robot_name'] or name, np.eye(3),
        feed.body.sensor.direction, notes,
    )  # fmt: skip


def _former(settings: EstimatorSettings, robot: Robot, sensor: str) -> SensorCalibration:
    """Return what the node uses for a sensor, or what it refuses and is calibrated anew for."""
    path = calibration_path(settings)
    saved = read(path)[1] if path is not None and path.exists() else {}
    if sensor in saved and saved[sensor].axes != SENSOR:
        return saved[sensor]
    return sensor_calibrations(settings, robot, new_file=True)[sensor]


def _description(
    node: Node, executor: Executor, settings: EstimatorSettings, given: str | None
) -> str:
    """Return the robot description from a file, the parameters or the topic, in that order."""
    if settings.robot_description and not given:
        return settings.robot_description
    if path := given or settings.robot_description_file:
        return load_text(Path(path))
    heard: list[String] = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = node.create_subscription(String, DESCRIPTION, heard.append, latched)
    deadline = time.monotonic() + WAIT
    while not heard and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.05)
    node.destroy_subscription(subscription)
    if not heard:
        topic = node.resolve_topic_name(DESCRIPTION)
        raise ConfigError(
            f"no robot description came on '{topic}' within {WAIT:g} s: name a file with --robot"
        )
    text = str(heard[-1].data)
    if not is_xml(text):
        raise ConfigError(f"'{node.resolve_topic_name(DESCRIPTION)}' holds no URDF")
    return text
