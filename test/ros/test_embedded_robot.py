# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot as a node: its topics equal the simulator's snapshots and events, by stamp.

Not covered: the simulator (test_simulation.py), whether it keeps real time.
"""

import signal
import subprocess
import sys
import time
from itertools import islice

import numpy as np
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from bench_robot import LATCHED, BenchRobot, stamp_of
from geometry_msgs.msg import InertiaStamped, PointStamped, WrenchStamped
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import String

from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation import node as robot_node
from inertial_estimation.simulation.node import EmbeddedRobot
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import EVERY_SCENE

MAIN = 'import sys; from inertial_estimation.simulation.node import main; sys.exit(main())'
RATE, SEED = 50, 3
PERIOD_NS = 10**9 // RATE
IMU_LINKS = ['head_imu_0', 'l_foot']
N_CYCLES = 6
DELAY = 0.5
TIMEOUT = 30.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""


def vector(message):
    return [message.x, message.y, message.z]


def wrench(message):
    return [*vector(message.force), *vector(message.torque)]


# Both last until the first push, or until the load is picked up.
@pytest.mark.parametrize(
    ('scene', 'duration', 'noise', 'event'),
    [('pole', 3.0, 1.0, 'contacts'), ('carrying', 1.0, 0.0, 'embedded_robot/load')],
)
def test_topics_equal_the_simulator(context, keep, scene, duration, noise, event, monkeypatch):
    monkeypatch.setattr(robot_node, 'TOO_LATE', TIMEOUT)
    given = {
        'scene': scene, 'rate': RATE, 'seed': SEED, 'duration': duration, 'imus': IMU_LINKS,
        'audience': 1, 'noise': noise,
    }  # fmt: skip
    bench = keep(BenchRobot(context, given, EmbeddedRobot))
    scenario = EVERY_SCENE[scene](duration, SEED)
    robot = SimulatedRobot(scenario, {i: i for i in IMU_LINKS}, RATE)
    errors = SensorNoise(seed=SEED)
    fts = [f'{kind}/{name}' for kind in ('ft', 'ft_true') for name in robot.ft_names]
    imus = [f'imu/{name}' for name in IMU_LINKS]
    own = ['embedded_robot/external_wrenches', 'embedded_robot/joint_torques']
    kinds = dict.fromkeys(fts, WrenchStamped) | dict.fromkeys(imus, Imu)
    kinds |= dict(zip(own, (MultiDOFJointState, JointState)))
    bench.listen(String, 'robot_description', LATCHED)
    bench.listen(InertiaStamped if scenario.loads else PointStamped, event)
    for topic, kind in kinds.items():
        bench.listen(kind, topic)
    # It waits for its audience.
    bench.spin_for(3.0 / RATE)
    assert not any(map(bench.heard.get, kinds))
    kinds['joint_states'] = JointState
    bench.listen(JointState, 'joint_states')
    bench.spin_until(lambda: len(bench.heard[event]) >= (1 if scenario.loads else N_CYCLES))
    heard = {
        topic: {stamp_of(message): message for message in bench.heard[topic]} for topic in kinds
    }
    common = set.intersection(*map(set, heard.values()))
    first = min(heard['joint_states'])
    assert len(common) > N_CYCLES
    assert all((stamp - first) % PERIOD_NS == 0 for stamp in heard['joint_states'])
    cycles = {(stamp - first) // PERIOD_NS: stamp for stamp in common}
    model = Robot.from_urdf(bench.heard['robot_description'][0].data)
    assert tuple(sensor.name for sensor in model.ft_sensors) == robot.ft_names
    for k, snapshot in enumerate(islice(iter(robot.step, None), 1 + max(cycles))):
        sample = errors.apply(snapshot)
        if k not in cycles:
            continue
        at = {topic: heard[topic][cycles[k]] for topic in kinds}
        joints = at['joint_states']
        assert tuple(joints.name) == robot.joint_names
        assert not joints.velocity and not joints.effort
        for row, sensor in enumerate(model.ft_sensors):
            noisy, true = at[f'ft/{sensor.name}'], at[f'ft_true/{sensor.name}']
            np.testing.assert_array_equal(wrench(true.wrench), snapshot.ft_wrenches[row])
            wanted = sample.ft_readings[row] if noise else wrench(true.wrench)
            np.testing.assert_array_equal(wrench(noisy.wrench), wanted)
            link, L_H_frame = model.frame(noisy.header.frame_id)
            assert link == sensor.child
            np.testing.assert_allclose(L_H_frame, sensor.child_H_sensor, rtol=0.0, atol=1e-9)
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
    for message in bench.heard[event]:
        at = 1e-9 * (stamp_of(message) - first + PERIOD_NS)
        for load in scenario.loads:
            assert load.start <= at < load.start + 1.5 / RATE
            assert (message.header.frame_id, message.inertia.m) == (load.frame, load.mass)
            assert tuple(vector(message.inertia.com)) == load.center
        for push in scenario.pushes[:1]:
            assert push.at(at) is not None
            assert message.header.frame_id == push.frame and vector(message.point) == [0.0] * 3
    assert not bench.estimator.done.done()


def test_it_leaves_out_what_is_late(context, keep):
    """Else ages are those of the robot, and what it makes up for keeps estimators busy."""
    bench = keep(BenchRobot(context, {'rate': RATE, 'audience': 1}, EmbeddedRobot))
    states = bench.listen(JointState, 'joint_states')
    bench.spin_until(lambda: len(states) >= N_CYCLES)
    first, before = stamp_of(states[0]), len(states)
    time.sleep(DELAY)
    now_ns = time.time_ns()
    bench.spin_until(lambda: len(states) >= before + N_CYCLES)
    # One or two of them were sent before.
    stamps = list(map(stamp_of, states))[before + 2 :]
    assert stamps[0] > now_ns - 1e9 * (DELAY / 2)
    assert {(stamp - first) % PERIOD_NS for stamp in stamps} == {0}


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
