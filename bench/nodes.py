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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from bench.live_robots import held_by, with_readings
from bench.report import Goal, Table
from bench.robots import CONTACTS, SEVERAL_IMUS
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.settings import IDENTIFIER_NAME
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.link_motions import link_motions, link_poses, poses_in_parents
from inertial_estimation.model.sensor_models import accelerometer, gyroscope
from inertial_estimation.model.spatial import hat
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.cdr import NANOSECONDS, STAMP, STAMP_AT
from inertial_estimation.signals.sources import accepted_frame_ids
from inertial_estimation.simulation.description import icub_urdf

IMUS = (*SEVERAL_IMUS, 'head_imu_0')
SETTINGS = {
    'fixed_link': '',
    'contacts': [contact.name for contact in CONTACTS],
    'joint_states.velocity_source': 'message',
}
FOOT = 'l_foot'
"""Link on which the robot stands."""
JITTER_NS = 20_000
"""Largest distance of a stamp from its multiple of the period [ns]."""
PERIOD = 10
"""After which the motion repeats [s]."""
USUAL_RATE = 500
"""Of humanoids, at which the cost of the identifier counts [Hz]."""
WRONG = 0.2
"""Largest error of a mass of the URDF, over the mass."""
FT_OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
FT_NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
IMU_NOISE = 1e-3, 1e-2
"""Angular velocity and acceleration [rad/s, m/s^2]."""
START_TIMEOUT, SETTLE, END_TIMEOUT = 60.0, 3.0, 15.0
"""Until all processes have found each other; before figures count; to end [s]."""
TORQUES = 'wrench_estimator/joint_torques'
ESTIMATED, READ = 'wrench_estimator/external_wrenches', 'bare_reader/joint_states'


USUAL = {'imus': IMUS[:1], 'jitter': 0, 'silent': 0, 'heard': 'results', 'identifiers': 0}
"""Distance of stamps from multiples of the period [ns]; number of FT sensors without messages."""
CASES: dict[str, dict[str, Any]] = {
    'usual': {}, 'jitter': {'jitter': JITTER_NS}, 'FT sensor silent': {'silent': 1},
    'no topic heard': {'heard': 'none'}, 'all topics heard': {'heard': 'all'},
    '13 IMUs': {'imus': IMUS}, '13 IMUs, jitter': {'imus': IMUS, 'jitter': JITTER_NS},
    'identifier beside': {'identifiers': 1},
}  # fmt: skip
E, R = 'estimator', 'reader'
MEDIAN, LATE, COST = 'age p50 [us]', 'age p99 [us]', 'processor [us]'
COLUMNS = 'sent', 'missed', MEDIAN, LATE, 'age p99.9 [us]', COST
"""Of a process; processor time for each answer, or for each joint state where none is heard."""


def measure(
    rates: Sequence[int] = (250, 500, 1000), seconds: float = 10.0, pairs: int = 3
) -> tuple[list[Table], list[Goal]]:
    """Run estimator and bare reader side by side in all cases, in turn; leave out what fails."""
    keys = [(rate, name) for rate in rates for name in CASES]
    figures: dict[tuple[int, str, str], list[list[float]]] = defaultdict(list)
    for rate, name in chain(*(keys[:: 1 - 2 * (k % 2)] for k in range(pairs))):
        try:
            found = run(USUAL | CASES[name] | {'rate': rate}, seconds)
        except (InertialEstimationError, subprocess.TimeoutExpired, OSError) as error:
            sys.stderr.write(f'{name} at {rate} Hz: {error}\n')
            continue
        for process, row in found.items():
            figures[rate, name, process].append(row)
    rows = [(*key, *np.median(values, axis=0).tolist())
            for key, values in figures.items() if key[-1] != 'listener']  # fmt: skip

    def of(case: str, process: str, column: str, rate: int = max(rates)) -> np.ndarray:
        return np.array([row[COLUMNS.index(column)] for row in figures[rate, case, process]])

    def over(column: str, case: str, process: str, limit: float) -> Goal:
        pair = zip(of(case, E, column), of('usual', process, column))
        value, name = np.median([one / other for one, other in pair]), column.partition(' [')[0]
        return Goal(f'{name}: {case}, estimator / usual, {process}', float(value), limit)

    missed = float(np.sum(of('usual', E, 'missed') - of('usual', R, 'missed')))
    slower = min(rates, key=lambda rate: abs(rate - USUAL_RATE))
    share = 1e-6 * slower * np.median(of('identifier beside', 'identifier', COST, slower))
    goals = [
        Goal('missed by the estimator, not by the bare reader', missed, 0),
        over(COST, 'usual', R, 1.8), over(MEDIAN, 'usual', R, 1.6), over(LATE, 'usual', R, 1.8),
        over(COST, '13 IMUs, jitter', E, 1.3), over(COST, 'FT sensor silent', E, 1.15),
        over(LATE, 'all topics heard', E, 1.1), over(MEDIAN, 'identifier beside', E, 1.1),
        Goal(f"identifier's share of a core at {slower} Hz", float(share), 0.15),
    ]  # fmt: skip
    title, columns = f'Nodes, median of {pairs} x {seconds:g} s', ('rate [Hz]', 'case', 'process')
    return [Table(title, (*columns, *COLUMNS), rows)], goals


