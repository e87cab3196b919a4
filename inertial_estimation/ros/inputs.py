# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Subscriptions: from the bytes of a message to the sample assembler.

A callback does no more than decode, check the frame and hand over. What is wrong with a message
is counted with its source; the diagnostics say and log it.
"""

from collections.abc import Callable
from typing import Any

from rclpy.exceptions import NameValidationException
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from inertial_estimation.building import accepted_frame_ids
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.touch_rhythm import TouchRhythm
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.executors import PolledGroup
from inertial_estimation.ros.sources import Source
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler

CONTACTS = 'contacts'
"""Topic of the points that are felt."""
POLLED_DEPTH = 100
"""A polled history holds what comes between two joint states."""


class Inputs:
    """The subscriptions of the estimator."""

    def __init__(
        self,
        node: LifecycleNode,
        settings: EstimatorSettings,
        robot: Robot,
        assembler: SampleAssembler,
        contacts: ContactStream,
        on_sample: Callable[[Sample], None],
        *,
        polled: bool,
    ) -> None:
        self._node, self._settings, self._polled = node, settings, polled
        self._assembler, self._contacts, self._on_sample = assembler, contacts, on_sample
        self._group = PolledGroup()
        self._drained: list[tuple[Subscription, Callable[[Any], None]]] = []
        self._subscriptions: list[Subscription] = []
        self.sources: list[Source] = []
        self.touch_rhythm = TouchRhythm(settings.contact_timeout)
        try:
            self._subscribe_all(robot)
        except ConfigError:
            self.destroy()
            raise

    def destroy(self) -> None:
        """Give the subscriptions back."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._drained.clear()

    def _subscribe_all(self, robot: Robot) -> None:
        """Subscribe to the sensors, and last to the joint topic that wakes the node."""
        settings = self._settings
        for k, sensor in enumerate(robot.ft_sensors):
            frames = accepted_frame_ids(settings, robot, sensor)
            source = Source('ft', sensor.name, settings.ft_of(sensor.name).topic, frames)
            source.index = k
            self._subscribe(source, lambda data, s=source, k=k: self._on_ft(s, k, data))
            if topic := settings.ft_of(sensor.name).temperature_topic:
                source = Source('temperature', sensor.name, topic)
                source.index = k
                self._subscribe(
                    source, lambda data, s=source, k=k: self._on_temperature(s, k, data)
                )
        for k, imu in enumerate(robot.imus):
            frames = accepted_frame_ids(settings, robot, imu)
            source = Source('imu', imu.name, settings.imu_of(imu.name).topic, frames)
            source.index = k
            self._subscribe(source, lambda data, s=source, k=k: self._on_imu(s, k, data))
        source = Source('contacts', CONTACTS, CONTACTS)
        source.problems = self._contacts.problems
        self._subscribe(source, lambda data, s=source: self._on_contact(s, data))
        for k in reversed(range(len(settings.joint_topics))):
            source = Source('joints', settings.joint_topics[k], settings.joint_topics[k])
            source.index = k
            self._subscribe(source, lambda data, s=source, k=k: self._on_joints(s, k, data), not k)

    def _subscribe(self, source: Source, callback: Callable, wakes: bool = False) -> None:
        """Subscribe to a source."""
        polled = self._polled and not wakes
        depth = self._settings.queue_depth
        qos = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=max(depth, POLLED_DEPTH) if polled else depth,
            reliability=ReliabilityPolicy.BEST_EFFORT,
        )
        try:
            subscription = self._node.create_subscription(
                source.message_type,
                source.topic,
                callback,
                qos,
                callback_group=self._group if polled else None,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
                raw=self._settings.raw,
            )
        except NameValidationException as error:
            raise ConfigError(f"topic of {source.kind} '{source.name}': {error}") from error
        self.sources.append(source)
        self._subscriptions.append(subscription)
        if polled:
            self._drained.append((subscription, callback))

    def _drain(self) -> None:
        """Take every message that waits in a polled subscription."""
        raw = self._settings.raw
        for subscription, callback in self._drained:
            taken = subscription.handle.take_message(subscription.msg_type, raw)
            while taken is not None:
                callback(taken[0])
                taken = subscription.handle.take_message(subscription.msg_type, raw)

    def _on_ft(self, source: Source, index: int, data: Any) -> None:
        """Take a message of an FT sensor."""
        reading = source.read(data)
        if reading is None or not source.accepts(reading):
            return
        if source.skew_due:
            self._measure_skew(source, reading.stamp_ns)
        self._assembler.push_ft(index, reading.stamp_ns, reading.wrench)

    def _on_temperature(self, source: Source, index: int, data: Any) -> None:
        """Take the temperature of an FT sensor."""
        reading = source.read(data)
        if reading is None or not source.accepts(reading):
            return
        if source.skew_due:
            self._measure_skew(source, reading.stamp_ns)
        self._assembler.push_temperature(index, reading.stamp_ns, reading.celsius)

    def _on_imu(self, source: Source, index: int, data: Any) -> None:
        """Take a message of an IMU."""
        reading = source.read(data)
        if reading is None or not source.accepts_imu(reading):
            return
        if source.skew_due:
            self._measure_skew(source, reading.stamp_ns)
        self._assembler.push_imu(
            index, reading.stamp_ns, reading.angular_velocity, reading.linear_acceleration
        )

    def _on_contact(self, source: Source, data: Any) -> None:
        """Take a point that somebody feels."""
        reading = source.read(data)
        if reading is None:
            return
        if source.skew_due and reading.stamp_ns > 0:
            self._measure_skew(source, reading.stamp_ns)
        self.touch_rhythm.note(reading.stamp_ns, reading.frame_id)
        self._contacts.push(*reading)

    def _on_joints(self, source: Source, index: int, data: Any) -> None:
        """Take a joint state, and make a sample of what has come if it is the clock's."""
        if index == 0:
            self._drain()
        reading = source.read(data)
        if reading is None or not source.accepts_joints(reading):
            return
        if source.skew_due:
            self._measure_skew(source, reading.stamp_ns)
        sample = self._assembler.push_joints(index, *reading)
        if sample is not None:
            self._on_sample(sample)

    def _measure_skew(self, source: Source, stamp_ns: int) -> None:
        """Note how far the stamp is behind the clock of the node."""
        now_ns = self._node.get_clock().now().nanoseconds
        # Simulated time is zero until its first message.
        if now_ns:
            source.skew = 1e-9 * (now_ns - stamp_ns)
            source.skew_due = False
