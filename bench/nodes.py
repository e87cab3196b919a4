# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Run the nodes as processes beside the fastest bare reader, and compare what a user feels.

A robot publishes messages made beforehand. The bare reader takes the same topics as bytes and
republishes the joint states. A listener notes when the answers of both arrive. Ages count from the
stamp of the joint states; processor times are those of whole processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import yaml

from bench.live_robots import with_readings
from bench.report import Goal, Table
from bench.robots import CONTACTS
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.cdr import NANOSECONDS, STAMP, STAMP_AT
from inertial_estimation.signals.router import accepted_frame_ids
from inertial_estimation.simulation.description import icub_urdf

BASE = 'root_link'
SETTINGS = {
    'imus': [BASE],
    'fixed_link': '',
    'contacts': [contact.name for contact in CONTACTS],
    'joint_states.velocity_source': 'message',
}
PERIOD = 10
"""After which the motion repeats [s]."""
WRONG = 0.2
"""Largest error of a mass of the URDF, over the mass."""
FT_OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
FT_NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
IMU_NOISE = 1e-3, 1e-2
"""Angular velocity and acceleration [rad/s, m/s^2]."""
START_TIMEOUT, SETTLE, END_TIMEOUT = 60.0, 3.0, 15.0
"""Until all processes have found each other; before figures count; to end [s]."""
ESTIMATED, READ = 'wrench_estimator/external_wrenches', 'bare_reader/joint_states'


class Run(NamedTuple):
    """Figures of one run."""

    sent: int
    missed: Mapping[str, int]
    """Joint states without an answer, of `estimator` and `reader`."""
    age: Mapping[str, np.ndarray]
    """Arrival of the answer after the stamp, shape (n,) [s]."""
    processor: Mapping[str, float]
    """Share of a core, by process."""


def measure(
    rate: int = 500, seconds: float = 10.0, pairs: int = 3
) -> tuple[list[Table], list[Goal]]:
    """Run estimator and bare reader with and without the identifier beside them, in turn."""
    runs: dict[bool, list[Run]] = {False: [], True: []}
    for k in range(pairs):
        for identify in (bool(k % 2), not k % 2):
            runs[identify].append(run(rate, seconds, identify=identify))
    rows = []
    for identify, found in runs.items():
        for name in ('estimator', 'reader'):
            age = np.concatenate([one.age[name] for one in found])
            quantiles = (1e6 * np.percentile(age, (50, 99, 99.9))).tolist()
            missed = sum(one.missed[name] for one in found)
            busy = float(np.median([one.processor[name] for one in found]))
            sent = sum(one.sent for one in found)
            rows.append((name, 'yes' if identify else 'no', sent, missed, *quantiles, busy))
    alone, both = runs[False], runs[True]

    def over(quantity: Callable[[Run], float], upper: list[Run], lower: list[Run]) -> float:
        return float(np.median([quantity(a) / quantity(b) for a, b in zip(upper, lower)]))

    def median_age(one: Run) -> float:
        return float(np.median(one.age['estimator']))

    share = float(np.median([one.processor['identifier'] for one in both]))
    cost = float(np.median([o.processor['estimator'] / o.processor['reader'] for o in alone]))
    columns = (
        'process', 'identifier', 'sent', 'missed', 'age p50 [us]', 'p99', 'p99.9', 'core share',
    )  # fmt: skip
    return [Table(f'Nodes at {rate} Hz, {pairs} x {seconds:g} s', columns, rows)], [
        Goal('processor time of the estimator / of the bare reader', cost, 1.8),
        Goal('median age with the identifier / without', over(median_age, both, alone), 1.1),
        Goal("identifier's share of a core", share, 0.15),
    ]