def run(case: Mapping[str, Any], seconds: float) -> dict[str, list[float]]:
    """Run all processes once in a ROS domain of their own; return `COLUMNS` of each."""
    environment = os.environ | {
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_DOMAIN_ID': str(1 + os.getpid() % 101),
        'OMP_NUM_THREADS': '1',
    }
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        urdf, parameters, answered = (folder / name for name in ('u.urdf', 'p.yaml', 'a.npz'))
        urdf.write_text(icub_urdf(), encoding='utf-8')
        given = {**SETTINGS, 'imus': list(case['imus']), 'robot_description_file': str(urdf)}
        own = {'/**': given, IDENTIFIER_NAME: {'loaded_frames': [FOOT]}}
        own = {name: {'ros__parameters': one} for name, one in own.items()}
        parameters.write_text(yaml.safe_dump(own))
        node = ['inertial_estimation_nodes', 'inertial_estimation.ros.{}_node', '--ros-args',
                '--params-file', str(parameters)]  # fmt: skip
        job = json.dumps({'urdf': str(urdf), 'answers': str(answered), **case})
        commands = {'estimator': [part.format('estimator') for part in node]}
        if case['identifiers']:
            commands['identifier'] = [part.format('identifier') for part in node]
        commands |= {role: ['bench.nodes', role, job] for role in ('reader', 'listener')}
        processes = {
            name: stack.enter_context(_process(words, environment))
            for name, words in commands.items()
        }
        robot = stack.enter_context(_process(['bench.nodes', 'robot', job], environment))
        assert robot.stdout is not None
        if robot.stdout.readline() != b'sending\n':
            raise InertialEstimationError('the nodes have not found each other')
        time.sleep(SETTLE)
        start_ns, busy = time.time_ns(), {k: _processor_time(p) for k, p in processes.items()}
        time.sleep(seconds)
        end_ns = time.time_ns()
        busy = {k: _processor_time(p) - busy[k] for k, p in processes.items()}
        robot.send_signal(signal.SIGINT)
        due = np.array(json.loads(robot.communicate(timeout=END_TIMEOUT)[0]))
        time.sleep(0.5)
        processes['listener'].communicate(timeout=END_TIMEOUT)
        with np.load(answered) as data:
            answers = {E: data[ESTIMATED], R: data[READ]}
    stamps, times = due[(due[:, 1] >= start_ns) & (due[:, 1] < end_ns)].T
    figures = {}
    for name, cost in busy.items():
        found = answers.get(name, np.zeros((0, 2), dtype=np.int64))
        _, heard_at, due_at = np.intersect1d(found[:, 0], stamps, return_indices=True)
        ages = 1e-3 * (found[heard_at, 1] - times[due_at])
        quantiles = np.percentile(ages, (50, 99, 99.9)) if len(ages) else np.full(3, np.nan)
        missed = len(stamps) - len(ages) if len(found) else np.nan
        each = 1e6 * cost / (len(ages) or len(stamps))
        figures[name] = [len(stamps), missed, *quantiles.tolist(), each]
    return figures


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


