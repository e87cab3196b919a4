# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot as a node: its topics equal the simulator's snapshots, by stamp.

Not covered: the simulator (test_simulation.py), whether it keeps real time.
"""

import signal
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')
pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from bench_robot import LATCHED, BenchRobot, stamp_of
from geometry_msgs.msg import InertiaStamped, PointStamped, WrenchStamped
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import String

from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.node import EmbeddedRobot
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, carrying

MAIN = 'import sys; from inertial_estimation.simulation.node import main; sys.exit(main())'
RATE, DURATION, SEED = 50, 20.0, 3
PERIOD_NS = 10**9 // RATE
IMU_LINKS = ['head_imu_0', 'l_foot']
N_CYCLES = 6
TIMEOUT = 30.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""


def by_stamp(messages):
    return {stamp_of(message): message for message in messages}


@pytest.fixture
def start(context, keep):
    """Return a function that starts a robot in this process, beside a listener."""
    given = {'rate': RATE, 'seed': SEED, 'duration': DURATION, 'imus': IMU_LINKS}
    return lambda **parameters: keep(BenchRobot(context, given | parameters, EmbeddedRobot))


def vector(message):
    return [message.x, message.y, message.z]


def wrench(message):
    return [*vector(message.force), *vector(message.torque)]


@pytest.mark.parametrize(('scene', 'noise'), [('pole', 1.0), ('standing', 0.0)])
def test_topics_equal_the_simulator(start, scene, noise):
    bench = start(scene=scene, audience=1, noise=noise)
    robot = SimulatedRobot(SCENES[scene](DURATION, SEED), {i: i for i in IMU_LINKS}, RATE)
    errors = SensorNoise(seed=SEED)
    fts = [f'{kind}/{name}' for kind in ('ft', 'ft_true') for name in robot.ft_names]
    imus = [f'imu/{name}' for name in IMU_LINKS]
    own = ['embedded_robot/external_wrenches', 'embedded_robot/joint_torques']
    kinds = dict.fromkeys(fts, WrenchStamped) | dict.fromkeys(imus, Imu)
    kinds |= dict(zip(own, (MultiDOFJointState, JointState)))
    # Last: from now on the robot moves.
    kinds['joint_states'] = JointState
    for topic, kind in kinds.items():
        bench.listen(kind, topic)

    def common():
        return set.intersection(*(set(by_stamp(bench.heard[topic])) for topic in kinds))

    bench.spin_until(lambda: len(common()) > N_CYCLES)
    heard = {topic: by_stamp(bench.heard[topic]) for topic in kinds}
    first = min(heard['joint_states'])
    assert all((stamp - first) % PERIOD_NS == 0 for stamp in heard['joint_states'])
    cycles = {(stamp - first) // PERIOD_NS: stamp for stamp in common()}
    for k, snapshot in enumerate(islice(iter(robot.step, None), 1 + max(cycles))):
        sample = errors.apply(snapshot)
        if k not in cycles:
            continue
        at = {topic: heard[topic][cycles[k]] for topic in kinds}
        joints = at['joint_states']
        assert tuple(joints.name) == robot.joint_names
        assert not joints.velocity and not joints.effort
        for row, name in enumerate(robot.ft_names):
            noisy, exact = wrench(at[f'ft/{name}'].wrench), wrench(at[f'ft_true/{name}'].wrench)
            np.testing.assert_array_equal(exact, snapshot.ft_wrenches[row])
            wanted = sample.ft_readings[row] if noise else exact
            np.testing.assert_array_equal(noisy, wanted)
        if noise:
            np.testing.assert_array_equal(joints.position, sample.positions)
        for row, name in enumerate(IMU_LINKS if noise else ()):
            imu = at[f'imu/{name}']
            assert imu.header.frame_id == name and imu.orientation_covariance[0] == -1.0
            rates, accelerations = sample.angular_velocities, sample.proper_accelerations
            np.testing.assert_array_equal(vector(imu.angular_velocity), rates[row])
            np.testing.assert_array_equal(vector(imu.linear_acceleration), accelerations[row])
        wrenches, torques = (at[topic] for topic in own)
        assert tuple(wrenches.joint_names) == robot.contact_frames
        found = [wrench(message) for message in wrenches.wrench]
        np.testing.assert_array_equal(found, snapshot.external_wrenches)
        assert tuple(torques.name) == robot.joint_names
        np.testing.assert_array_equal(torques.effort, snapshot.torques)
    assert not bench.estimator.done.done()


def hear(bench, kind, topic, count):
    """Return messages by the time since the start of the scene [s]."""
    bench.listen(kind, topic)
    bench.listen(JointState, 'joint_states')
    bench.spin_until(lambda: len(bench.heard[topic]) >= count)
    start_ns = min(by_stamp(bench.heard['joint_states'])) - PERIOD_NS
    return {1e-9 * (t - start_ns): one for t, one in by_stamp(bench.heard[topic]).items()}


def test_load_is_published_when_it_is_picked_up(start):
    bench = start(scene='carrying', duration=1.0, audience=1)
    ((time, message),) = hear(bench, InertiaStamped, 'embedded_robot/load', 1).items()
    (load,) = carrying(1.0, SEED).loads
    assert load.start <= time < load.start + 1.5 / RATE
    assert (message.header.frame_id, message.inertia.m) == (load.frame, load.mass)
    assert tuple(vector(message.inertia.com)) == load.center


def test_contacts_are_reported_while_it_is_pushed(start):
    bench = start(scene='pole', duration=3.0, audience=1)
    first, *_ = SCENES['pole'](3.0, SEED).pushes
    for time, message in hear(bench, PointStamped, 'contacts', N_CYCLES).items():
        assert first.at(time) is not None
        assert message.header.frame_id == first.frame and vector(message.point) == [0.0, 0.0, 0.0]


def test_urdf_is_latched_and_has_the_frames_of_the_sensors(start):
    bench = start(audience=2)
    bench.listen(JointState, 'joint_states')
    bench.listen(String, 'robot_description', LATCHED)
    bench.spin_until(lambda: bench.heard['robot_description'])
    # It waits for its audience.
    assert not bench.heard['joint_states']
    bench.listen(JointState, 'joint_states')
    robot = Robot.from_urdf(bench.heard['robot_description'][0].data, imus=IMU_LINKS)
    assert len(robot.ft_sensors) == 6
    for sensor in robot.ft_sensors:
        topic = f'ft/{sensor.name}'
        bench.listen(WrenchStamped, topic)
        bench.spin_until(lambda topic=topic: bench.heard[topic])
        message = bench.heard[topic][0]
        link, L_H_frame = robot.frame(message.header.frame_id)
        assert link == sensor.child
        np.testing.assert_allclose(L_H_frame, sensor.child_H_sensor, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(
    ('rate', 'number', 'code', 'wanted'),
    [
        (250, signal.SIGINT, 0, "scene 'standing'"),
        (250, signal.SIGTERM, 0, "scene 'standing'"),
        (2.5, None, 1, "'rate'"),
    ],
)
def test_it_ends_on_a_signal_or_refuses(rate, number, code, wanted):
    command = [sys.executable, '-c', MAIN, '--ros-args', '-p', f'rate:={rate}']
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        text = ''
        while wanted not in text:
            line = process.stderr.readline()
            assert line, text
            text += line
        if number is not None:
            process.send_signal(number)
        text += process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == code and 'Traceback' not in text
    assert ('FATAL' in text) == bool(code)
