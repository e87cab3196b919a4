# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Setup of a calibration session (robot, topics, former calibration), and handover of its file."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pinocchio.rpy import rpyToMatrix
from rcl_interfaces.srv import GetParameters
from rclpy.executors import Executor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

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
from inertial_estimation.model.urdf import is_xml, load_text
from inertial_estimation.ros.calibration_feeds import RobotFeed, Take, TopicFeed
from inertial_estimation.ros.subscriptions import LATCHED

DESCRIPTION, PARAMETER = 'robot_description', 'calibration_file'
WAIT = 10.0
"""
For the robot description, and for a service [s]: participants are announced anew every three
seconds, and the first time may be missed on a busy machine.
"""
ANSWER = 20.0
"""For an answer [s]."""
SOME_ROBOT = 'robot'
"""Name in a file for which no robot is named."""


@dataclass
class Setup:
    """Sources and former calibration of a session."""

    node: Node
    feed: TopicFeed | RobotFeed
    before: SensorCalibration | None
    """Of the sensor; None: not known."""
    output: Path | None
    """File for the calibration."""
    robot: str
    """Name of the robot in that file."""
    rotation: np.ndarray | None
    direction: int
    notes: tuple[str, ...] = ()

    def complaints(self) -> list[str]:
        """Return faults of the topics that readings need."""
        found, feed = [], self.feed
        names = {feed.body.sensor.name, feed.body.imu_name} if isinstance(feed, RobotFeed) else ()
        for source in feed.sources:
            if names and source.kind not in ('joints', 'contacts') and source.name not in names:
                continue
            topic = self.node.resolve_topic_name(source.topic)
            if source.kind != 'contacts' and not self.node.count_publishers(topic):
                found.append(f"no publisher of '{topic}'")
            found += [f"'{source.topic}': {why}" for why, _ in source.problems.most_common(1)]
        return found


def set_up(node: Node, executor: Executor, job: dict[str, Any], take: Take) -> Setup:
    """Find the former calibration and the robot, and subscribe."""
    sensor, given = job['ft'], job['calibration']
    output = Path(job['out']) if job['out'] else None
    name, before, notes = '', None, ()
    if job['config']:
        settings = EstimatorSettings.from_yaml(job['config'])
        urdf = _description(node, executor, settings, job['robot'])
        feed: Any = RobotFeed(node, settings, urdf, sensor, job['imu'] or '', take)
        name, rotation, direction = feed.robot.name, np.eye(3), feed.body.sensor.direction
        path = calibration_path(settings)
        saved = read(path)[1] if path is not None and path.exists() else {}
        # A calibration in other axes, which the node refuses, is replaced.
        refused = sensor in saved and saved[sensor].axes != SENSOR
        if given is None:
            before = (saved if refused else sensor_calibrations(
                settings, feed.robot, new_file=True))[sensor]  # fmt: skip
            if as_entry(before) == as_entry(SensorCalibration()):
                # Without a calibration it may read counts.
                before = None
        output, ft = output or path, settings.ft_of(sensor)
        twice = [f'ft.{sensor}.{key}' for key in ('matrix', 'offset') if any(getattr(ft, key))]
        if twice and output is not None:
            notes = (f'before the next start take {", ".join(twice)} out of the parameters',)
    else:
        feed = TopicFeed(node, job['readings'], job['imu'], take)
        angles, direction = job['imu_rpy'], job['direction']
        rotation = None if angles is None else rpyToMatrix(*angles)
        if given is None and output is not None and output.exists():
            name, saved = read(output)
            before = saved.get(sensor)
    if given is not None:
        of, sensors = read(given)
        if sensor not in sensors:
            raise NameNotFound('FT sensor', sensor, sensors, f"--calibration names '{given}'")
        name, before = name or of, sensors[sensor]
    robot = job['robot_name'] or name or SOME_ROBOT
    return Setup(node, feed, before, output, robot, rotation, direction, notes)


def plan_of(job: dict[str, Any], setup: Setup) -> Plan:
    """Return the plan of a session, unless the file to write could not take its result."""
    loads = tuple(Load(name, mass, tuple(centre)) for name, mass, *centre in job['loads'])
    plan = Plan(
        job['ft'], setup.feed.gravity, loads, setup.before, setup.rotation, setup.direction,
        Wanted(job['moments'], job['directions'], job['spread']),
    )  # fmt: skip
    if setup.output is not None:
        others_in(setup.output, setup.robot, {plan.sensor: plan.wrench_axes})
    return plan


def _description(
    node: Node, executor: Executor, settings: EstimatorSettings, given: str | None
) -> str:
    """Return the URDF from a file, the parameters or the topic, in that order."""
    if settings.robot_description and not given:
        return settings.robot_description
    if path := given or settings.robot_description_file:
        return load_text(Path(path))
    heard: list[String] = []
    subscription = node.create_subscription(String, DESCRIPTION, heard.append, LATCHED)
    _spin(executor, lambda: bool(heard), WAIT)
    node.destroy_subscription(subscription)
    topic = node.resolve_topic_name(DESCRIPTION)
    if not heard:
        raise ConfigError(
            f"no robot description came on '{topic}' within {WAIT:g} s: name a file with --robot"
        )
    if not is_xml(text := str(heard[-1].data)):
        raise ConfigError(f"'{topic}' holds no URDF")
    return text


class Handover(NamedTuple):
    """Result of a handover."""

    done: bool
    """Whether the estimator uses the file."""
    answer: str
    """Of the estimator, or why it was not asked."""


def hand_over(node: Node, executor: Executor, estimator: str, path: Path) -> Handover:
    """Ask a running estimator to use a calibration file."""
    name = node.resolve_service_name(f'{estimator}/restore').removesuffix('/restore')
    got = _call(
        node, executor, GetParameters, f'{name}/get_parameters',
        GetParameters.Request(names=[PARAMETER]),
    )  # fmt: skip
    if got is None:
        return Handover(False, f"no estimator answers as '{name}'")
    used = got.values[0].string_value if got.values else ''
    if not used or Path(used).expanduser().resolve() != path.resolve():
        return Handover(False, f"'{PARAMETER}' of '{name}' is '{used}', not '{path}'")
    answer = _call(node, executor, Trigger, f'{name}/restore', Trigger.Request())
    if answer is None:
        return Handover(False, f"'{name}' does not answer on ~/restore")
    return Handover(bool(answer.success), f"'{name}': {answer.message}")


def _call(node: Node, executor: Executor, kind: Any, service: str, request: Any) -> Any:
    """Return the answer of a service; None: there is none."""
    client = node.create_client(kind, service)
    try:
        if not _spin(executor, client.service_is_ready, WAIT):
            return None
        future = client.call_async(request)
        return future.result() if _spin(executor, future.done, ANSWER) else None
    finally:
        node.destroy_client(client)


def _spin(executor: Executor, condition: Callable[[], bool], seconds: float) -> bool:
    """Spin until something holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        executor.spin_once(timeout_sec=0.05)
    return True