def run(rate: int, seconds: float, *, identify: bool) -> Run:
    """Run all processes once in a ROS domain of their own."""
    environment = os.environ | {
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_DOMAIN_ID': str(1 + os.getpid() % 101),
        'OMP_NUM_THREADS': '1',
    }
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        urdf, parameters, heard = (folder / name for name in ('u.urdf', 'p.yaml', 'heard.npz'))
        urdf.write_text(icub_urdf(), encoding='utf-8')
        given = {**SETTINGS, 'robot_description_file': str(urdf)}
        parameters.write_text(yaml.safe_dump({'/**': {'ros__parameters': given}}))
        node = ['inertial_estimation_nodes', 'inertial_estimation.ros.{}_node', '--ros-args',
                '--params-file', str(parameters)]  # fmt: skip
        job = json.dumps({'urdf': str(urdf), 'rate': rate, 'heard': str(heard),
                          'audience': 2 + identify})  # fmt: skip
        commands = {'estimator': [part.format('estimator') for part in node]}
        if identify:
            commands['identifier'] = [part.format('identifier') for part in node]
        commands |= {role: ['bench.nodes', role, job] for role in ('reader', 'listener')}
        processes = {
            name: stack.enter_context(_process(words, environment))
            for name, words in commands.items()
        }
        robot = stack.enter_context(_process(['bench.nodes', 'robot', job], environment))
        assert robot.stdout is not None
        if robot.stdout.readline() != b'sending\n':
            raise InertialEstimationError('the nodes have not found each other, see above')
        time.sleep(SETTLE)
        start_ns, busy = time.time_ns(), {k: _processor_time(p) for k, p in processes.items()}
        time.sleep(seconds)
        end_ns = time.time_ns()
        span = 1e-9 * (end_ns - start_ns)
        shares = {k: (_processor_time(p) - busy[k]) / span for k, p in processes.items()}
        robot.send_signal(signal.SIGINT)
        sent = np.array(json.loads(robot.communicate(timeout=END_TIMEOUT)[0]))
        time.sleep(0.5)
        processes['listener'].communicate(timeout=END_TIMEOUT)
        with np.load(heard) as data:
            stamps = {'estimator': data[ESTIMATED], 'reader': data[READ]}
    sent = sent[(sent >= start_ns) & (sent < end_ns)]
    kept = {name: one[np.isin(one[:, 0], sent)] for name, one in stamps.items()}
    missed = {name: int((~np.isin(sent, one[:, 0])).sum()) for name, one in kept.items()}
    return Run(len(sent), missed, {k: 1e-9 * (v[:, 1] - v[:, 0]) for k, v in kept.items()}, shares)


@contextmanager
def _process(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen]:
    """Run a module as a process, and end it."""
    command = [sys.executable, '-m', *words]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _processor_time(process: subprocess.Popen) -> float:
    """Return the processor time of all threads of a process [s]."""
    fields = Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def messages(urdf: str, rate: int) -> list[tuple[str, type, list[bytearray]]]:
    """Return topic, type and the messages of a period of motion, the joint states last."""
    from geometry_msgs.msg import WrenchStamped
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Imu, JointState

    settings = EstimatorSettings.from_dict(SETTINGS)
    robot = build_robot(settings, urdf)
    rng = np.random.default_rng(0)
    n, joints = PERIOD * rate, len(robot.joint_names)
    t = np.arange(n)[:, None] / rate
    q, v, a = np.zeros((3, n, joints))
    for turns in (1, 2, 3, 5, 8):
        w = 2 * np.pi * turns / PERIOD
        size, phase = 0.4 * rng.normal(size=joints) / turns, rng.uniform(0, 2 * np.pi, joints)
        q += size * np.sin(w * t + phase)
        v += size * w * np.cos(w * t + phase)
        a -= size * w**2 * np.sin(w * t + phase)
    still = np.zeros((n, 1, 3))
    upright = still + np.array([0.0, 0.0, 9.81])
    empty = np.zeros((n, len(robot.ft_sensors), 6))
    samples = SampleBatch(np.arange(1, n + 1), q, v, a, still, upright, still, empty)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    readings = with_readings(robot, samples, truth).ft_readings
    readings = readings + FT_OFFSET + FT_NOISE * rng.normal(size=empty.shape)
    rates, accelerations = (level * rng.normal(size=(n, 3)) for level in IMU_NOISE)
    accelerations += upright[:, 0]
    found: list[tuple[str, type, list[bytearray]]] = []
    for k, sensor in enumerate(robot.ft_sensors):
        message: Any = WrenchStamped()
        message.header.frame_id = min(accepted_frame_ids(settings, robot, sensor))
        head = bytes(serialize_message(message))[:-48]
        data = [bytearray(head + row.tobytes()) for row in readings[:, k]]
        found.append((settings.ft_of(sensor.name).topic, WrenchStamped, data))
    (imu,) = robot.imus
    message = Imu()
    message.header.frame_id = min(accepted_frame_ids(settings, robot, imu))
    data = []
    for turn, shift in zip(rates.tolist(), accelerations.tolist(), strict=True):
        rate_, acceleration = message.angular_velocity, message.linear_acceleration
        rate_.x, rate_.y, rate_.z = turn
        acceleration.x, acceleration.y, acceleration.z = shift
        data.append(bytearray(serialize_message(message)))
    found.append((settings.imu_of(imu.name).topic, Imu, data))
    names = list(robot.joint_names)
    states = (
        JointState(name=names, position=p, velocity=u, effort=[])
        for p, u in zip(q.tolist(), v.tolist(), strict=True)
    )
    data = [bytearray(serialize_message(state)) for state in states]
    return [*found, (settings.joint_states.topics[0], JointState, data)]