def messages(job: Mapping[str, Any]) -> list[tuple[str, type, list[bytearray]]]:
    """Return topic, type and the messages of a period of motion, the joint states last."""
    from geometry_msgs.msg import WrenchStamped
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Imu, JointState

    settings = EstimatorSettings.from_dict({**SETTINGS, 'imus': job['imus']})
    robot = build_robot(settings, Path(job['urdf']).read_text(encoding='utf-8'))
    rng = np.random.default_rng(0)
    n, joints = PERIOD * job['rate'], len(robot.joint_names)
    t = np.arange(n)[:, None] / job['rate']
    q, v, a = np.zeros((3, n, joints))
    for turns in (1, 2, 3, 5, 8):
        w = 2 * np.pi * turns / PERIOD
        size, phase = 0.4 * rng.normal(size=joints) / turns, rng.uniform(0, 2 * np.pi, joints)
        q += size * np.sin(w * t + phase)
        v += size * w * np.cos(w * t + phase)
        a -= size * w**2 * np.sin(w * t + phase)
    # The link of the first IMU stands still.
    turns, shakes, spins = np.zeros((3, n, len(robot.imus), 3))
    shakes[:, 0] = 0.0, 0.0, 9.81
    empty = np.zeros((n, len(robot.ft_sensors), 6))
    samples = SampleBatch(np.arange(1, n + 1), q, v, a, turns, shakes, spins, empty)
    motions = link_motions(robot, samples, poses_in_parents(robot, q), [0])
    for k, imu in enumerate(robot.imus):
        w, dw, shake = motions[imu.link]
        turns[:, k], spins[:, k] = gyroscope(w, imu.L_H_S), gyroscope(dw, imu.L_H_S)
        shakes[:, k] = accelerometer(w, np.hstack([shake, dw]), imu.L_H_S)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    held = held_by(robot, with_readings(robot, samples, truth), truth)[..., None]
    foot = link_poses(robot, q)[robot.link_names.index(FOOT)]
    force, moment = held[:, :3], held[:, 3:] - hat(foot[:, :3, 3]) @ held[:, :3]
    carried = np.swapaxes(foot[:, :3, :3], 1, 2)[:, None] @ np.stack([force, moment], axis=1)
    readings = with_readings(robot, samples, truth, {FOOT: carried.reshape(n, 6)}).ft_readings
    readings = readings + FT_OFFSET + FT_NOISE * rng.normal(size=empty.shape)
    imus = np.zeros((n, len(robot.imus), 37))
    for begin, level, values in zip((13, 25), IMU_NOISE, (turns, shakes)):
        imus[..., begin : begin + 3] = values + level * rng.normal(size=values.shape)
    found: list[tuple[str, type, list[bytearray]]] = []
    for kind, given, sensors, values in (
        (WrenchStamped, settings.ft_of, robot.ft_sensors, readings),
        (Imu, settings.imu_of, robot.imus, imus),
    ):
        for k, sensor in enumerate(sensors):
            message: Any = kind()
            message.header.frame_id = min(accepted_frame_ids(settings, robot, sensor))
            head = bytes(serialize_message(message))[: -8 * values.shape[2]]
            data = [bytearray(head + row.tobytes()) for row in values[:, k]]
            found.append((given(sensor.name).topic, kind, data))
    names, states = list(robot.joint_names), zip(q.tolist(), v.tolist(), strict=True)
    data = [
        bytearray(serialize_message(JointState(name=names, position=p, velocity=u, effort=[])))
        for p, u in states
    ]
    return [*found, (settings.joint_states.topics[0], JointState, data)]


