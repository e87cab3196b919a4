# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Subscriptions: from the bytes of a message to the sample assembler.

A callback does no more than decode, check the frame and hand over. What is wrong with a message
is counted with its source; the diagnostics say and log it.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.exceptions import NameValidationException
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.streams import SampleAssembler
from inertial_estimation.messages import ImuDecoder, JointStateDecoder, WrenchDecoder
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import (
    imu_from_message,
    joints_from_message,
    wrench_from_message,
)
from inertial_estimation.ros.executors import PolledGroup
from inertial_estimation.sample import Sample

SAME_PLACE = 1e-4
"""Frames closer than this are one; URDF exporters print six digits or more [m, rad]."""
POLLED_DEPTH = 100
"""A polled history holds what comes between two joint states."""

KINDS = {
    'joints': (JointState, JointStateDecoder, joints_from_message),
    'ft': (WrenchStamped, WrenchDecoder, wrench_from_message),
    'imu': (Imu, ImuDecoder, imu_from_message),
}


class Source:
    """
    One subscribed topic: how its messages are read, and what was wrong with them.

    Parameters
    ----------
    kind : str
        ``joints``, ``ft`` or ``imu``.
    name : str
        Name for diagnostics.
    topic : str
        Topic before remapping.
    frames : collection of str, optional
        What header.frame_id may be; None: anything.

    Attributes
    ----------
    index : int
        Of a joint topic.
    problems : Counter
        Messages that were refused, or used in part, by reason.
    fallbacks : int
        Messages that only the deserializer of rclpy could read.
    skew : float or None
        Clock of the node minus the stamp, when a message was read [s].
    skew_due : bool
        Asks the next message for it.

    """

    def __init__(
        self, kind: str, name: str, topic: str, frames: Collection[str] | None = None
    ) -> None:
        self.kind, self.name, self.topic, self.frames = kind, name, topic, frames
        self.message_type, decoder, self.from_message = KINDS[kind]
        self.decode = decoder().decode
        self.problems: Counter[str] = Counter()
        self.index = self.fallbacks = 0
        self.skew: float | None = None
        self.skew_due = True

    def read(self, data: Any):
        """
        Return what a message says, or None if it cannot be read.

        Parameters
        ----------
        data : bytes or message
            As the subscription gives it.

        Returns
        -------
        JointReading, WrenchReading, ImuReading or None

        """
        if not isinstance(data, bytes):
            return self.from_message(data)
        reading = self.decode(data)
        return self._read_slowly(data) if reading is None else reading

    def accepts(self, reading: Any) -> bool:
        """
        Tell whether stamp and frame of a sensor's reading are what they should be.

        Parameters
        ----------
        reading : WrenchReading or ImuReading
            From `read`.

        Returns
        -------
        bool
            If not, the reason has been counted.

        """
        if reading.stamp_ns <= 0:
            self.problems['header.stamp is zero: the driver has to stamp its messages'] += 1
            return False
        if self.frames is not None and reading.frame_id not in self.frames:
            self.problems[
                f"header.frame_id is '{reading.frame_id}', expected {_either(self.frames)}: "
                f'if it is right, set {self.kind}.{self.name}.frame_id to it'
            ] += 1
            return False
        return True

    def _read_slowly(self, data: bytes):
        """Let rclpy read what the decoder does not know."""
        try:
            reading = self.from_message(deserialize_message(data, self.message_type))
        except (RuntimeError, ValueError) as error:
            self.problems[f'the message cannot be deserialized: {error}'[:200]] += 1
            return None
        self.fallbacks += 1
        return reading


class Inputs:
    """
    The subscriptions of the estimator.

    Parameters
    ----------
    node : LifecycleNode
        Owns the subscriptions.
    settings : EstimatorSettings
        Topics, frames, queue depth, raw or not.
    robot : Robot
        Its sensors.
    assembler : SampleAssembler
        Takes the readings.
    on_sample : callable
        Called with each sample.
    polled : bool
        Only the first joint topic wakes the node; the others are polled when it does.

    """

    def __init__(
        self,
        node: LifecycleNode,
        settings: EstimatorSettings,
        robot: Robot,
        assembler: SampleAssembler,
        on_sample: Callable[[Sample], None],
        *,
        polled: bool,
    ) -> None:
        self._node, self._settings, self._polled = node, settings, polled
        self._assembler, self._on_sample = assembler, on_sample
        self._group = PolledGroup()
        self._drained: list[tuple[Subscription, Callable[[Any], None]]] = []
        self._subscriptions: list[Subscription] = []
        self.sources: list[Source] = []
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
            given = settings.ft_of(sensor.name)
            place = frames_at(robot, sensor.child, sensor.child_H_sensor)
            frames = {given.frame_id} if given.frame_id else {sensor.name, *place}
            source = Source('ft', sensor.name, given.topic, frames)
            self._subscribe(source, lambda data, s=source, k=k: self._on_ft(s, k, data))
        for k, imu in enumerate(robot.imus):
            given = settings.imu_of(imu.name)
            place = frames_at(robot, imu.link, imu.L_H_S)
            frames = {given.frame_id} if given.frame_id else {imu.name, *place}
            source = Source('imu', imu.name, given.topic, frames)
            self._subscribe(source, lambda data, s=source, k=k: self._on_imu(s, k, data))
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

    def _on_imu(self, source: Source, index: int, data: Any) -> None:
        """Take a message of an IMU."""
        reading = source.read(data)
        if reading is None or not source.accepts(reading):
            return
        if source.skew_due:
            self._measure_skew(source, reading.stamp_ns)
        self._assembler.push_imu(
            index, reading.stamp_ns, reading.angular_velocity, reading.linear_acceleration
        )

    def _on_joints(self, source: Source, index: int, data: Any) -> None:
        """Take a joint state, and make a sample of what has come if it is the clock's."""
        if index == 0:
            self._drain()
        reading = source.read(data)
        if reading is None or not _has_sizes(source, reading):
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


def _has_sizes(source: Source, reading: Any) -> bool:
    """Tell whether a joint state has a stamp and a position for each name; count what is wrong."""
    n = len(reading.names)
    if reading.stamp_ns <= 0:
        source.problems['header.stamp is zero: the driver has to stamp its messages'] += 1
        return False
    if len(reading.positions) != n:
        source.problems[f'{n} names with {len(reading.positions)} positions'] += 1
        return False
    for what, values in (('velocities', reading.velocities), ('efforts', reading.efforts)):
        if len(values) not in (0, n):
            source.problems[f'{n} names with {len(values)} {what}, which are not used'] += 1
    return True


def frames_at(robot: Robot, link: int, L_H_S: np.ndarray) -> set[str]:
    """
    Return the frames of the robot that coincide with a sensor's.

    Parameters
    ----------
    robot : Robot
        Its frames are the links, joints and sensor tags of the URDF.
    link : int
        Link that carries the sensor.
    L_H_S : ndarray, shape (4, 4)
        Pose of the sensor in that link [m].

    Returns
    -------
    set of str

    """
    return {
        name
        for name, (other, L_H_frame) in robot.frames.items()
        if other == link and np.allclose(L_H_frame, L_H_S, rtol=0.0, atol=SAME_PLACE)
    }


def _either(names: Collection[str]) -> str:
    """Return names as a list for a sentence."""
    return ' or '.join(f"'{name}'" for name in sorted(names)[:3])
