# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From bytes to samples: messages that are polled, and those that cannot be used.

Not covered: the middleware (test/ros), the decoders (test_messages.py).
"""

from collections import defaultdict

import bag_messages
import numpy as np
import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import LogError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.logs.bag import deserialize
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import Backlog, Router

HUMANOID = {
    'robot_description': nested_humanoid_urdf(),
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'imus': ['head'],
    'contacts': ['sole', 'hand', 'thigh', 'root'],
    'joint_states.acceleration_source': 'zero',
    'ft.arm_sensor.temperature_topic': 'arm/temperature',
}
FIXED = {key: value for key, value in HUMANOID.items() if key != 'imus'} | {'fixed_link': 'root'}
JOINTS = ('waist', 'neck', 'shoulder_joint', 'elbow', 'hip_joint', 'knee')
START_NS, STEP_NS = 1_000_000_000, 1_000_000
SENSORS = ('arm_sensor', 'leg_sensor', 'foot_sensor')


class Robot:
    """A router with its assembler, whose messages are handed over or wait."""

    def __init__(self, parameters=FIXED, every_ns=10 * STEP_NS, strict=False, **more):
        settings = IdentifierSettings.from_dict(parameters | more)
        robot = build_robot(settings, settings.robot_description)
        self.samples, self.every_ns = [], every_ns
        self.assembler = SampleAssembler(robot, settings)
        self.contacts = ContactStream(robot, settings)
        self.now_ns = 0
        self.router = Router(
            settings, robot, self.assembler, self.contacts.push, deserialize,
            strict=strict, now_ns=lambda: self.now_ns,
        )  # fmt: skip
        self.source = {source.topic: source for source in self.router.sources}
        self.backlog = Backlog(self.router, self.assembler)
        self.waiting = defaultdict(list)

    def send(self, topic, message):
        self.waiting[topic].append(message)

    def poll(self):
        for sample in self.backlog.poll(lambda source: self.waiting.pop(source.topic, [])):
            self.samples.append((sample, self.contacts.at(sample.stamp_ns)))
            self.assembler.wanted_ns = sample.stamp_ns + self.every_ns

    def received(self, name):
        return self.assembler.statistics().fts[name].received


def messages(k, rng):
    """Yield topics and messages of one instant, the joint states last."""
    stamp = START_NS + k * STEP_NS
    for name in SENSORS:
        yield f'ft/{name}', bag_messages.wrench(stamp, name, rng.normal(size=6))
    if k % 20 == 3:
        yield 'arm/temperature', bag_messages.temperature(stamp, '', 20.0 + k)
    if k % 7 == 0:
        yield 'contacts', bag_messages.point(stamp, 'hand', (0.0, 0.0, 1e-3 * k))
    positions, velocities = rng.normal(size=len(JOINTS)), np.zeros(len(JOINTS))
    yield 'joint_states', bag_messages.joint_state(stamp, JOINTS, positions, velocities)


def run(batch, **parameters):
    """Return the samples of messages that are polled after so many instants."""
    robot, rng = Robot(**parameters), np.random.default_rng(0)
    for k in range(200):
        for topic, message in messages(k, rng):
            robot.send(topic, message)
        if k % batch == batch - 1:
            robot.poll()
    robot.poll()
    return robot


def assert_same(one, other):
    for field, value in one._asdict().items() if hasattr(one, '_asdict') else vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, field), err_msg=field)


HEAD = b'\x00\x01\x00\x00'
REFUSED = [
    ('ft/arm_sensor', bag_messages.wrench(START_NS, 'hand', np.zeros(6))),
    *((topic, data)
      for topic in ('joint_states', 'ft/arm_sensor', 'arm/temperature', 'contacts')
      for data in (b'', HEAD, HEAD + bytes(40))),
]  # fmt: skip


@pytest.mark.parametrize(('topic', 'data'), REFUSED)
def test_messages_that_cannot_be_used_are_refused_and_counted(topic, data):
    robot = Robot()
    for count in (1, 2):
        assert robot.router.handle(topic, data) is None
        assert sum(robot.source[topic].problems.values()) == count
    robot.send(topic, data)
    robot.poll()
    assert robot.received('arm_sensor') == robot.contacts.statistics().received == 0
    with pytest.raises(LogError):
        Robot(strict=True).router.handle(topic, data)


@pytest.mark.parametrize('batch', [7, 200])
@pytest.mark.parametrize('given', [{}, {'filter.smooth_readings': True}])
def test_samples_do_not_depend_on_when_messages_are_polled(batch, given):
    at_once, later = run(1, **given), run(batch, **given)
    assert len(at_once.samples) == len(later.samples) >= 15
    for (one, contacts), (other, later_contacts) in zip(
        at_once.samples, later.samples, strict=True
    ):
        assert_same(one, other)
        assert contacts == later_contacts
    assert any(contacts for _, contacts in at_once.samples)
    assert len({sample.ft_temperatures[0] for sample, _ in at_once.samples[1:]}) >= 8


def test_skipped_readings_do_not_make_a_sensor_frozen():
    robot, rng = Robot(every_ns=100 * STEP_NS), np.random.default_rng(0)
    for k in range(200):
        for topic, message in messages(k, rng):
            # Few digits: the same reading at each sample, others in between.
            if topic == 'ft/arm_sensor':
                values = np.full(6, float(k % 100 // 20))
                message = bag_messages.wrench(START_NS + k * STEP_NS, 'arm_sensor', values)
            robot.send(topic, message)
    robot.poll()
    assert len(robot.samples) == 2
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples)


def test_a_clock_that_is_set_back_blocks_nothing():
    robot, rng = Robot(), np.random.default_rng(0)
    # What is taken together with the jump may be lost, nothing after it.
    for count, k in enumerate((*range(100, 150), *range(75)), start=1):
        for topic, message in messages(k, rng):
            robot.send(topic, message)
        if not count % 25 and count != 50:
            robot.poll()
    assert robot.samples[-1][0].stamp_ns < START_NS + 75 * STEP_NS
    assert robot.assembler.statistics().resets == 1
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples[-4:])
