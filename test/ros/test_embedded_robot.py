# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot as a node: what it publishes is what the simulator says, on time stamps.

Not covered: the simulator (test_simulation.py), whether it keeps real time.
"""

import signal
import subprocess
import sys
import time
from collections import defaultdict
from itertools import islice

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')
pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from geometry_msgs.msg import InertiaStamped, PointStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import String

from inertial_estimation.errors import ConfigError, FrameNotFound, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import stamp_to_ns
from inertial_estimation.simulation.node import EmbeddedRobot
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, carrying

MAIN = 'import sys; from inertial_estimation.simulation.node import main; sys.exit(main())'
RATE = 50
DURATION = 20.0
SEED = 3
IMU_LINKS = ['head_imu_0', 'l_foot']
N_CYCLES = 6
TIMEOUT = 30.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Listener:
    """Keeps the messages of a robot by topic and stamp."""

    def __init__(self, context, robot):
        self.node = Node('listener', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.executor.add_node(robot)
        self.heard = defaultdict(dict)

    def listen(self, message_type, *topics):
        for topic in topics:
            self.node.create_subscription(
                message_type,
                topic,
                lambda m, topic=topic: self.heard[topic].update({stamp_to_ns(m.header.stamp): m}),
                100,
            )

    def spin_until(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < deadline, 'what was waited for did not come'
            self.executor.spin_once(timeout_sec=0.02)


@pytest.fixture
def start(context):
    """Return a function that starts a robot in this process, with a listener."""
    made = []

    def make(**parameters):
        given = {'rate': RATE, 'seed': SEED, 'duration': DURATION, 'imus': IMU_LINKS, **parameters}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        robot = EmbeddedRobot(context=context, parameter_overrides=overrides)
        made.append((robot, Listener(context, robot)))
        return made[-1]

    yield make
    for robot, listener in made:
        listener.executor.shutdown()
        listener.node.destroy_node()
        robot.destroy_node()


def simulated(scene):
    """Return what the robot of the same parameters says: snapshots and samples."""
    links = {link: link for link in IMU_LINKS}
    robot = SimulatedRobot(SCENES[scene](DURATION, SEED), links, RATE)
    noise = SensorNoise(seed=SEED)
    return robot, ((s, noise.apply(s)) for s in iter(robot.step, None))


def vector(message):
    return [message.x, message.y, message.z]


def wrench(message):
    return [*vector(message.force), *vector(message.torque)]


@pytest.mark.parametrize('scene', ['pole', 'standing'])
def test_topics_say_what_the_simulator_says(start, scene):
    node, listener = start(scene=scene, audience=1)
    robot, truth = simulated(scene)
    fts = [f'{kind}/{name}' for kind in ('ft', 'ft_true') for name in robot.ft_names]
    imus = [f'imu/{name}' for name in IMU_LINKS]
    listener.listen(WrenchStamped, *fts)
    listener.listen(Imu, *imus)
    listener.listen(MultiDOFJointState, 'embedded_robot/external_wrenches')
    listener.listen(JointState, 'embedded_robot/joint_torques')
    # Last: from now on the robot moves.
    listener.listen(JointState, 'joint_states')
    heard = listener.heard
    topics = [*fts, *imus, 'embedded_robot/external_wrenches', 'embedded_robot/joint_torques']

    def common():
        return set(heard['joint_states']).intersection(*(heard[topic] for topic in topics))

    listener.spin_until(lambda: len(common()) > N_CYCLES)
    first = min(heard['joint_states'])
    period_ns = 10**9 // RATE
    cycles = {(stamp - first) // period_ns: stamp for stamp in common()}
    assert all((stamp - first) % period_ns == 0 for stamp in heard['joint_states'])
    for k, (snapshot, sample) in enumerate(islice(truth, 1 + max(cycles))):
        if k not in cycles:
            continue
        said = {topic: heard[topic][cycles[k]] for topic in ('joint_states', *topics)}
        joints = said['joint_states']
        assert tuple(joints.name) == robot.joint_names
        np.testing.assert_array_equal(joints.position, sample.positions)
        assert not joints.velocity and not joints.effort
        for row, name in enumerate(robot.ft_names):
            noisy, perfect = said[f'ft/{name}'], said[f'ft_true/{name}']
            np.testing.assert_array_equal(wrench(noisy.wrench), sample.ft_readings[row])
            np.testing.assert_array_equal(wrench(perfect.wrench), snapshot.ft_wrenches[row])
        for row, name in enumerate(IMU_LINKS):
            imu = said[f'imu/{name}']
            assert imu.header.frame_id == name
            assert imu.orientation_covariance[0] == -1.0
            rates, accelerations = sample.angular_velocities, sample.proper_accelerations
            np.testing.assert_array_equal(vector(imu.angular_velocity), rates[row])
            np.testing.assert_array_equal(vector(imu.linear_acceleration), accelerations[row])
        wrenches = said['embedded_robot/external_wrenches']
        assert tuple(wrenches.joint_names) == robot.contact_frames
        rows = [wrench(message) for message in wrenches.wrench]
        np.testing.assert_array_equal(rows, snapshot.external_wrenches)
        torques = said['embedded_robot/joint_torques']
        assert tuple(torques.name) == robot.joint_names
        np.testing.assert_array_equal(torques.effort, snapshot.torques)
    assert not node.done.done()


def test_what_is_picked_up_is_told_when_it_is(start):
    _, listener = start(scene='carrying', duration=1.0, audience=1)
    listener.listen(JointState, 'joint_states')
    listener.listen(InertiaStamped, 'embedded_robot/load')
    heard = listener.heard
    listener.spin_until(lambda: heard['embedded_robot/load'])
    ((stamp, message),) = heard['embedded_robot/load'].items()
    (load,) = carrying(1.0, SEED).loads
    start_ns = min(heard['joint_states']) - 10**9 // RATE
    assert load.start <= 1e-9 * (stamp - start_ns) < load.start + 1.5 / RATE
    assert message.header.frame_id == load.frame
    assert message.inertia.m == load.mass
    assert tuple(vector(message.inertia.com)) == load.center


def test_the_skin_tells_where_the_robot_is_pushed(start):
    _, listener = start(scene='pole', duration=3.0, audience=1)
    listener.listen(PointStamped, 'contacts')
    listener.listen(JointState, 'joint_states')
    heard = listener.heard
    listener.spin_until(lambda: len(heard['contacts']) > N_CYCLES)
    start_ns = min(heard['joint_states']) - 10**9 // RATE
    (first, *_) = SCENES['pole'](3.0, SEED).pushes
    for stamp, message in heard['contacts'].items():
        assert first.at(1e-9 * (stamp - start_ns)) is not None
        assert message.header.frame_id == first.frame
        assert vector(message.point) == [0.0, 0.0, 0.0]


def test_the_description_is_there_for_those_who_come_late(start):
    _, listener = start()
    texts = []
    listener.spin_until(lambda: listener.node.count_publishers('robot_description'))
    listener.node.create_subscription(
        String, 'robot_description', lambda m: texts.append(m.data), LATCHED
    )
    listener.spin_until(lambda: texts)
    robot = Robot.from_urdf(texts[0], imus=IMU_LINKS)
    assert len(robot.ft_sensors) == 6


def test_frames_of_the_fts_are_links_at_the_place_of_the_sensors(start):
    _, listener = start()
    robot = Robot.from_urdf(simulated('pole')[0].urdf)
    listener.listen(WrenchStamped, *(f'ft/{sensor.name}' for sensor in robot.ft_sensors))
    listener.spin_until(lambda: len(listener.heard) == len(robot.ft_sensors))
    for sensor in robot.ft_sensors:
        message = next(iter(listener.heard[f'ft/{sensor.name}'].values()))
        link, L_H_frame = robot.frame(message.header.frame_id)
        assert link == sensor.child
        np.testing.assert_allclose(L_H_frame, sensor.child_H_sensor, rtol=0.0, atol=1e-9)


def test_without_noise_sensors_say_the_truth(start):
    _, listener = start(noise=0.0)
    listener.listen(WrenchStamped, 'ft/l_arm_ft', 'ft_true/l_arm_ft')
    heard = listener.heard

    def common():
        return heard['ft/l_arm_ft'].keys() & heard['ft_true/l_arm_ft'].keys()

    listener.spin_until(lambda: len(common()) >= 3)
    for stamp in common():
        noisy, perfect = (heard[f'{kind}/l_arm_ft'][stamp] for kind in ('ft', 'ft_true'))
        assert wrench(noisy.wrench) == wrench(perfect.wrench)


def test_it_waits_for_its_audience(start):
    _, listener = start(audience=2)
    listener.listen(JointState, 'joint_states')
    listener.listen(WrenchStamped, 'ft/l_arm_ft')
    deadline = time.monotonic() + 0.5
    listener.spin_until(lambda: time.monotonic() > deadline)
    assert not listener.heard
    listener.node.create_subscription(JointState, 'joint_states', lambda m: None, 10)
    listener.spin_until(lambda: listener.heard['joint_states'])


@pytest.mark.parametrize(
    ('parameters', 'error', 'words'),
    [
        ({'scene': 'moon'}, NameNotFound, 'pole'),
        ({'rate': 300}, ConfigError, 'does not divide'),
        ({'imus': ['haed']}, FrameNotFound, 'head'),
    ],
)
def test_a_parameter_that_does_not_fit_is_named(start, parameters, error, words):
    with pytest.raises(error):
        start(**parameters)


def test_a_number_may_be_written_with_or_without_its_dot(start):
    robot, _ = start(rate=float(RATE), duration=20, noise=0)
    values = [robot.get_parameter(name).value for name in ('rate', 'duration', 'noise')]
    assert values == [RATE, 20.0, 0.0]
    assert [type(value) for value in values] == [int, float, float]


def test_every_parameter_is_described(start):
    robot, _ = start()
    for name in ('scene', 'rate', 'seed', 'duration', 'noise', 'audience', 'imus'):
        assert robot.describe_parameter(name).description


def launch(*parameters):
    """Start the robot as a process."""
    arguments = [text for parameter in parameters for text in ('-p', parameter)]
    return subprocess.Popen(
        [sys.executable, '-c', MAIN, '--ros-args', *arguments], stderr=subprocess.PIPE, text=True
    )


def wait_for(process, words):
    """Read what a process says until it says something."""
    said = ''
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_to(number):
    process = launch('rate:=250')
    wait_for(process, "scene 'standing'")
    time.sleep(0.3)
    process.send_signal(number)
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert 'Traceback' not in said and 'FATAL' not in said


def test_it_ends_by_itself():
    process = launch('duration:=0.5')
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert 'behind real time' in said


def test_a_wrong_parameter_is_an_exit_code():
    process = launch('rate:=2.5')
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert "'rate'" in said and 'Traceback' not in said
