# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which cycles the node misses that a bare reader of the same publisher does not.

Three processes: a publisher of ready-made bytes, the estimator, and a reader that does nothing
but note stamps, and subscribes to the standard deviations in a second, shorter run. Missing cycles
are found by comparing stamps with those that were sent.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import NamedTuple

import numpy as np

from inertial_estimation.building import accepted_frame_ids, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import NODE_NAME
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.messages.layout import COUNT, NANOSECONDS, STAMP, STAMP_AT

SHARE_WITH_DEVIATIONS = 0.5
"""Part of the time that the node runs once more while somebody wants standard deviations."""
LAST_DOMAIN = 101
START_TIMEOUT = 30.0
"""For three interpreters to start, import and find each other [s]."""
DRAIN = 0.5
"""What was sent has arrived by then, or never will [s]."""
POLL = 0.2
ANGULAR_VELOCITY_AT = -(37 - 13) * 8
"""From the end of an Imu message: it ends in 37 numbers, this is the 14th."""
LEVEL = (0.0, 0.0, 9.81)


class CycleLoss(NamedTuple):
    """What became of the cycles that were sent."""

    sent: int
    """Joint states, from the first that both have received."""
    node_missed: int
    """Of these without an estimate."""
    reader_missed: int
    """Of these not received by the bare reader."""
    node_only_missed: int
    """Of these without an estimate although the bare reader received them."""
    rate: float
    """Rate at which they were really sent [Hz]."""
    duration_p50: float
    """Median duration of a cycle of the node, from decoded to published [s]."""
    duration_p99: float
    """Duration that one in a hundred exceeds [s]."""
    duration_max: float
    """Longest duration [s]."""
    deviations: int = 0
    """Instants whose standard deviations were published."""
    deviations_time: float = float('nan')
    """Mean time that they took, behind the cycle's publishing [s]."""
    deviations_share: float = 0.0
    """What they add to the time of the cycles, all in all."""

    def as_dict(self) -> dict[str, float | None]:
        """
        Return the figures for a machine.

        Returns
        -------
        dict
            Counts, ``rate_hz`` and ``cycle_time_p50_us``, ``cycle_time_p99_us``,
            ``cycle_time_max_us``; of the standard deviations ``deviations``,
            ``deviations_time_us``, None if there were none, and ``deviations_share``.

        """
        return {
            'sent': self.sent,
            'node_missed': self.node_missed,
            'reader_missed': self.reader_missed,
            'node_only_missed': self.node_only_missed,
            'rate_hz': self.rate,
            'cycle_time_p50_us': 1e6 * self.duration_p50,
            'cycle_time_p99_us': 1e6 * self.duration_p99,
            'cycle_time_max_us': 1e6 * self.duration_max,
            'deviations': self.deviations,
            'deviations_time_us': 1e6 * self.deviations_time if self.deviations else None,
            'deviations_share': self.deviations_share,
        }


def measure_cycle_loss(
    settings: EstimatorSettings,
    urdf: str,
    *,
    rate: float = 500.0,
    duration: float = 60.0,
    deviations: bool = False,
) -> CycleLoss:
    """
    Run the node and a bare reader beside each other and compare the stamps they saw.

    Parameters
    ----------
    settings : EstimatorSettings
        Of the node.
    urdf : str
        Robot description.
    rate : float, optional
        Of every topic [Hz].
    duration : float, optional
        How long to send [s].
    deviations : bool, optional
        The bare reader subscribes to the standard deviations as well.

    Returns
    -------
    CycleLoss

    Raises
    ------
    InertialEstimationError
        If a process does not answer in time.

    """
    spawn = multiprocessing.get_context('spawn')
    stop, domain = spawn.Event(), 1 + os.getpid() % LAST_DOMAIN
    jobs: list[tuple[Callable, tuple]] = [
        (_estimate, (settings, urdf, stop)),
        (_read, (settings, urdf, stop, deviations)),
        (_send, (settings, urdf, rate, duration)),
    ]
    pipes, processes = [], []
    try:
        for job, arguments in jobs:
            mine, theirs = spawn.Pipe(duplex=False)
            process = spawn.Process(target=job, args=(theirs, domain, *arguments), daemon=True)
            _start_deaf(process)
            pipes.append(mine)
            processes.append(process)
        sent = _receive(pipes[2], START_TIMEOUT + duration, 'publisher')
        time.sleep(DRAIN)
        stop.set()
        estimated, durations, *cost = _receive(pipes[0], START_TIMEOUT, 'estimator')
        read = _receive(pipes[1], START_TIMEOUT, 'reader')
        for process in processes:
            process.join(DRAIN)
    finally:
        for process in processes:
            process.kill()
    return _with_cost(_compare(sent, read, estimated, durations), float(durations.sum()), *cost)


