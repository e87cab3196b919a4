# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration session with a robot that publishes: its node, its readings, and their use."""

import os
import select
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.calibration.in_situ_offset import InSituOffset
from inertial_estimation.calibration.session import BodyReadings, Reading, Session
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.urdf import is_xml, load_text
from inertial_estimation.ros.executors import PolledGroup, PollingNode, init
from inertial_estimation.ros.polled_inputs import PolledInputs
from inertial_estimation.ros.subscriptions import (
    LATCHED,
    POLLED_QUEUE,
    Inputs,
    deserialize,
    subscribe,
    waiting,
)
from inertial_estimation.sample import Sample
from inertial_estimation.signals.router import Source

NODE, DESCRIPTION, PARAMETER = 'ft_calibration', 'robot_description', 'calibration_file'
WAIT = 10.0
"""
For the robot description, and for a service [s]: participants are announced anew every three
seconds, and the first time may be missed on a busy machine.
"""
ANSWER = 60.0
"""For an answer [s]: an estimator starts a process that reads the file."""
MAX_SILENCE, LINE_PERIOD = 1.0, 2.0
"""Time without readings until it is reported, and between two lines of the progress [s]."""
MAX_IMU_AGE_NS = 100_000_000
SAMPLE_NS = 5_000_000
"""Time between samples of a robot, of which 40 make a still pose [ns]."""


class SessionNode(PollingNode):
    """Node of a session, which spins itself."""

    def __init__(self, **kwargs) -> None:
        super().__init__(NODE, **kwargs)
        self.is_asked = False
        """True if the session is to end with the poses it has."""
        self.create_service(Trigger, '~/proceed', self._ask)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)

    def destroy_node(self) -> None:
        """Destroy the executor too."""
        self._executor.shutdown()
        super().destroy_node()

    def spin_until(self, condition: Callable[[], Any], seconds: float) -> Any:
        """Spin until something holds; return whether it does."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=0.05)
        return condition()

    def call(self, kind: Any, service: str, request: Any) -> Any:
        """Return the answer of a service; None: there is none."""
        client = self.create_client(kind, service)
        try:
            if not self.spin_until(client.service_is_ready, WAIT):
                return None
            future = client.call_async(request)
            return future.result() if self.spin_until(future.done, ANSWER) else None
        finally:
            self.destroy_client(client)

    def _ask(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        self.is_asked = True
        answer.success, answer.message = True, 'see the terminal'
        return answer


@contextmanager
def session_node(namespace: str) -> Iterator[SessionNode]:
    """Make the node of a session."""
    init([])
    node = SessionNode(namespace=namespace)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


class TopicFeed:
    """Readings of two topics: of an FT sensor, and of an IMU on the body beyond it."""

    temperature, axes = float('nan'), 'accelerometer'

    def __init__(self, node: Node, ft_topic: str, imu_topic: str) -> None:
        self.gravity = f"the accelerometer of '{imu_topic}'"
        self.sources = [
            Source(kind, topic, topic, deserialize)
            for kind, topic in (('imu', imu_topic), ('ft', ft_topic))
        ]
        group = PolledGroup()
        self._subscriptions = [
            subscribe(node, one, POLLED_QUEUE, one.read, group) for one in self.sources
        ]
        self._imus: list[Any] = []

    def readings(self) -> Iterator[Reading]:
        """Yield FT readings that wait with the newest acceleration that is not later."""
        imus, fts = (
            [found for data in waiting(one) if (found := source.read(data)) is not None]
            for one, source in zip(self._subscriptions, self.sources, strict=True)
        )
        self._imus = (self._imus + imus)[-POLLED_QUEUE:]
        stamps = [imu.stamp_ns for imu in self._imus]
        for ft in fts:
            k = bisect_right(stamps, ft.stamp_ns) - 1
            if k < 0 or ft.stamp_ns - stamps[k] > MAX_IMU_AGE_NS:
                yield Reading(ft.stamp_ns, ft.values, np.full(3, np.nan))
            else:
                imu = self._imus[k]
                yield Reading(
                    ft.stamp_ns, ft.values, imu.linear_acceleration, imu.angular_velocity
                )


class RobotFeed:
    """Readings of one sensor of a robot, with gravity through its joints."""

    axes = 'sensor'

    def __init__(
        self, node: Node, settings: EstimatorSettings, urdf: str, sensor: str, imu: str
    ) -> None:
        # Nothing is to be filtered, and at rest nothing accelerates.
        settings = replace(
            settings,
            filter=replace(settings.filter, delay=0.0, smooth_readings=False),
            joint_states=replace(
                settings.joint_states, acceleration_source='zero', velocity_source='message'
            ),
            angular_acceleration_source='zero',
        )
        self.robot = build_robot(settings, urdf)
        self.body = BodyReadings(self.robot, sensor, imu)
        self.gravity = self.body.gravity
        self._inputs = inputs = Inputs(node, settings, self.robot)
        names = {sensor, self.body.imu_name}
        self.sources = [
            one for one in inputs.router.sources if one.kind == 'joints' or one.name in names
        ]
        self._row = self.robot.ft_sensors.index(self.body.sensor)
        self._temperatures: list[float] = []
        self._readings: list[Reading] = []
        self.destroy = PolledInputs(node, inputs, self._take).destroy

    @property
    def temperature(self) -> float:
        """Mean of the sensor's temperature so far [degrees Celsius]; NaN: not known."""
        return float(np.mean(self._temperatures)) if self._temperatures else float('nan')

    def readings(self) -> list[Reading]:
        """Return the readings since the last call."""
        found, self._readings = self._readings, []
        return found

    def _take(self, sample: Sample) -> None:
        self._inputs.assembler.wanted_ns = sample.stamp_ns + SAMPLE_NS
        if sample.ft_temperatures is not None and np.isfinite(sample.ft_temperatures[self._row]):
            self._temperatures.append(float(sample.ft_temperatures[self._row]))
        contacts = self._inputs.contacts.at(sample.stamp_ns)
        self._readings.append(self.body.reading(sample, contacts))


