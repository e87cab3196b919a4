# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs of real arms that report efforts, played to the process of the identifier.

It has its parameter file as it is. Not covered: pushes, recursive against batch
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
from inertial_estimation.ros.identifier_outputs import PROGRESS, SEPARATOR
from inertial_estimation.ros.inertial_parameters import TOPIC, from_message

pytestmark = pytest.mark.live

MAIN = 'import sys; from inertial_estimation.ros.identifier_node import main; sys.exit(main())'
PATIENCE = 60.0
"""For the process to listen, and to be done with the last window [s]."""
EVERY = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BASE = 'parameter_identifier/base_parameters'
PROGRESS_TOPIC = 'parameter_identifier/progress'


@pytest.fixture(params=[UR10E, PANDA], ids=['ur10e', 'panda'])
def arm(request):
    request.param.read()
    request.param.description()
    return request.param


@pytest.fixture
def identifier(arm):
    """Start the process."""
    command = [
        sys.executable, '-c', MAIN, '--ros-args', '--params-file', str(arm.config),
        '-p', f'robot_description_file:={arm.urdf}',
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


class Driver:
    """Publishes the joint states of an arm, and keeps the messages of the identifier."""

    def __init__(self, context):
        self.node = Node('driver', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self.states = self.node.create_publisher(JointState, 'joint_states', 1000)
        self.heard = {TOPIC: [], BASE: [], PROGRESS_TOPIC: []}
        for topic, messages in self.heard.items():
            self.node.create_subscription(Float64MultiArray, topic, messages.append, EVERY)

    def play(self, log):
        """Play a log in its own time, or slower."""
        start = time.time_ns()
        for k, seconds in enumerate(log.times - log.times[0]):
            stamp_ns = start + round(1e9 * seconds)
            self.spin(1e-9 * (stamp_ns - time.time_ns()))
            message = JointState(
                name=list(log.joints), position=log.positions[k].tolist(),
                velocity=log.velocities[k].tolist(), effort=log.efforts[k].tolist(),
            )  # fmt: skip
            message.header.stamp = ns_to_stamp(stamp_ns)
            self.states.publish(message)

    def spin(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            self.spin(0.1)

    def tables(self, topic):
        """Return the tables of a topic, with the label of their rows."""
        return [
            (
                message.layout.dim[0].label,
                np.reshape(message.data, [d.size for d in message.layout.dim]),
            )
            for message in self.heard[topic]
        ]

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def driver(context):
    made = Driver(context)
    yield made
    made.close()


def test_parameters_of_a_real_arm_are_published(arm, identifier, driver):
    driver.wait(lambda: identifier.poll() is None and driver.states.get_subscription_count())
    driver.play(arm.read().between(arm.first, arm.last))

    def figures():
        """Return the progress of all refits by column."""
        tables = [table for _, table in driver.tables(PROGRESS_TOPIC)]
        return dict(
            zip(PROGRESS, np.concatenate([np.full((1, len(PROGRESS)), np.nan), *tables]).T)
        )

    # The last update may be on its way.
    driver.wait(lambda: figures()['rank'][-1] == figures()['base_parameters'][-1])
    driver.wait(lambda: driver.heard[TOPIC] and driver.heard[BASE])
    settings = IdentifierSettings.from_yaml(arm.config, 'parameter_identifier')
    robot = build_robot(settings, arm.description())
    for message in driver.heard[TOPIC]:
        assert consistency_margin(from_message(robot, message)).min() > 0.0
    found = figures()
    if arm is PANDA:
        # 43 base parameters, as published of this log, and three terms of friction a joint.
        assert found['rank'][-1] == 43 + 3 * 7
    assert found['determined'][-1] >= settings.refit.min_determined
    # Of equations that were not used before.
    errors = (np.array(found[f'effort_{when}']) for when in ('before', 'after'))
    before, after = (np.sqrt(np.nanmean(np.square(one))) for one in errors)
    assert after < 0.5 * before
    # The combinations are named once, and those of the newest update are determined.
    labels, values = driver.tables(BASE)[-1]
    names = labels.split(SEPARATOR)
    assert len(names) == len(set(names)) == len(values) == found['base_parameters'][-1]
    assert all(f'{robot.submodels[0].name}: ' in name for name in names)
    assert np.isfinite(values).sum(axis=0)[1] >= settings.refit.min_determined