def _with_cost(loss: CycleLoss, busy: float, count: int, seconds: float) -> CycleLoss:
    """Add what the standard deviations took, beside how long the cycles were busy."""
    if not count:
        return loss
    return loss._replace(
        deviations=count, deviations_time=seconds / count, deviations_share=seconds / busy
    )


def _start_deaf(process: BaseProcess) -> None:
    """Start a process that leaves ctrl-c to this one, from its first instant on."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _compare(
    sent: np.ndarray, read: np.ndarray, estimated: np.ndarray, durations: np.ndarray
) -> CycleLoss:
    """Compare stamps, from the first that both have received."""
    if not len(estimated) or not len(read):
        raise InertialEstimationError(
            f'{len(sent)} joint states were sent, {len(estimated)} estimated, {len(read)} read'
        )
    counted = sent[sent >= max(estimated[0], read[0])]
    lost, unread = ~np.isin(counted, estimated), ~np.isin(counted, read)
    span = 1e-9 * (counted[-1] - counted[0])
    return CycleLoss(
        len(counted),
        int(lost.sum()),
        int(unread.sum()),
        int((lost & ~unread).sum()),
        float((len(counted) - 1) / span) if span > 0.0 else float('nan'),
        *(float(value) for value in np.percentile(durations, (50, 99, 100))),
    )


def _receive(pipe: Connection, timeout: float, who: str):
    """Return what a process has to say."""
    if not pipe.poll(timeout):
        raise InertialEstimationError(f'the {who} has not answered within {timeout:.0f} s')
    try:
        return pipe.recv()
    except EOFError:
        raise InertialEstimationError(f'the {who} has ended without an answer') from None


class _Topic(NamedTuple):
    """A topic of the robot, and what is sent on it."""

    name: str
    kind: type
    data: bytearray
    """A serialized message of the robot at rest."""
    varied: int
    """Where a measured number is in it: a sensor whose numbers stand still is a broken one."""


def _topics(settings: EstimatorSettings, urdf: str) -> list[_Topic]:
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
        _Topic(
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
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def _estimate(
    pipe: Connection, domain: int, settings: EstimatorSettings, urdf: str, stop: Event
) -> None:
    """Run the node; send the stamps and durations of its cycles."""
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

    _spin_until(node, settings.executor, stop, collect)
    collect()
    cost = node.pipeline.deviations.count, node.pipeline.deviations.seconds
    pipe.send((np.concatenate(stamps), np.concatenate(durations), *cost))
    node.destroy_node()
    rclpy.try_shutdown()


def _read(
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

    *sensors, joints = _topics(settings, urdf)
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


def _send(
    pipe: Connection,
    domain: int,
    settings: EstimatorSettings,
    urdf: str,
    rate: float,
    duration: float,
) -> None:
    """Publish every topic at a rate, bit patterns changing; send the stamps."""
    import rclpy
    from rclpy.node import Node

    _join(domain)
    node = Node('robot')
    publishers = [
        (node.create_publisher(topic.kind, topic.name, settings.queue_depth), topic)
        for topic in _topics(settings, urdf)
    ]
    deadline = time.monotonic() + START_TIMEOUT
    while any(publisher.get_subscription_count() < 2 for publisher, _ in publishers):
        if time.monotonic() > deadline:
            pipe.close()
            return
        time.sleep(POLL)
    time.sleep(DRAIN)
    stamps = np.zeros(int(rate * duration), dtype=np.int64)
    start = time.perf_counter()
    for k in range(len(stamps)):
        stamps[k] = stamp = time.time_ns()
        for publisher, topic in publishers:
            STAMP.pack_into(topic.data, STAMP_AT, *divmod(stamp, NANOSECONDS))
            # The lowest bytes of a zero: a number that is tiny, and never the same twice.
            COUNT.pack_into(topic.data, len(topic.data) + topic.varied, k)
            publisher.publish(bytes(topic.data))
        time.sleep(max(0.0, start + (k + 1) / rate - time.perf_counter()))
    pipe.send(stamps)
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


def main() -> int:
    """
    Compare, for callers without ROS: JSON in on standard input, JSON out on standard output.

    In: ``urdf``, ``parameters`` of the node, ``rate`` [Hz], ``duration`` [s]. Out: a list of
    `CycleLoss.as_dict`, for this time, and for a part of it more (`SHARE_WITH_DEVIATIONS`), in
    which the standard deviations are subscribed.

    Returns
    -------
    int
        Exit code: 1 if there is nothing to compare, 130 after ctrl-c.

    """
    try:
        job = json.load(sys.stdin)
        settings = EstimatorSettings.from_dict(job.pop('parameters'))
        duration = job.pop('duration')
        runs = {False: duration, True: SHARE_WITH_DEVIATIONS * duration}
        losses = [
            measure_cycle_loss(settings, **job, duration=seconds, deviations=on)
            for on, seconds in runs.items()
        ]
    except InertialEstimationError as error:
        sys.stderr.write(f'{error}\n')
        return 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps([loss.as_dict() for loss in losses]) + '\n')
    return 0
