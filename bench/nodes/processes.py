# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The three processes of the comparison of missed cycles: robot, node and bare reader.

Each is the target of a process of its own: it imports rclpy when it runs, and answers by a pipe.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import NamedTuple

import numpy as np

from inertial_estimation.building import accepted_frame_ids, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import NODE_NAME
from inertial_estimation.signals.cdr import COUNT, NANOSECONDS, STAMP, STAMP_AT

START_TIMEOUT = 30.0
"""For three interpreters to start, import and find each other [s]."""
DRAIN = 0.5
"""What was sent has arrived by then, or never will [s]."""
POLL = 0.2
ANGULAR_VELOCITY_AT = -(37 - 13) * 8
"""From the end of an Imu message: it ends in 37 numbers, this is the 14th."""
LEVEL = (0.0, 0.0, 9.81)


class Topic(NamedTuple):
    """A topic of the robot, and what is sent on it."""

    name: str
    kind: type
    data: bytearray
    """A serialized message of the robot at rest."""
    varied: int
    """Where a measured number is in it: a sensor whose numbers stand still is a broken one."""


def topics_of(settings: EstimatorSettings, urdf: str) -> list[Topic]:
    """Return every topic of the robot, the joint states last."""
    from geometry_msgs.msg import WrenchStamped
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Imu, JointState

    robot = build_robot(settings, urdf)
    messages = []
    for sensor in robot.ft_sensors:
        wrench = WrenchStamped()
        wrench.header.frame_id = min(accepted_frame_ids(settings, robot, sensor))
        messages.append((settings.ft_of(sensor.name).topic, wrench))
    for imu in robot.imus:
        level = Imu()
        level.header.frame_id = min(accepted_frame_ids(settings, robot, imu))
        acceleration = level.linear_acceleration
        acceleration.x, acceleration.y, acceleration.z = LEVEL
        messages.append((settings.imu_of(imu.name).topic, level))
    zeros = [0.0] * len(robot.joint_names)
    joints = JointState(name=list(robot.joint_names), position=zeros, velocity=zeros, effort=zeros)
    messages.append((settings.joint_topics[0], joints))
    return [
        Topic(
            name,
            type(message),
            bytearray(serialize_message(message)),
            ANGULAR_VELOCITY_AT if isinstance(message, Imu) else -8,
        )
        for name, message in messages
    ]


def _join(domain: int) -> None:
    """Start to talk, to this machine only."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    threading.Thread(target=_end_with_parent, daemon=True).start()
    rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that came."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def estimate(
    pipe: Connection,
    domain: int,
    settings: EstimatorSettings,
    urdf: str,
    stop: Event,
    ready: Event | None = None,
    deviations: bool = False,
) -> None:
    """Run the node; send the stamps and durations of its cycles, and what the deviations took."""
    import rclpy
    from rclpy.parameter import Parameter

    from inertial_estimation.ros.estimator_node import EstimatorNode

    _join(domain)
    given = settings.to_parameters() | {'robot_description': urdf, 'autostart': True}
    overrides = [Parameter(name, value=value) for name, value in given.items() if value != []]
    node = EstimatorNode(parameter_overrides=overrides)
    stamps: list[np.ndarray] = []
    durations: list[np.ndarray] = []

    def collect() -> None:
        new_stamps, new_durations = node.pipeline.cycles.since(sum(map(len, stamps)))
        stamps.append(new_stamps)
        durations.append(new_durations)
        waits = deviations and settings.deviations_rate and not node.pipeline.deviations.count
        if ready is not None and any(map(len, stamps)) and not waits:
            ready.set()

    _spin_until(node, settings.executor, stop, collect)
    collect()
    cost = node.pipeline.deviations.count, node.pipeline.deviations.seconds
    pipe.send((np.concatenate(stamps), np.concatenate(durations), *cost))
    node.destroy_node()
    rclpy.try_shutdown()


def read(
    pipe: Connection,
    domain: int,
    settings: EstimatorSettings,
    urdf: str,
    stop: Event,
    deviations: bool,
) -> None:
    """Receive the same topics with the same QoS; send the stamps of the joint states."""
    import rclpy
    from rclpy.node import Node
    from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

    from inertial_estimation.ros.deviations import TOPICS

    _join(domain)
    node = Node('bare_reader')
    qos = QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=settings.queue_depth,
        reliability=ReliabilityPolicy.BEST_EFFORT,
    )
    heads: list[bytes] = []

    def keep(data: bytes) -> None:
        heads.append(data[STAMP_AT : STAMP_AT + STAMP.size])

    *sensors, joints = topics_of(settings, urdf)
    for topic in sensors:
        node.create_subscription(topic.kind, topic.name, lambda data: None, qos, raw=True)
    node.create_subscription(joints.kind, joints.name, keep, qos, raw=True)
    for topic, kind in TOPICS.items() if deviations else ():
        node.create_subscription(kind, f'{NODE_NAME}/{topic}', lambda data: None, qos, raw=True)
    _spin_until(node, settings.executor, stop, lambda: None)
    seconds = np.frombuffer(b''.join(heads), '<u4').reshape(-1, 2).astype(np.int64)
    pipe.send(seconds @ np.array([NANOSECONDS, 1]))
    node.destroy_node()
    rclpy.try_shutdown()


def send(
    pipe: Connection,
    domain: int,
    settings: EstimatorSettings,
    urdf: str,
    rate: float,
    duration: float,
    ready: Event,
) -> None:
    """
    Publish every topic at a rate, bit patterns changing; send the stamps since all were ready.

    rate [Hz]; duration [s].
    """
    import rclpy
    from rclpy.node import Node

    _join(domain)
    node = Node('robot')
    publishers = [
        (node.create_publisher(topic.kind, topic.name, settings.queue_depth), topic)
        for topic in topics_of(settings, urdf)
    ]
    deadline = time.monotonic() + START_TIMEOUT
    while any(publisher.get_subscription_count() < 2 for publisher, _ in publishers):
        if time.monotonic() > deadline:
            pipe.close()
            return
        time.sleep(POLL)
    time.sleep(DRAIN)
    deadline = time.monotonic() + START_TIMEOUT
    stamps: list[int] = []
    start, k = time.perf_counter(), 0
    while len(stamps) < int(rate * duration):
        # It stays as it was found when the first was counted.
        counted = stamps or ready.is_set() or time.monotonic() > deadline
        stamp = time.time_ns()
        for publisher, topic in publishers:
            STAMP.pack_into(topic.data, STAMP_AT, *divmod(stamp, NANOSECONDS))
            # The lowest bytes of a zero: a number that is tiny, and never the same twice.
            COUNT.pack_into(topic.data, len(topic.data) + topic.varied, k)
            publisher.publish(bytes(topic.data))
        stamps += [stamp] if counted else []
        k += 1
        time.sleep(max(0.0, start + k / rate - time.perf_counter()))
    pipe.send(np.array(stamps, dtype=np.int64))
    time.sleep(DRAIN)
    node.destroy_node()
    rclpy.try_shutdown()


def _spin_until(node, executor_kind: str, stop: Event, every_poll: Callable[[], None]) -> None:
    """Spin a node until an event is set."""
    from rclpy.task import Future

    from inertial_estimation.ros.executors import LONG, make_executor

    done = Future()

    def look() -> None:
        every_poll()
        if stop.is_set():
            done.set_result(None)

    node.create_timer(POLL, look)
    executor = make_executor(executor_kind)
    executor.add_node(node)
    executor.spin_until_future_complete(done, timeout_sec=LONG)
    executor.remove_node(node)
    executor.shutdown()
