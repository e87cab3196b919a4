# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The byte reading and writing of messages against rclpy's, on random messages.

Damaged bytes and other encodings are in test_messages.py; nothing here goes over a network.
"""

import array
import string

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState, Temperature
from visualization_msgs.msg import MarkerArray

from inertial_estimation.findings import Level, finding
from inertial_estimation.outputs.diagnostics import Status, diagnostic_array
from inertial_estimation.outputs.markers import Marker, marker_array
from inertial_estimation.ros.conversions import stamp_to_ns, wrench_to_message
from inertial_estimation.signals.messages import (
    WRENCH,
    Decoder,
    Encoder,
    effort_encoder,
    topic_names,
    wrenches_encoder,
)

CASES = 300
ALPHABET = string.ascii_letters + string.digits + '_/é漢'
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 5e-324)
STAMP_NS = 10**18 + 7


def random_text(rng):
    return ''.join(rng.choice(list(ALPHABET), rng.integers(0, 12)))


def random_texts(rng, most):
    return [random_text(rng) for _ in range(rng.integers(0, most))]


def random_numbers(rng, count):
    numbers = rng.standard_normal(count)
    for special in SPECIAL:
        numbers[rng.random(count) < 0.05] = special
    return numbers


def with_header(rng, message):
    message.header.stamp.sec = int(rng.integers(-(2**31), 2**31))
    message.header.stamp.nanosec = int(rng.integers(0, 10**9))
    message.header.frame_id = random_text(rng)
    return message


def stamp_of(message):
    return stamp_to_ns(message.header.stamp)


def set_vector(vector, numbers):
    vector.x, vector.y, vector.z = map(float, numbers)


def xyz(vector):
    return [vector.x, vector.y, vector.z]


def readings(kind, message):
    """Return a message read from its bytes, and as an object."""
    return Decoder(kind).decode(serialize_message(message)), Decoder(kind).read(message)


def test_topic_names_are_valid_and_differ():
    names = ['l_sole', 'tool/tip', 'tool-tip', 'tool tip', '3rd_finger', '', 'größe']
    topics = topic_names(names)
    assert topics[0] == 'l_sole' and len(set(topics)) == len(names)
    for topic in topics:
        validate_topic_name(f'~/external_wrench/{topic}')


def test_joint_states_are_read(rng):
    decoder = Decoder('joints')
    for _ in range(CASES):
        names = random_texts(rng, 40)
        for _ in range(3):
            message = with_header(rng, JointState(name=names))
            for field in ('position', 'velocity', 'effort'):
                # Drivers that do not measure a quantity leave the array empty; a wrong length
                # is read as it stands, the node refuses it.
                count = rng.choice([len(names), 0, len(names) + 1], p=[0.7, 0.25, 0.05])
                setattr(message, field, array.array('d', random_numbers(rng, count).tobytes()))
            for reading in (decoder.decode(serialize_message(message)), decoder.read(message)):
                assert reading.stamp_ns == stamp_of(message) and list(reading.names) == names
                sent = message.position, message.velocity, message.effort
                for got, values in zip(reading[3:], sent, strict=True):
                    np.testing.assert_array_equal(got, np.array(values))


def test_wrenches_and_temperatures_are_read(rng):
    for _ in range(CASES):
        wrench, numbers = with_header(rng, WrenchStamped()), random_numbers(rng, 6)
        set_vector(wrench.wrench.force, numbers[:3])
        set_vector(wrench.wrench.torque, numbers[3:])
        warm = with_header(rng, Temperature(temperature=float(numbers[0])))
        for kind, message, values in (('ft', wrench, numbers), ('temperature', warm, numbers[:1])):
            for reading in readings(kind, message):
                assert reading[:2] == (stamp_of(message), message.header.frame_id)
                np.testing.assert_array_equal(reading.values[: len(values)], values)


@pytest.mark.parametrize(
    'absent', [(), ('angular_velocity',), ('angular_velocity', 'linear_acceleration')]
)
def test_imus_are_read(rng, absent):
    for _ in range(CASES):
        message, expected = with_header(rng, Imu()), []
        for field in ('orientation_covariance', 'angular_velocity_covariance'):
            setattr(message, field, np.abs(rng.standard_normal(9)))
        for field in ('angular_velocity', 'linear_acceleration'):
            numbers = random_numbers(rng, 3)
            set_vector(getattr(message, field), numbers)
            expected.append(np.full(3, np.nan) if field in absent else numbers)
        for field in absent:
            setattr(message, f'{field}_covariance', np.array([-1.0] + 8 * [0.0]))
        for reading in readings('imu', message):
            assert reading[:2] == (stamp_of(message), message.header.frame_id)
            np.testing.assert_array_equal(reading[2:4], expected)
            assert reading.declares_nothing is (len(absent) == 2)


def test_efforts_are_written(rng):
    for _ in range(CASES):
        names = random_texts(rng, 40)
        encoder = effort_encoder(names, frame_id=random_text(rng))
        for _ in range(2):
            stamp, efforts = int(rng.integers(0, 2**60)), random_numbers(rng, len(names))
            message = deserialize_message(encoder.encode(stamp, efforts), JointState)
            assert (stamp_of(message), message.name) == (stamp, names)
            assert not message.position and not message.velocity
            np.testing.assert_array_equal(message.effort, efforts)


def test_wrenches_are_written(rng):
    for _ in range(CASES):
        names, frame_id = random_texts(rng, 10), random_text(rng)
        wrenches = random_numbers(rng, 6 * len(names)).reshape(-1, 6)
        data = wrenches_encoder(names, frame_id=frame_id).encode(STAMP_NS, wrenches)
        message = deserialize_message(data, MultiDOFJointState)
        assert (stamp_of(message), message.joint_names) == (STAMP_NS, names)
        got = [[*xyz(w.force), *xyz(w.torque)] for w in message.wrench]
        np.testing.assert_array_equal(np.reshape(got, (-1, 6)), wrenches)
        for wrench in wrenches:
            data = Encoder(WRENCH, frame_id).encode(STAMP_NS, wrench)
            message = deserialize_message(data, WrenchStamped)
            assert (stamp_of(message), message.header.frame_id) == (STAMP_NS, frame_id)
            same = wrench_to_message(STAMP_NS, frame_id, wrench)
            for one in (message, same):
                got = [*xyz(one.wrench.force), *xyz(one.wrench.torque)]
                np.testing.assert_array_equal(got, wrench)


def test_diagnostics_are_written(rng):
    for _ in range(CASES):
        statuses = [
            Status(
                random_text(rng),
                tuple(
                    finding('clock', random_text(rng), what=random_text(rng), level=Level(level))
                    for level in rng.integers(0, 3, rng.integers(0, 3)).tolist()
                ),
                {key: random_text(rng) for key in random_texts(rng, 5)},
                note=random_text(rng),
            )
            for _ in range(rng.integers(0, 5))
        ]
        data = diagnostic_array(STAMP_NS, 'node', 'robot', statuses)
        message = deserialize_message(data, DiagnosticArray)
        assert stamp_of(message) == STAMP_NS
        for found, status in zip(message.status, statuses, strict=True):
            assert found.level == bytes([status.level])
            assert (found.name, found.message) == (f'node: {status.name}', status.message)
            assert found.hardware_id == 'robot'
            assert {one.key: one.value for one in found.values} == status.values


def test_markers_are_written(rng):
    for _ in range(CASES):
        markers = [
            Marker(
                random_text(rng), int(rng.integers(0, 9)), int(rng.integers(0, 9)),
                random_text(rng), int(rng.integers(0, 10**10)), rng.normal(size=3).tolist(),
                rng.normal(size=4).tolist(), rng.normal(size=3).tolist(),
                tuple(rng.random(4).astype(np.float32).tolist()),
                rng.normal(size=(rng.integers(0, 3), 3)).tolist(), random_text(rng),
                bool(rng.integers(0, 2)), int(rng.integers(0, 4)),
            )
            for _ in range(rng.integers(0, 5))
        ]  # fmt: skip
        message = deserialize_message(marker_array(STAMP_NS, markers), MarkerArray)
        for found, marker in zip(message.markers, markers, strict=True):
            at, colour = found.pose.orientation, found.color
            assert (stamp_of(found), found.header.frame_id) == (STAMP_NS, marker.frame)
            got = (
                found.ns, found.id, found.type, found.action, found.text, found.frame_locked,
                xyz(found.pose.position), [at.x, at.y, at.z, at.w], xyz(found.scale),
                (colour.r, colour.g, colour.b, colour.a), [xyz(point) for point in found.points],
                found.lifetime.sec * 10**9 + found.lifetime.nanosec,
            )  # fmt: skip
            assert got == (
                marker.namespace, marker.index, marker.shape, marker.action, marker.text,
                marker.frame_locked, marker.position, marker.orientation, marker.scale,
                marker.colour, marker.points, marker.lifetime_ns,
            )  # fmt: skip
