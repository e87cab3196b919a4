# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Processes of the comparison of cycle times: a robot that moves, and an identifier beside it.

The robot is on a pole and moves all its joints; what it says is made beforehand and repeated, so
that it costs next to nothing while others are measured. Its masses are not the described ones.
"""

import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

import numpy as np

from bench.nodes.processes import START_TIMEOUT, _join, _spin_until
from inertial_estimation.building import accepted_frame_ids, build_robot
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.identification.equations.wrenches import with_readings
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.identifier_report import IdentifierReport
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.cdr import NANOSECONDS, STAMP, STAMP_AT

PERIOD = 10
"""After which the motion repeats [s]."""
TURNS = (1, 2, 3, 5, 8)
"""Of the sines of a joint in a period."""
SWING = 0.4
"""Of each sine [rad]."""
WRONG = 0.2
"""The description's masses are off by so much of them at most."""
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
"""Of FT sensors [N, Nm]."""
NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
"""Theirs [N, Nm]."""
AUDIENCE = 2
POLL = 0.1


def periodic_motion(robot: Robot, rate: int, seed: int = 0) -> SampleBatch:
    """Return a period of a motion with what its FT sensors read."""
    rng = np.random.default_rng(seed)
    n, joints = PERIOD * rate, len(robot.joint_names)
    t = np.arange(n)[:, None] / rate
    q, v, a = np.zeros((3, n, joints))
    for turns in TURNS:
        w = 2 * np.pi * turns / PERIOD
        size, phase = SWING * rng.normal(size=joints) / turns, rng.uniform(0, 2 * np.pi, joints)
        q += size * np.sin(w * t + phase)
        v += size * w * np.cos(w * t + phase)
        a -= size * w**2 * np.sin(w * t + phase)
    stamps = 1 + (NANOSECONDS * t[:, 0]).astype(np.int64)
    none = np.zeros((n, len(robot.imus), 3))
    still = np.zeros((n, len(robot.ft_sensors), 6))
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    samples = with_readings(robot, SampleBatch(stamps, q, v, a, none, none, none, still), truth)
    samples.ft_readings[:] += OFFSET + NOISE * rng.normal(size=still.shape)
    return samples


def move(
    pipe: Connection,
    domain: int,
    settings: EstimatorSettings,
    urdf: str,
    stop: Event,
    rate: int,
) -> None:
    """Publish joint states and FT sensors at a rate, until asked to stop; say when it begins."""
    import rclpy
    from rclpy.node import Node

    _join(domain)
    topics = _messages(settings, urdf, rate)
    node = Node('robot')
    publishers = [
        (node.create_publisher(kind, name, settings.queue_depth), data)
        for name, kind, data in topics
    ]
    deadline = time.monotonic() + START_TIMEOUT
    while any(publisher.get_subscription_count() < AUDIENCE for publisher, _ in publishers):
        if time.monotonic() > deadline:
            pipe.close()
            return
        time.sleep(POLL)
    pipe.send(time.time_ns())
    start, k = time.perf_counter(), 0
    while not stop.is_set():
        stamp = divmod(time.time_ns(), NANOSECONDS)
        for publisher, data in publishers:
            message = data[k % len(data)]
            STAMP.pack_into(message, STAMP_AT, *stamp)
            publisher.publish(bytes(message))
        k += 1
        time.sleep(max(0.0, start + k / rate - time.perf_counter()))
    pipe.send(k)
    node.destroy_node()
    rclpy.try_shutdown()


def identify(
    pipe: Connection,
    domain: int,
    settings: IdentifierSettings,
    urdf: str,
    stop: Event,
    wanted: Event,
    works: Event,
) -> None:
    """
    Run the identifier while it is wanted; else it is not configured, and listens to nothing.

    Parameters
    ----------
    pipe : Connection
        Is sent when refits were made, and when some were published, at the end [ns].
    domain, settings, urdf, stop
        As in `bench_processes.estimate`. With a state file it goes on with what it knew.
    wanted : Event
        Set while it should run.
    works : Event
        Set once it has published an update, until it stops to run.

    """
    import rclpy
    from rclpy.parameter import Parameter

    from inertial_estimation.ros.identifier_node import IdentifierNode

    _join(domain)
    given = settings.to_parameters() | {'robot_description': urdf, 'autostart': False}
    overrides = [Parameter(name, value=value) for name, value in given.items() if value != []]
    node = IdentifierNode(parameter_overrides=overrides)
    node.take_priority()
    counts = _Counts()

    def look() -> None:
        runs = wanted.is_set() and not stop.is_set()
        if node.pipeline is not None:
            counts.look(node.pipeline.report)
            if node.pipeline.report.updates:
                works.set()
            if not runs:
                node.trigger_deactivate()
                node.trigger_cleanup()
                works.clear()
        elif runs:
            counts.begin()
            node.trigger_configure()
            node.trigger_activate()

    _spin_until(node, settings.executor, stop, look)
    pipe.send((counts.refits, counts.updates))
    node.destroy_node()
    rclpy.try_shutdown()


class _Counts:
    """When the refits of an identifier were made, and when some were published, to `POLL`."""

    def __init__(self) -> None:
        self.refits: list[int] = []
        self.updates: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Count a report from nothing."""
        self._before = 0, 0

    def look(self, report: IdentifierReport) -> None:
        """Note what is new in a report."""
        now, counts = time.time_ns(), (report.refits, report.updates)
        for stamps, count, before in zip(
            (self.refits, self.updates), counts, self._before, strict=True
        ):
            stamps.extend([now] * (count - before))
        self._before = counts


def _messages(
    settings: EstimatorSettings, urdf: str, rate: int
) -> list[tuple[str, type, list[bytearray]]]:
    """Return topic, type and the messages of a period, the joint states last."""
    from geometry_msgs.msg import WrenchStamped
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    robot = build_robot(settings, urdf)
    samples = periodic_motion(robot, rate)
    found: list[tuple[str, type, list[bytearray]]] = []
    for k, sensor in enumerate(robot.ft_sensors):
        message: Any = WrenchStamped()
        message.header.frame_id = min(accepted_frame_ids(settings, robot, sensor))
        head = bytes(serialize_message(message))[: -OFFSET.nbytes]
        rows = (bytearray(head + row.tobytes()) for row in samples.ft_readings[:, k])
        found.append((settings.ft_of(sensor.name).topic, WrenchStamped, list(rows)))
    states = [
        bytearray(
            serialize_message(
                JointState(name=list(robot.joint_names), position=q, velocity=v, effort=[])
            )
        )
        for q, v in zip(samples.positions.tolist(), samples.velocities.tolist(), strict=True)
    ]
    return [*found, (settings.joint_topics[0], JointState, states)]
