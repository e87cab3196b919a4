# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From bytes to samples: padding, damage, messages that are polled, those that cannot be used.

Not covered: the middleware, and that messages are read as rclpy reads them (test/ros).
"""

import struct
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
from inertial_estimation.outputs.encoders import effort_encoder
from inertial_estimation.signals import assembler, router, savitzky_golay, sensor_stream
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.messages import WRENCH, Decoder, Encoder
from inertial_estimation.signals.polling import poll
from inertial_estimation.signals.router import Router
from inertial_estimation.signals.sources import sources_of

FIXED = {
    'robot_description': nested_humanoid_urdf(),
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'fixed_link': 'root',
    'contacts': ['sole', 'hand', 'thigh', 'root'],
    'joint_states.acceleration_source': 'zero',
    'ft.arm_sensor.temperature_topic': 'arm/temperature',
}
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
            sources_of(settings, robot, deserialize, strict=strict, now_ns=lambda: self.now_ns),
            self.assembler,
            self.contacts.push,
        )
        self.source = {source.topic: source for source in self.router.sources}
        self.waiting = defaultdict(list)

    def send(self, topic, message):
        self.waiting[topic].append(message)

    def poll(self):
        for sample in poll(self.router, lambda source: self.waiting.pop(source.topic, [])):
            self.samples.append((sample, self.contacts.at(sample.stamp_ns)))
            self.assembler.wanted_ns = sample.stamp_ns + self.every_ns


def run(robot, polls, instants=range(200), arm=None):
    """Send the messages of each instant, the joint states last; poll after so many instants."""
    rng = np.random.default_rng(0)
    for count, k in enumerate(instants, start=1):
        stamp = START_NS + k * STEP_NS
        for name in SENSORS:
            values = arm(k) if arm and name == 'arm_sensor' else rng.normal(size=6)
            robot.send(f'ft/{name}', bag_messages.wrench(stamp, name, values))
        if k % 20 == 3:
            robot.send('arm/temperature', bag_messages.temperature(stamp, '', 20.0 + k))
        if k % 7 == 0:
            robot.send('contacts', bag_messages.point(stamp, 'hand', (0.0, 0.0, 1e-3 * k)))
            at, turn = (0.0, 0.1, 1e-3 * k), (0.6, 0.0, 0.0, 0.8)
            robot.send('contact_poses', bag_messages.pose(stamp, 'hand', at, turn))
        positions, velocities = rng.normal(size=len(JOINTS)), np.zeros(len(JOINTS))
        joints = bag_messages.joint_state(stamp, JOINTS, positions, velocities)
        robot.send('joint_states', joints)
        if count in polls:
            robot.poll()
    return robot


def assert_same(one, other):
    for field, value in one._asdict().items() if hasattr(one, '_asdict') else vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, field), err_msg=field)


HEAD = b'\x00\x01\x00\x00'
# A stamp of 2^31 seconds, which no output can hold.
LATE = HEAD + struct.pack('<iI', 2**31 - 1, 10**9)
REFUSED = [
    ('ft/arm_sensor', bag_messages.wrench(START_NS, 'hand', np.zeros(6))),
    ('joint_states', LATE + bag_messages.joint_state(1, JOINTS, np.zeros(6), np.zeros(6))[12:]),
    *((topic, data)
      for topic in (
          'joint_states', 'ft/arm_sensor', 'arm/temperature', 'contacts', 'contact_poses',
      )
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
    of_arm = robot.assembler.statistics().fts['arm_sensor']
    assert of_arm.received == robot.contacts.statistics().received == 0
    with pytest.raises(LogError):
        Robot(strict=True).router.handle(topic, data)


def test_huge_messages_are_refused_before_they_are_read():
    """Nothing of them is kept, unlike of others with new names."""
    robot = Robot()
    for size, problems in ((2**19, 0), (2**20, 1)):
        names = (*JOINTS, size * 'x')
        data = bag_messages.joint_state(START_NS + size, names, np.zeros(7), np.zeros(7))
        robot.router.handle('joint_states', data)
        assert sum(robot.source['joint_states'].problems.values()) == problems
    kept = robot.assembler.statistics().ignored_joints
    assert [len(name) for name in kept] == [2**19]


@pytest.mark.parametrize(
    ('sizes', 'is_used'), [((6, 5), True), ((6, 6, 1), True), ((5,), False), ((6, 6, 6), None)]
)
def test_joint_values_that_do_not_fit_their_names_are_counted(sizes, is_used):
    robot = Robot()
    data = bag_messages.joint_state(START_NS, JOINTS, *map(np.zeros, sizes))
    sample = robot.router.handle('joint_states', data)
    assert (sample is not None) == (is_used is not False)
    assert sum(robot.source['joint_states'].problems.values()) == (is_used is not None)


@pytest.mark.parametrize('batch', [7, 200])
@pytest.mark.parametrize('given', [{}, {'filter.smooth_readings': True}])
def test_samples_do_not_depend_on_when_messages_are_polled(batch, given):
    at_once = run(Robot(**given), range(201))
    later = run(Robot(**given), {*range(batch, 201, batch), 200})
    assert len(at_once.samples) == len(later.samples) >= 15
    for (one, contacts), (other, later_contacts) in zip(
        at_once.samples, later.samples, strict=True
    ):
        assert_same(one, other)
        assert contacts == later_contacts
    assert any(contacts for _, contacts in at_once.samples)
    assert len({sample.ft_temperatures[0] for sample, _ in at_once.samples[1:]}) >= 8


def test_contacts_of_a_stall_wait_for_their_samples():
    stalled, steady = run(Robot(), {2400}, range(2400)), run(Robot(), range(2401), range(2400))
    contacts = [[one for _, one in robot.samples] for robot in (stalled, steady)]
    assert contacts[0] == contacts[1] and all(contacts[0])
    assert not stalled.contacts.problems


def test_readings_between_samples_show_that_a_sensor_is_not_frozen():
    """Few digits: the same reading at each sample, others in between."""
    robot = run(
        Robot(every_ns=100 * STEP_NS), {200}, arm=lambda k: np.full(6, float(k % 100 // 20))
    )
    assert len(robot.samples) == 2
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples)


def test_a_clock_that_is_set_back_blocks_nothing():
    # What is taken together with the jump may be lost, nothing after it.
    robot = run(Robot(), {25, 75, 100, 125}, (*range(100, 150), *range(75)))
    assert robot.samples[-1][0].stamp_ns < START_NS + 75 * STEP_NS
    assert robot.assembler.statistics().resets == 1
    assert all((sample.ft_states == 0).all() for sample, _ in robot.samples[-4:])


# Bytes of messages

EFFORTS = np.array([1.0, np.nan, -3.5])
JOINT_BYTES = effort_encoder(('hip', 'knee', 'ankle_pitch')).encode(5_000_000_001, EFFORTS)
FORCE_BYTES = Encoder(WRENCH, 'l_sole').encode(7_000_000_009, np.arange(6.0))
BOTH = [('joints', JOINT_BYTES), ('ft', FORCE_BYTES)]


def test_padding_is_ignored_and_equally_long_messages_are_not_mixed_up():
    decoder, data = Decoder('joints'), bytearray(JOINT_BYTES)
    names = decoder.decode(bytes(data)).names
    # Behind the empty frame, and behind the second name.
    knee = bytes(data).index(b'knee\0') + 5
    for index in (17, 18, 19, *range(knee, knee + -knee % 4)):
        assert not data[index]
        data[index] = 0x5A
    assert decoder.decode(bytes(data)).names is names
    wrenches = Decoder('ft')
    for names in (('left', 'foot'), ('hand', 'left'), ('left', 'foot')):
        assert decoder.decode(effort_encoder(names).encode(1, np.arange(2.0))).names == names
        data = Encoder(WRENCH, names[0]).encode(1, np.arange(6.0))
        assert wrenches.decode(data).frame_id == names[0]


@pytest.mark.parametrize('encapsulation', [b'\0\0\0\0', b'\0\7\0\0', b'\0\3\0\0', b'\0\1\0\1'])
@pytest.mark.parametrize(('decoder', 'data'), BOTH)
def test_other_encodings_are_left_to_the_caller(decoder, data, encapsulation):
    for warm in (False, True):
        decoded = Decoder(decoder)
        assert not warm or decoded.decode(data)
        assert decoded.decode(encapsulation + data[4:]) is None


@pytest.mark.parametrize('decoder', ['joints', 'ft', 'imu'])
def test_damaged_bytes_never_raise(decoder):
    rng = np.random.default_rng(3)
    for _, whole in BOTH:
        found = Decoder(decoder)
        fits = found.decode(whole) is not None
        cut = [found.decode(whole[:size]) for size in range(len(whole))]
        assert not fits or cut == [None] * len(whole)
        for _ in range(300):
            damaged = bytearray(whole)
            for index in rng.integers(0, len(whole), 3):
                damaged[index] = rng.integers(0, 256)
            found.decode(bytes(damaged))
            found.decode(whole[:4] + rng.bytes(rng.integers(0, 200)))
    data = effort_encoder([]).encode(1, np.empty(0))
    assert Decoder('joints').decode(data[:20] + b'\xff' * 4 + data[24:]) is None


# Compiled code and Python

SEVERAL_IMUS = FIXED | {
    'fixed_link': '', 'imus': ['head', 'root', 'hand'], 'frozen_after': 0.02,
    'joint_states.acceleration_source': 'filter', 'ft.leg_sensor.range': [9.0] * 3 + [1.0] * 3,
    'imu.root.measures': 'gyroscope', 'ft.foot_sensor.time_offset': -3e-4,
}  # fmt: skip


def damaged(rng, data):
    """Return a message with a few other bytes, of another length, or as it is."""
    kind = rng.integers(40)
    found = bytearray(data)
    if kind == 0:
        return bytes(found[: rng.integers(len(data))])
    if kind == 1:
        return bytes(found + rng.bytes(rng.integers(1, 9)))
    for index in rng.integers(0, len(data), (kind < 12) * rng.integers(1, 4)):
        found[index] = rng.choice([0, 255, rng.integers(256)])
    return bytes(found)


def traffic(rng, robot, k):
    """Return topics and messages of an instant; each may be damaged, late, repeated or lost."""

    def stamp():
        return START_NS + STEP_NS * (k - (rng.random() < 0.01)) + int(rng.normal(scale=2e4))

    for name in SENSORS:
        values = rng.normal(size=6) if k % 90 < 60 else np.ones(6)
        yield f'ft/{name}', bag_messages.wrench(stamp(), name, values)
    for source in robot.router.sources:
        if source.kind == 'imu':
            rate, shake = rng.normal(size=(2, 3))
            message = bag_messages.imu(stamp(), min(source.frames), rate, shake)
            yield source.topic, message
    yield 'joint_states', bag_messages.joint_state(stamp(), JOINTS, *rng.normal(size=(3, 6)))


@pytest.mark.skipif(router.compiled is None, reason='installed without a compiler')
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
@pytest.mark.parametrize(
    'given',
    [
        {},
        {'joint_states.velocity_source': 'filter'},
        {'filter.delay': 0.01},
        {'filter.smooth_readings': True},
    ],
)
def test_compiled_streams_are_those_of_python(given, monkeypatch):
    robots = [Robot(SEVERAL_IMUS | given | {'filter.window': 0.03}) for _ in range(2)]
    choices, rng = (router.compiled, None), np.random.default_rng(5)
    samples, used = ([], []), 0
    for k in range(800):
        waiting = defaultdict(list)
        for topic, data in traffic(rng, robots[0], k):
            if rng.random() > 0.02:
                waiting[topic].append(damaged(rng, data))
        for robot, compiled, found in zip(robots, choices, samples):
            for module in (router, assembler, savitzky_golay, sensor_stream):
                monkeypatch.setattr(module, 'compiled', compiled)
            robot.now_ns = START_NS + k * STEP_NS
            for topic, messages in waiting.items():
                source = robot.source[topic]
                if k % 100 == 0:
                    source.skew, source.skew_due = None, True
                if source.kind != 'joints':
                    source.hand_over(list(messages))
            found += map(robot.source['joint_states'].handle, waiting['joint_states'])
    assert [one is None for one in samples[0]] == [one is None for one in samples[1]]
    for one, other in zip(*samples):
        for field, value in one._asdict().items() if one else ():
            exact = field not in ('positions', 'velocities', 'accelerations',
                                  'angular_accelerations', 'ft_readings', 'proper_accelerations',
                                  'angular_velocities')  # fmt: skip
            wanted, tolerance = getattr(other, field), 0.0 if exact else 1e-9
            if value is not None:
                used += value.size if hasattr(value, 'size') else 1
                np.testing.assert_allclose(
                    value, wanted, rtol=tolerance, atol=tolerance * 1e3, err_msg=field
                )
    assert used > 20_000
    one, other = ({s.name + s.kind: s for s in robot.router.sources} for robot in robots)
    for name, source in one.items():
        assert source.problems == other[name].problems
        assert (source.fallbacks, source.skew) == (other[name].fallbacks, other[name].skew)
    taken_compiled = [s for s in robots[0].router.sources if s.usual is not None]
    assert len(taken_compiled) == 1 + len(SENSORS) + 3
    # As texts, in which NaN is equal to NaN.
    one, other = (repr(robot.assembler.statistics()) for robot in robots)
    assert one == other