def find_description(node: SessionNode, settings: EstimatorSettings, given: str | None) -> str:
    """Return the URDF from a file, the parameters or the topic, in that order."""
    if settings.robot_description and not given:
        return settings.robot_description
    if path := given or settings.robot_description_file:
        return load_text(Path(path).expanduser())
    heard: list[String] = []
    subscription = node.create_subscription(String, DESCRIPTION, heard.append, LATCHED)
    node.spin_until(lambda: heard, WAIT)
    node.destroy_subscription(subscription)
    topic = node.resolve_topic_name(DESCRIPTION)
    if not heard:
        raise ConfigError(
            f"no robot description came on '{topic}' within {WAIT:g} s: name a file with --robot"
        )
    if not is_xml(text := str(heard[-1].data)):
        raise ConfigError(f"'{topic}' holds no URDF")
    return text


def collect(node: SessionNode, feed: TopicFeed | RobotFeed, session: Session) -> InSituOffset:
    """Collect until the poses suffice, or determine an offset and Enter is pressed; return it."""
    shown, shown_at, heard_at = '', 0.0, 0.0
    while session.offset is None or session.lacking:
        node.spin_until(lambda: False, 0.05)
        now = time.monotonic()
        for reading in feed.readings():
            heard_at = now
            session.update(reading)
        if node.is_asked or is_line_typed():
            node.is_asked = False
            if session.offset is not None:
                break
            sys.stderr.write(f'cannot end: {session.lacking}\n')
        if now - shown_at < LINE_PERIOD:
            continue
        instruction = 'no readings' if now - heard_at > MAX_SILENCE else session.instruction()
        line = '; '.join((instruction, *complaints(node, feed)))
        if line != shown:
            # Results that are piped go to standard output.
            sys.stderr.write(f'{line}\n')
            shown, shown_at = line, now
    return session.offset


def is_line_typed() -> bool:
    """Return true if lines waited on standard input."""
    return bool(select.select([0], [], [], 0.0)[0] and os.read(0, 1024))


def complaints(node: Node, feed: TopicFeed | RobotFeed) -> Iterator[str]:
    """Yield faults of the topics that readings need."""
    for source in feed.sources:
        if not node.count_publishers(node.resolve_topic_name(source.topic)):
            yield f"no publisher of '{source.topic}'"
        yield from (f"'{source.topic}': {why}" for why, _ in source.problems.most_common(1))


def hand_over(node: SessionNode, estimator: str, path: Path) -> tuple[bool, str]:
    """Ask a running estimator to use a calibration file; return whether it does, and why not."""
    name = node.resolve_service_name(f'{estimator}/restore').removesuffix('/restore')
    request = GetParameters.Request(names=[PARAMETER])
    if (got := node.call(GetParameters, f'{name}/get_parameters', request)) is None:
        return False, f"no estimator answers as '{name}'"
    used = got.values[0].string_value if got.values else ''
    if not used or Path(used).expanduser().resolve() != path.resolve():
        return False, f"'{PARAMETER}' of '{name}' is '{used}', not '{path}'"
    answer = node.call(Trigger, f'{name}/restore', Trigger.Request())
    if answer is None:
        return False, f"'{name}' does not answer on ~/restore"
    return bool(answer.success), f"'{name}': {answer.message}"
