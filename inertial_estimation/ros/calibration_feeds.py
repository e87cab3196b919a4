# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of a calibration session: of two topics, or of a robot with all its sensors."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.node import Node

from inertial_estimation.calibration.body_readings import BodyReadings, Reading
from inertial_estimation.calibration.collection import CONTACT
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.executors import PolledGroup, SteadyTimer
from inertial_estimation.ros.subscriptions import (
    POLL_PERIOD,
    Inputs,
    PolledSubscriptions,
    deserialize,
    subscribe,
    waiting,
)
from inertial_estimation.sample import Sample
from inertial_estimation.signals.messages import ImuReading
from inertial_estimation.signals.router import CONTACTS, Source

QUEUE = 1000
"""Messages that may wait: a second of a fast sensor."""
MAX_IMU_AGE_NS = 100_000_000
CONTACT_NS = 100_000_000
"""Lifetime of a contact that is not repeated, as `contact_timeout` [ns]."""
NO_IMU = 'no acceleration at that time'
SAMPLE_NS = 5_000_000
"""Time between samples of a robot, of which 40 make a still pose [ns]."""
Take = Callable[[Reading], None]


class TopicFeed:
    """Readings of two topics: of an FT sensor, and of an IMU on the body beyond it."""

    temperature = float('nan')

    def __init__(self, node: Node, ft_topic: str, imu_topic: str, take: Take) -> None:
        self._node, self._take = node, take
        self.gravity = f"the accelerometer of '{imu_topic}'"
        self.sources = [
            Source('imu', imu_topic, imu_topic, deserialize),
            Source('contacts', CONTACTS, CONTACTS, deserialize),
            Source('ft', ft_topic, ft_topic, deserialize),
        ]
        group = PolledGroup()
        self._subscriptions = [
            subscribe(node, one, QUEUE, one.read, group) for one in self.sources
        ]
        self._imu: ImuReading | None = None
        self._imus: deque[ImuReading] = deque(maxlen=QUEUE)
        self._contact_ns = 0
        self._timer = SteadyTimer(node, POLL_PERIOD, self._poll)

    def begin(self) -> None:
        """Begin a data set; nothing is known of joints."""

    def destroy(self) -> None:
        """Destroy timer and subscriptions."""
        self._timer.destroy()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _poll(self) -> None:
        """Pair all FT readings that wait with the newest acceleration that is not later."""
        imus, contacts, fts = (list(self._waiting(k)) for k in range(3))
        self._imus.extend(imus)
        self._contact_ns = max([self._contact_ns, *(one.stamp_ns for one in contacts)])
        for one in fts:
            stamp_ns = one.stamp_ns
            while self._imus and self._imus[0].stamp_ns <= stamp_ns:
                self._imu = self._imus.popleft()
            imu = self._imu
            if imu is None or abs(stamp_ns - imu.stamp_ns) > MAX_IMU_AGE_NS:
                self._take(Reading(stamp_ns, one.values, np.full(3, np.nan), None, NO_IMU))
                continue
            reason = CONTACT if abs(stamp_ns - self._contact_ns) <= CONTACT_NS else ''
            self._take(Reading(
                stamp_ns, one.values, imu.linear_acceleration, imu.angular_velocity, reason
            ))  # fmt: skip

    def _waiting(self, k: int) -> Iterator[Any]:
        """Yield readings that wait in a subscription and have a stamp."""
        for data in waiting(self._subscriptions[k]):
            reading = self.sources[k].read(data)
            if reading is not None and reading.stamp_ns > 0:
                yield reading


class RobotFeed:
    """Readings of one sensor of a robot, with gravity through its joints."""

    def __init__(
        self, node: Node, settings: EstimatorSettings, urdf: str, sensor: str, imu: str, take: Take
    ) -> None:
        # Nothing is to be filtered, and at rest nothing accelerates.
        settings = replace(
            settings,
            filter=replace(settings.filter, delay=0.0, smooth_readings=False),
            joint_states=replace(
                settings.joint_states, acceleration_source='zero', velocity_source='message'
            ),
            angular_acceleration_source='zero',
            queue_depth=QUEUE,
        )
        self.robot = build_robot(settings, urdf)
        self.body = BodyReadings(self.robot, sensor, imu)
        self.gravity, self.begin = self.body.gravity, self.body.begin
        self._take_reading = take
        self._inputs = inputs = Inputs(node, settings, self.robot)
        self._row = self.robot.ft_sensors.index(self.body.sensor)
        self._warmth, self._n_warm = 0.0, 0
        polled = PolledSubscriptions(node, inputs.router, inputs.assembler, settings, self._take)
        self.sources, self.destroy = inputs.router.sources, polled.destroy

    @property
    def temperature(self) -> float:
        """Mean of the sensor's temperature so far [degrees Celsius]; NaN: not known."""
        return self._warmth / self._n_warm if self._n_warm else float('nan')

    def _take(self, sample: Sample) -> None:
        """Pass on the readings of a sample."""
        self._inputs.assembler.wanted_ns = sample.stamp_ns + SAMPLE_NS
        if sample.ft_temperatures is not None and np.isfinite(sample.ft_temperatures[self._row]):
            self._warmth += float(sample.ft_temperatures[self._row])
            self._n_warm += 1
        self._take_reading(self.body.reading(sample, self._inputs.contacts.at(sample.stamp_ns)))
