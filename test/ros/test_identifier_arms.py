# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs of real arms that report efforts, played to the process of the identifier in real time.

It has its parameter file as it is. Not covered: what the recursion makes of pushes
(`../test_recursion_arms.py`).
"""

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from recorded_arms import PANDA, UR10E
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.ros.conversions import ns_to_stamp
from inertial_estimation.ros.identifier_messages import PROGRESS
from inertial_estimation.ros.inertial_parameters import TOPIC, from_message

pytestmark = pytest.mark.live

MAIN = 'import sys; from inertial_estimation.ros.identifier_node import main; sys.exit(main())'
STARTED, SETTLED = 30.0, 3.0
"""For the process to listen, and to be done with the last stretch [s]."""
EVERY = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WAITS = 5.0
"""Time that gives no rows: rest, filters that fill, and stretches that wait for others [s]."""


@pytest.fixture(params=[UR10E, PANDA], ids=['ur10e', 'panda'])
def arm(request):
    return request.param


@pytest.fixture
def identifier(arm):
    """Start the process."""
    arm.read()
    arm.description()
    command = [
        sys.executable, '-c', MAIN, '--ros-args', '--params-file', str(arm.config),
        '-p', f'robot_description_file:={arm.urdf}',
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


class Driver:
    """Publishes what an arm reports, and keeps what it hears of the identifier."""

    def __init__(self, context):
        self.node = Node('driver', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self._states = self.node.create_publisher(JointState, 'joint_states', 1000)
        self.updates, self.progress = [], []
        for topic, heard in (
            (TOPIC, self.updates),
            ('parameter_identifier/progress', self.progress),
        ):
            self.node.create_subscription(Float64MultiArray, topic, heard.append, EVERY)

    def wait(self, process):
        """Wait until the identifier listens."""
        deadline = time.monotonic() + STARTED
        while not self._states.get_subscription_count():
            assert process.poll() is None and time.monotonic() < deadline
            self.spin(0.1)

    def play(self, log):
        """Play a log in its own time."""
        start = time.time_ns()
        for k, seconds in enumerate(log.times - log.times[0]):
            stamp_ns = start + round(1e9 * seconds)
            self.spin(1e-9 * (stamp_ns - time.time_ns()))
            message = JointState(
                name=list(log.joints), position=log.positions[k].tolist(),
                velocity=log.velocities[k].tolist(), effort=log.efforts[k].tolist(),
            )  # fmt: skip
            message.header.stamp = ns_to_stamp(stamp_ns)
            self._states.publish(message)

    def spin(self, seconds):
        """Hear what comes in some time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def driver(context):
    made = Driver(context)
    yield made
    made.close()


def test_bodies_of_a_real_arm_are_told_and_predict_its_efforts(arm, identifier, driver):
    driver.wait(identifier)
    log = arm.read().between(arm.first, arm.last)
    driver.play(log)
    driver.spin(SETTLED)
    settings = IdentifierSettings.from_yaml(arm.config, 'parameter_identifier')
    robot = build_robot(settings, arm.description())
    updates = [from_message(robot, message) for message in driver.updates]
    seconds = log.times[-1] - log.times[0]
    # One a second, from the first motion on.
    assert len(updates) > 0.5 * (seconds - WAITS)
    assert all(consistency_margin(bodies).min() > 0.0 for bodies in updates)
    tables = [np.reshape(message.data, (-1, len(PROGRESS))) for message in driver.progress]
    assert all(table.shape == (1, len(PROGRESS)) for table in tables)
    figures = dict(zip(PROGRESS, np.concatenate(tables).T))
    assert figures['seconds'][-1] > seconds - WAITS
    assert figures['rank'][-1] == figures['base_parameters'][-1]
    assert figures['told'][-1] >= settings.least_told
    if arm is PANDA:
        # 43 base parameters and three terms of friction for each joint, as published of this log.
        assert figures['rank'][-1] == 43 + 3 * 7
    # Of rows that bodies had not been found from.
    before, after = (
        np.sqrt(np.nanmean(np.square(figures[f'effort_{when}']))) for when in ('before', 'after')
    )
    assert after < 0.5 * before