def robot(job: Mapping[str, Any]) -> None:
    """Publish at a rate until SIGINT; print stamps of the joint states, and when they were due."""
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions

    topics = messages(job)
    # The handlers of rclpy would end its context within a publish.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    node = Node('robot')
    publishers = [(node.create_publisher(kind, name, 20), data) for name, kind, data in topics]
    deadline = time.monotonic() + START_TIMEOUT
    while any(one.get_subscription_count() < 2 + job['identifiers'] for one, _ in publishers):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
    time.sleep(0.5)
    sys.stdout.write('sending\n')
    sys.stdout.flush()
    del publishers[: job['silent']]
    due: list[tuple[int, int]] = []
    start, period = time.time_ns(), NANOSECONDS // job['rate']
    offsets = np.random.default_rng(0).uniform(-1, 1, (1000, len(publishers)))
    # Sensors measure before the joint states that they belong to.
    offsets[:, :-1] -= 2
    rows = (job['jitter'] * offsets).astype(int).tolist()
    try:
        while True:
            now = start + len(due) * period
            time.sleep(max(0.0, 1e-9 * (now - time.time_ns())))
            row = rows[len(due) % len(rows)]
            due.append((now + row[-1], time.time_ns()))
            for (publisher, data), offset in zip(publishers, row):
                message = data[len(due) % len(data)]
                STAMP.pack_into(message, STAMP_AT, *divmod(now + offset, NANOSECONDS))
                publisher.publish(bytes(message))
    except KeyboardInterrupt:
        sys.stdout.write(json.dumps(due))


def reader(job: Mapping[str, Any]) -> None:
    """Take all topics as bytes, and republish the joint states."""
    from rclpy.node import Node

    def prepare(node: Node, qos: Any) -> None:
        *sensors, (name, kind, _) = messages({**job, 'rate': 1})
        publisher = node.create_publisher(kind, READ, 20)
        for topic, of, _ in sensors:
            node.create_subscription(of, topic, lambda data: None, qos, raw=True)
        node.create_subscription(kind, name, publisher.publish, qos, raw=True)

    _spin('bare_reader', prepare)


def listener(job: Mapping[str, Any]) -> None:
    """Note stamps and arrivals of both answers, shape (n, 2) [ns], until standard input ends."""
    from rclpy.node import Node

    from inertial_estimation.ros.subscriptions import message_class

    answers: dict[str, list[tuple[int, int]]] = {ESTIMATED: [], READ: []}

    def note(name: str, data: bytes) -> None:
        if name in answers:
            seconds, rest = STAMP.unpack_from(data, STAMP_AT)
            answers[name].append((seconds * NANOSECONDS + rest, time.time_ns()))

    def prepare(node: Node, qos: Any) -> None:
        while node.count_publishers(ESTIMATED) + node.count_publishers(READ) < 2:
            time.sleep(0.1)
        time.sleep(1.0)
        topics = {name[1:]: kinds[0] for name, kinds in node.get_topic_names_and_types()}
        own = [name for name in topics if name.startswith('wrench_estimator/')]
        wanted = {'none': [], 'results': [ESTIMATED, TORQUES], 'all': own}
        for name in (*wanted[job['heard']], READ):
            kind = message_class(topics[name])
            node.create_subscription(kind, name, partial(note, name), qos, raw=True)

    def save_at_end() -> None:
        sys.stdin.read()
        np.savez(job['answers'], **{k: np.reshape(one, (-1, 2)) for k, one in answers.items()})
        os._exit(0)  # the executor waits in native code

    threading.Thread(target=save_at_end, daemon=True).start()
    _spin('listener', prepare)


def _spin(name: str, prepare: Callable[[Any, Any], None]) -> None:
    """Spin a node until the process is killed."""
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.task import Future

    rclpy.init()
    node = Node(name)
    prepare(node, QoSProfile(depth=20, reliability=ReliabilityPolicy.BEST_EFFORT))
    executor = EventsExecutor()
    executor.add_node(node)
    # Without a timeout some builds of this executor never take a message.
    executor.spin_until_future_complete(Future(), timeout_sec=1e6)


if __name__ == '__main__':
    {role.__name__: role for role in (robot, reader, listener)}[sys.argv[1]](
        json.loads(sys.argv[2])
    )
