# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inputs that are polled make the samples that callbacks would have made, and decode less.

Not covered: the middleware (test_identifier_node.py); how long messages wait.
"""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState, Temperature

from inertial_estimation.building import build_assembler, build_contact_stream, build_robot
from inertial_estimation.config import IdentifierSettings
from inertial_estimation.ros.conversions import (
    ns_to_stamp,
    point_to_message,
    wrench_to_message,
)
from inertial_estimation.ros.polled_inputs import PolledInputs
from inertial_estimation.signals.sensor_stream import SensorStream

FIXED = {key: value for key, value in HUMANOID.items() if key != 'imus'} | {
    'fixed_link': 'root',
    'ft.arm_sensor.temperature_topic': 'arm/temperature',
}
START_NS, STEP_NS = 1_000_000_000, 1_000_000
SENSORS = ('arm_sensor', 'leg_sensor', 'foot_sensor')


class Subscription:
    """Holds messages as the middleware would."""

    def __init__(self):
        self.messages, self.msg_type, self.handle = [], None, self

    def take_message(self, kind, raw):
        return (self.messages.pop(0), None) if self.messages else None


class Robot:
    """Polled inputs without a middleware, and what they make of messages."""

    def __init__(self, every_ns=10 * STEP_NS, **parameters):
        settings = IdentifierSettings.from_dict(FIXED | parameters)
        robot = build_robot(settings, settings.robot_description)
        self.subscriptions = {}
        self.samples, self.every_ns = [], every_ns
        self.assembler = build_assembler(settings, robot)
        self.contacts = build_contact_stream(settings, robot)
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=0))
        node = SimpleNamespace(
            create_subscription=self._subscribe, create_timer=lambda *_, **__: None,
            get_clock=lambda: clock,
        )  # fmt: skip
        self.inputs = PolledInputs(
            node, settings, robot, self.assembler, self.contacts, self._take
        )

    def _subscribe(self, kind, topic, *_, **__):
        self.subscriptions[topic] = Subscription()
        return self.subscriptions[topic]

    def _take(self, sample):
        self.samples.append((sample, self.contacts.at(sample.stamp_ns)))
        self.assembler.wanted_ns = sample.stamp_ns + self.every_ns

    def send(self, topic, message):
        self.subscriptions[topic].messages.append(bytes(serialize_message(message)))


def said(k, rng):
    """Yield topics and messages of one instant, the joint states last."""
    stamp = START_NS + k * STEP_NS
    for name in SENSORS:
        yield f'ft/{name}', wrench_to_message(stamp, name, rng.normal(size=6))
    if k % 20 == 3:
        warm = Temperature(temperature=20.0 + k)
        warm.header.stamp = ns_to_stamp(stamp)
        yield 'arm/temperature', warm
    if k % 7 == 0:
        yield 'contacts', point_to_message(stamp, 'hand', (0.0, 0.0, 1e-3 * k))
    state = JointState(name=list(JOINTS), position=rng.normal(size=len(JOINTS)).tolist())
    state.velocity = [0.0] * len(JOINTS)
    state.header.stamp = ns_to_stamp(stamp)
    yield 'joint_states', state


def run(batch, frames=None, **parameters):
    """Return samples of messages that are looked at after so many instants."""
    robot, rng = Robot(acceleration_source='zero', **parameters), np.random.default_rng(0)
    for k in range(200):
        for topic, message in said(k, rng):
            robot.send(topic, message)
        if k % batch == batch - 1:
            robot.inputs.poll()
    robot.inputs.poll()
    return robot


@pytest.fixture
def pushed(monkeypatch):
    """Count the readings whose numbers are looked at."""
    counts, whole = Counter(), SensorStream.push

    def push(self, *args):
        counts[self.name] += 1
        return whole(self, *args)

    monkeypatch.setattr(SensorStream, 'push', push)
    return counts


@pytest.mark.parametrize('batch', [7, 50, 200])
@pytest.mark.parametrize('given', [{}, {'smooth_readings': True}, {'raw': True}])
def test_samples_do_not_depend_on_when_messages_are_looked_at(batch, given):
    at_once, later = run(1, **given), run(batch, **given)
    assert len(at_once.samples) == len(later.samples) >= 15
    for (one, touches), (other, later_touches) in zip(at_once.samples, later.samples, strict=True):
        assert one.stamp_ns == other.stamp_ns
        np.testing.assert_array_equal(one.ft_readings, other.ft_readings)
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.ft_temperatures, other.ft_temperatures)
        np.testing.assert_array_equal(one.ft_states, other.ft_states)
        assert touches == later_touches
    assert any(touches for _, touches in at_once.samples)
    assert len({sample.ft_temperatures[0] for sample, _ in at_once.samples[1:]}) >= 8


def test_what_no_sample_uses_is_counted_and_not_decoded(pushed):
    robot = run(50)
    assert len(robot.samples) == 20
    for name in SENSORS:
        assert robot.assembler.statistics().fts[name].received == 200
        # One for each sample, and what came after the last one.
        assert 20 <= pushed[name] <= 30


def test_filters_get_every_reading(pushed):
    run(50, smooth_readings=True)
    assert set(pushed.values()) == {200}


def test_slow_rows_do_not_make_a_sensor_look_frozen(pushed):
    robot = Robot(every_ns=100 * STEP_NS, acceleration_source='zero')
    rng = np.random.default_rng(0)
    for k in range(200):
        for topic, message in said(k, rng):
            # A sensor of few digits: the same at each sample, not in between.
            if topic == 'ft/arm_sensor':
                message.wrench.force.x = float(k % 100 // 20)
                message = wrench_to_message(
                    START_NS + k * STEP_NS, 'arm_sensor', np.full(6, message.wrench.force.x)
                )
            robot.send(topic, message)
    robot.inputs.poll()
    assert len(robot.samples) == 2
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples)
    assert robot.assembler.statistics().fts['arm_sensor'].frozen == 0


def test_sensors_are_heard_of_without_joint_states():
    robot, rng = Robot(), np.random.default_rng(0)
    for topic, message in said(0, rng):
        if topic != 'joint_states':
            robot.send(topic, message)
    robot.inputs.poll()
    assert robot.assembler.statistics().fts['arm_sensor'].received == 1


def test_messages_in_another_byte_order_are_read_as_well():
    robot, rng = Robot(acceleration_source='zero'), np.random.default_rng(0)
    for k in range(100):
        for topic, message in said(k, rng):
            robot.send(topic, message)
        # What the quick reader does not know, rclpy has to read.
        swapped = robot.subscriptions['joint_states'].messages
        swapped[-1] = b'\x00\x01\x00\x03' + swapped[-1][4:]
        if k % 25 == 24:
            robot.inputs.poll()
    assert len(robot.samples) == 10
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples)
    joints = next(one for one in robot.inputs.sources if one.kind == 'joints')
    assert joints.fallbacks == 100


def test_a_clock_that_is_set_back_blocks_nothing():
    robot, rng = Robot(acceleration_source='zero'), np.random.default_rng(0)
    # What is taken together with the jump may be lost, nothing after it.
    for count, k in enumerate((*range(100, 150), *range(75)), start=1):
        for topic, message in said(k, rng):
            robot.send(topic, message)
        if not count % 25 and count != 50:
            robot.inputs.poll()
    assert robot.samples[-1][0].stamp_ns < START_NS + 75 * STEP_NS
    assert robot.assembler.statistics().resets == 1
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples[-4:])
