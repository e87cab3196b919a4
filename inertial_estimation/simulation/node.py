# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The node ``embedded_robot``: the simulated iCub with the topics of a real one, in real time.

Its skin reports pushes on ``contacts``. Besides the sensors it publishes FT readings without noise
on ``ft_true/<name>``, and under its own name the true external wrenches and joint torques, with
the names and stamps of an estimator, and its loads.
"""

import gc
from dataclasses import astuple
from time import monotonic_ns, time_ns

import numpy as np
from geometry_msgs.msg import InertiaStamped, PointStamped, WrenchStamped
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import String

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.encoders import effort_encoder, wrenches_encoder
from inertial_estimation.ros.executors import run_node
from inertial_estimation.sample import Sample
from inertial_estimation.signals.cdr import NANOSECONDS
from inertial_estimation.signals.messages import IMU, INERTIA, JOINT_STATE, POINT, WRENCH, Encoder
from inertial_estimation.simulation.noise import NoiseLevels, SensorNoise
from inertial_estimation.simulation.robot import IMUS, SimulatedRobot
from inertial_estimation.simulation.scenario import EVERY_SCENE
from inertial_estimation.simulation.truth import Snapshot

NODE_NAME = 'embedded_robot'
TOO_LATE = 0.02
"""Delay behind real time from which samples are left out; filters of 0.1 s bear it [s]."""
CATCH_UP = 2
"""Largest speed over real time of what is published: a burst would overflow queues."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STREAM = QoSProfile(depth=100)
"""Reliable subscribers may be late by as many messages."""


