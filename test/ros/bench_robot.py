# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A node of the package in this process, a robot that publishes to it, and what it answers."""

import time
from collections import defaultdict

import bag_messages
import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, PoseStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from robots import nested_humanoid_urdf
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.signals.assembler import SampleAssembler

TIMEOUT = 60.0
"""Long, because a process starts ten times slower on a busy machine; nothing waits for it [s]."""
SETTLE = 0.05
"""What arrives at all on one machine has arrived by then [s]."""
ARRIVED = 2 * SETTLE
"""Likewise where it is taken up only now and then [s]."""
LOST = 10.0
"""Without an answer a request got lost [s]."""
START_NS = 1_000_000_000_000
PERIOD_NS = 10_000_000

HUMANOID = {
    'robot_description': nested_humanoid_urdf(),
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'imus': ['head'],
    'contacts': ['sole', 'hand', 'thigh', 'root'],
}
JOINTS = ('waist', 'neck', 'shoulder_joint', 'elbow', 'hip_joint', 'knee')
NO_FILTERS = {'joint_states.acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def stamp_of(message):
    return Time.from_msg(message.header.stamp).nanoseconds


class BenchRobot:
    """A node of the package and one beside it, spun by hand in one thread."""

    def __init__(self, context, parameters=HUMANOID, make=EstimatorNode, **given):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.estimator = make(context=context, parameter_overrides=overrides, **given)
        self.node = Node('robot', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.estimator)
        self._executor.add_node(self.node)
        self.heard = defaultdict(list)
        self._report = None
        self._publishers = {}

    def publisher(self, message_type, topic, qos=100):
        """Return a publisher that the estimator, if it subscribes, has found."""
        # Who publishes wants to know what the next report makes of it.
        self._report = None
        self._put_report_off()
        if topic not in self._publishers:
            publisher = self.node.create_publisher(message_type, topic, qos)
            self._publishers[topic] = publisher
            self.spin_until(lambda: publisher.get_subscription_count())
        return self._publishers[topic]

    def listen(self, message_type, topic, qos=100):
        """Return a list to which messages of a topic are appended from now on."""
        topic = topic.replace('~', self.estimator.get_name())
        subscription = self.node.create_subscription(
            message_type, topic, self.heard[topic].append, qos
        )
        self.spin_until(lambda: self.node.count_publishers(subscription.topic_name))
        return self.heard[topic]

    def listen_to_wrenches(self):
        return self.listen(MultiDOFJointState, 'wrench_estimator/external_wrenches')

    def listen_to_diagnostics(self):
        return self.listen(DiagnosticArray, '/diagnostics')

    def spin_until(self, condition, timeout=TIMEOUT, fails=True):
        """Spin until something holds, or fail, if it must hold."""
        deadline = time.monotonic() + timeout
        while not condition() and (fails or time.monotonic() < deadline):
            if time.monotonic() > deadline:
                raise TimeoutError('what was waited for did not come')
            self._executor.spin_once(timeout_sec=0.02)

    def spin_for(self, seconds):
        self.spin_until(lambda: False, seconds, fails=False)

    def spin_briefly(self, callbacks):
        """Let so many callbacks run, as far as something waits for them."""
        for _ in range(callbacks):
            self._executor.spin_once(timeout_sec=0.001)

    def wait_for_stamp(self, messages, stamp_ns):
        found = []
        self.spin_until(
            lambda: found.extend(m for m in messages if stamp_of(m) == stamp_ns) or found
        )
        return found[0]

    def send_ft(self, name, stamp_ns, wrench):
        data = bag_messages.wrench(stamp_ns, name, wrench)
        self.publisher(WrenchStamped, f'ft/{name}').publish(data)

    def send_imu(self, name, stamp_ns, angular_velocity, acceleration):
        data = bag_messages.imu(stamp_ns, name, angular_velocity, acceleration)
        self.publisher(Imu, f'imu/{name}').publish(data)

    def send_contact(self, stamp_ns, frame_id, point=(0.0, 0.0, 0.0)):
        data = bag_messages.point(stamp_ns, frame_id, point)
        self.publisher(PointStamped, 'contacts').publish(data)

    def send_contact_pose(self, stamp_ns, frame_id, position, quaternion):
        data = bag_messages.pose(stamp_ns, frame_id, position, quaternion)
        self.publisher(PoseStamped, 'contact_poses').publish(data)

    def send_joints(self, stamp_ns, positions, velocities=(), names=JOINTS):
        data = bag_messages.joint_state(stamp_ns, names, positions, velocities)
        self.publisher(JointState, 'joint_states').publish(data)

    def send_all(self, stamp_ns, rng):
        """Publish random readings of everything; return them."""
        n = len(JOINTS)
        q, v = 0.1 * rng.standard_normal(n), 0.1 * rng.standard_normal(n)
        wrenches = {name: rng.standard_normal(6) for name in HUMANOID['ft_sensors']}
        rates = rng.standard_normal(3)
        acceleration = rng.standard_normal(3) + np.array([0.0, 0.0, 9.81])
        for name, wrench in wrenches.items():
            self.send_ft(name, stamp_ns, wrench)
        self.send_imu('head', stamp_ns, rates, acceleration)
        self.spin_for(SETTLE)
        self.send_joints(stamp_ns, q, v)
        return q, v, wrenches, rates, acceleration

    def send_sample(self, robot, sample):
        """Publish the readings of a sample, then its joint state."""
        stamp = sample.stamp_ns
        for sensor, wrench in zip(robot.ft_sensors, sample.ft_readings):
            self.send_ft(sensor.name, stamp, wrench)
        imus = zip(robot.imus, sample.angular_velocities, sample.proper_accelerations)
        for imu, rate, acceleration in imus:
            self.send_imu(imu.name, stamp, rate, acceleration)
        # Readings are there before the joint states that they belong to.
        self.spin_briefly(8)
        self.send_joints(stamp, sample.positions, sample.velocities, robot.joint_names)

    def status(self, task):
        """Return what a report says of a task that is made once the last message has arrived."""
        if self._report is None:
            messages = self.heard['/diagnostics']
            self._put_report_off()
            self.spin_for(ARRIVED)
            messages.clear()
            self.estimator.pipeline._timer._timer.callback()
            self.spin_until(lambda: messages)
            self._report = {status.name: status for status in messages[0].status}
        return self._report[f'{self.estimator.get_name()}: {task}']

    def next_status(self, task):
        self._report = None
        return self.status(task)

    def _put_report_off(self):
        """Let the report that comes by itself wait for a second: one may be asked for before."""
        if getattr(self.estimator, 'pipeline', None) is not None:
            self.estimator.pipeline._timer._timer.reset()

    def call(self, service, data=None, kind=None, **request):
        """Return the answer of a Trigger, or of a SetBool if there are data."""
        if data is not None:
            request['data'] = data
        kind, self._report = kind or (Trigger if data is None else SetBool), None
        client = self.node.create_client(kind, f'{self.estimator.get_name()}/{service}')
        self.spin_until(client.service_is_ready)
        # Ready or not, a request may get lost while the two are still finding each other.
        answers = []
        while not answers:
            client.call_async(kind.Request(**request)).add_done_callback(answers.append)
            self.spin_until(lambda: answers, LOST, fails=False)
        self.node.destroy_client(client)
        return answers[0].result()

    def close(self):
        self._executor.shutdown()
        self.estimator.destroy_node()
        self.node.destroy_node()


def figure(status, key):
    return next(value.value for value in status.values if value.key == key)


def rows(message):
    return np.array([
        [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
        for w in message.wrench
    ])  # fmt: skip


class Library:
    """Robot, estimator and samples that the library makes of the readings that were sent."""

    def __init__(self, sent, **parameters):
        self.settings = EstimatorSettings.from_dict(HUMANOID | parameters)
        self.robot = build_robot(self.settings, self.settings.robot_description)
        self.estimator = build_estimator(self.settings, self.robot)
        self.assembler = SampleAssembler(self.robot, self.settings)
        self.samples = []
        for stamp_ns, (q, v, wrenches, rates, acceleration) in sent.items():
            for k, wrench in enumerate(wrenches.values()):
                self.assembler.push_ft(k, stamp_ns, wrench)
            self.assembler.push_imu(0, stamp_ns, rates, acceleration)
            sample = self.assembler.push_joints(0, stamp_ns, JOINTS, q, v, np.empty(0))
            if sample is not None:
                self.samples.append(sample)