def robot(job: Mapping[str, Any]) -> None:
    """Publish at a rate until SIGINT; print the stamps."""
    import rclpy
    from rclpy.node import Node

    topics = messages(Path(job['urdf']).read_text(encoding='utf-8'), job['rate'])
    rclpy.init()
    node = Node('robot')
    publishers = [(node.create_publisher(kind, name, 20), data) for name, kind, data in topics]
    deadline = time.monotonic() + START_TIMEOUT
    while any(one.get_subscription_count() < job['audience'] for one, _ in publishers):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
    time.sleep(0.5)
    sys.stdout.write('sending\n')
    sys.stdout.flush()
    stamps: list[int] = []
    start = time.perf_counter()
    try:
        while True:
            stamps.append(time.time_ns())
            for publisher, data in publishers:
                message = data[len(stamps) % len(data)]
                STAMP.pack_into(message, STAMP_AT, *divmod(stamps[-1], NANOSECONDS))
                publisher.publish(bytes(message))
            time.sleep(max(0.0, start + len(stamps) / job['rate'] - time.perf_counter()))
    except KeyboardInterrupt:
        sys.stdout.write(json.dumps(stamps))


def reader(job: Mapping[str, Any]) -> None:
    """Take all topics as bytes, and republish the joint states."""
    from rclpy.node import Node

    def prepare(node: Node) -> None:
        *sensors, (name, kind, _) = messages(Path(job['urdf']).read_text(encoding='utf-8'), 1)
        publisher = node.create_publisher(kind, READ, 20)
        for topic, of, _ in sensors:
            node.create_subscription(of, topic, lambda data: None, _sensor_qos(), raw=True)
        node.create_subscription(kind, name, publisher.publish, _sensor_qos(), raw=True)

    _spin('bare_reader', prepare)


def listener(job: Mapping[str, Any]) -> None:
    """Note stamps and arrivals of both answers, shape (n, 2) [ns], until standard input ends."""
    from sensor_msgs.msg import JointState, MultiDOFJointState

    heard: dict[str, list[tuple[int, int]]] = {ESTIMATED: [], READ: []}

    def note(name: str) -> Callable[[bytes], None]:
        def keep(data: bytes) -> None:
            seconds, rest = STAMP.unpack_from(data, STAMP_AT)
            heard[name].append((seconds * NANOSECONDS + rest, time.time_ns()))

        return keep

    def prepare(node: Any) -> None:
        for name, kind in ((ESTIMATED, MultiDOFJointState), (READ, JointState)):
            node.create_subscription(kind, name, note(name), _sensor_qos(), raw=True)

    def save_at_end() -> None:
        sys.stdin.read()
        np.savez(
            job['heard'], **{name: np.array(one).reshape(-1, 2) for name, one in heard.items()}
        )
        os._exit(0)  # the executor waits in native code

    threading.Thread(target=save_at_end, daemon=True).start()
    _spin('listener', prepare)


def _sensor_qos() -> Any:
    from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=20, reliability=ReliabilityPolicy.BEST_EFFORT
    )


def _spin(name: str, prepare: Callable[[Any], None]) -> None:
    """Spin a node until the process is killed."""
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.node import Node
    from rclpy.task import Future

    rclpy.init()
    node = Node(name)
    prepare(node)
    executor = EventsExecutor()
    executor.add_node(node)
    # Without a timeout some builds of this executor never take a message.
    executor.spin_until_future_complete(Future(), timeout_sec=1e6)


if __name__ == '__main__':
    {role.__name__: role for role in (robot, reader, listener)}[sys.argv[1]](
        json.loads(sys.argv[2])
    )