class EmbeddedRobot(Node):
    """Publishes the simulated robot in real time."""

    def __init__(self, **kwargs) -> None:
        super().__init__(NODE_NAME, **kwargs)
        self.done = Future()
        new = self._declare
        scene = new('scene', 'standing', f'One of {", ".join(EVERY_SCENE)}')
        rate = new('rate', 250, 'Joint states per second, divides 1000 [Hz]', (1, 1000))
        seed = new('seed', 0, 'Seed of motion, pushes and noise', (0, 2**31 - 1))
        duration = new('duration', 60.0, 'Duration of the scene [s]', (0.1, 3600.0))
        noise = new('noise', 1.0, 'Factor of the noise of the sensors', (0.0, 100.0))
        self._audience = new('audience', 0, 'Subscribers of joint_states to wait for', (0, 100))
        imus = list(new('imus', list(IMUS), 'Links that carry an IMU of the same name'))
        if scene not in EVERY_SCENE:
            raise NameNotFound('scene', scene, EVERY_SCENE)
        scenario = EVERY_SCENE[scene](duration, seed)
        self._coming = sorted(scenario.loads, key=lambda load: -load.start)
        self._robot = SimulatedRobot(scenario, {link: link for link in imus}, rate)
        levels = NoiseLevels(*(noise * level for level in astuple(NoiseLevels())))
        self._noise = SensorNoise(levels, seed)
        self._duration_ns, self._period_ns = round(1e9 * duration), NANOSECONDS // rate
        self._stopped, self._left_out = False, 0
        self._make_publishers()
        self._next = self._robot.step()
        self._wall_start_ns = self._start_ns = 0
        self.create_timer(1e-9 * self._period_ns, self._tick)
        # The objects of the start are never garbage; scanning them would cost a cycle.
        gc.collect()
        gc.freeze()
        self.get_logger().info(
            f"scene '{scene}' for {duration:g} s at {rate} Hz with {len(imus)} IMUs"
        )

    def stop(self) -> None:
        """End at the next cycle."""
        self._stopped = True

    def _tick(self) -> None:
        """Publish the samples that are due, and compute the next one."""
        if not self._start_ns and not self._stopped:
            if self._joints.get_subscription_count() < self._audience:
                return
            self._wall_start_ns, self._start_ns = time_ns(), monotonic_ns()
        for _ in range(CATCH_UP):
            # Stamps are multiples of the period from the start, whenever the timer fires.
            late_ns = monotonic_ns() - self._start_ns - self._next.time_ns
            ends = self._stopped or self._next.time_ns > self._duration_ns
            if ends and not self.done.done():
                self.get_logger().info(f'left out {self._left_out} samples')
                self.done.set_result('')
            if self.done.done() or late_ns < -self._period_ns // 2:
                return
            count = min(late_ns, NANOSECONDS) // self._period_ns
            if count and late_ns > 1e9 * TOO_LATE:
                self._left_out += count
                text = f'{1e-9 * late_ns:.2f} s behind real time: left out {count} samples'
                self.get_logger().warning(text, throttle_duration_sec=5.0)
                for _ in range(count):
                    # The noise at a stamp does not depend on what is left out.
                    self._noise.apply(self._next)
                    self._next = self._robot.step()
            self._publish(self._next)
            self._next = self._robot.step()

    def _publish(self, snapshot: Snapshot) -> None:
        """Publish one sample, the joint states last, as they trigger estimates."""
        stamp_ns = self._wall_start_ns + snapshot.time_ns
        sample: Sample = self._noise.apply(snapshot)
        for k, (publisher, true_publisher, encode) in enumerate(self._fts):
            publisher.publish(encode(stamp_ns, sample.ft_readings[k]))
            if true_publisher.get_subscription_count():
                true_publisher.publish(encode(stamp_ns, snapshot.ft_wrenches[k]))
        for k, (publisher, encode) in enumerate(self._imus):
            self._imu_values[13:16] = sample.angular_velocities[k]
            self._imu_values[25:28] = sample.proper_accelerations[k]
            publisher.publish(encode(stamp_ns, self._imu_values))
        for frame in self._robot.pushed:
            self._touches.publish(Encoder(POINT, frame).encode(stamp_ns, np.zeros(3)))
        while self._coming and self._coming[-1].start <= 1e-9 * snapshot.time_ns:
            load = self._coming.pop()
            about = np.diag([load.inertia] * 3)[np.triu_indices(3)]
            values = np.array([load.mass, *load.center, *about])
            self._loads.publish(Encoder(INERTIA, load.frame).encode(stamp_ns, values))
        self._wrenches.publish(self._encode_wrenches(stamp_ns, snapshot.external_wrenches))
        self._torques.publish(self._encode_torques(stamp_ns, snapshot.torques))
        self._joints.publish(self._encode_joints(stamp_ns, sample.positions))

    def _make_publishers(self) -> None:
        robot = self._robot
        read = Robot.from_urdf(robot.urdf)
        # On the iCub every sensor frame is the frame of the child link.
        self._fts = [
            (*(self.create_publisher(WrenchStamped, f'{kind}/{sensor.name}', STREAM)
               for kind in ('ft', 'ft_true')),
             Encoder(WRENCH, read.link_names[sensor.child]).encode)
            for sensor in read.ft_sensors
        ]  # fmt: skip
        self._imus = [
            (self.create_publisher(Imu, f'imu/{name}', STREAM), Encoder(IMU, name).encode)
            for name in robot.imu_names
        ]
        self._imu_values = np.zeros(37)
        # No orientation: w, and the first number of its covariance.
        self._imu_values[3:5] = 1.0, -1.0
        counts = len(robot.joint_names), 0, 0
        self._encode_joints = Encoder(JOINT_STATE, '', robot.joint_names, counts).encode
        self._joints = self.create_publisher(JointState, 'joint_states', STREAM)
        self._touches = self.create_publisher(PointStamped, 'contacts', STREAM)
        self._wrenches = self.create_publisher(MultiDOFJointState, '~/external_wrenches', STREAM)
        self._torques = self.create_publisher(JointState, '~/joint_torques', STREAM)
        self._loads = self.create_publisher(InertiaStamped, '~/load', LATCHED)
        self._encode_wrenches = wrenches_encoder(robot.contact_frames).encode
        self._encode_torques = effort_encoder(robot.joint_names).encode
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=robot.urdf))

    def _declare(self, name: str, default, description: str, limits: tuple = ()):
        """Declare a parameter that is read once; return its value, 60 and 60.0 being the same."""
        described = ParameterDescriptor(
            description=description, read_only=True, dynamic_typing=bool(limits)
        )
        value = self.declare_parameter(name, default, described).value
        if not limits:
            return value
        kind, (low, high) = type(default), limits
        is_number = isinstance(value, int | float) and low <= value <= high
        if not is_number or kind(value) != value:
            what = f'{"whole " * (kind is int)}number from {low:g} to {high:g}'
            raise ConfigError(f"'{name}' is {value!r}, expected a {what}")
        return kind(value)


def main() -> int:
    """Run the node until its scenario is over or it is interrupted."""
    return run_node(EmbeddedRobot, NODE_NAME)
