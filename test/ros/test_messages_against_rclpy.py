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
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState, Temperature
from visualization_msgs.msg import MarkerArray

from inertial_estimation.findings import Level, finding
from inertial_estimation.outputs.diagnostics import Status, diagnostic_array
from inertial_estimation.outputs.markers import Marker, marker_array
from inertial_estimation.signals.messages import (
    WRENCH,
    Decoder,
    Encoder,
    effort_encoder,
    wrenches_encoder,
)

CASES = 300
ALPHABET = string.ascii_letters + string.digits + '_/é漢'
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 5e-324)


def random_text(rng):
    return ''.join(rng.choice(list(ALPHABET), rng.integers(0, 12)))


def random_numbers(rng, count):
    numbers = rng.standard_normal(count)
    for special in SPECIAL:
        numbers[rng.random(count) < 0.05] = special
    return numbers


def random_header(rng, message):
    message.header.stamp.sec = int(rng.integers(-(2**31), 2**31))
    message.header.stamp.nanosec = int(rng.integers(0, 10**9))
    message.header.frame_id = random_text(rng)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def random_joint_state(rng, names):
    message = JointState(name=names)
    random_header(rng, message)
    for field in ('position', 'velocity', 'effort'):
        # Drivers that do not measure a quantity leave the array empty; a wrong length is read
        # as it stands, the node refuses it.
        count = rng.choice([len(names), 0, len(names) + 1], p=[0.7, 0.25, 0.05])
        setattr(message, field, array.array('d', random_numbers(rng, count).tobytes()))
    return message


def test_joint_state_read_as_rclpy_reads_it(rng):
    decoder = Decoder('joints')
    for _ in range(CASES):
        names = [random_text(rng) for _ in range(rng.integers(0, 40))]
        for _ in range(3):
            message = random_joint_state(rng, names)
            reading = decoder.decode(serialize_message(message))
            assert reading.stamp_ns == stamp_of(message)
            assert list(reading.names) == names
            for got, sent in zip(
                reading[3:], (message.position, message.velocity, message.effort)
            ):
                np.testing.assert_array_equal(got, np.array(sent))


def test_joint_state_layout_is_parsed_once(rng):
    names = [f'joint_{i}' * (1 + i % 3) for i in range(32)]
    decoder = Decoder('joints')
    readings = []
    for _ in range(5):
        message = JointState(name=names, position=list(rng.standard_normal(32)))
        random_header(rng, message)
        message.header.frame_id = 'base'
        readings.append(decoder.decode(serialize_message(message)))
    assert len({id(reading.names) for reading in readings}) == 1


def test_wrench_read_as_rclpy_reads_it(rng):
    decoder = Decoder('ft')
    for _ in range(CASES):
        message = WrenchStamped()
        random_header(rng, message)
        numbers = random_numbers(rng, 6)
        for vector, part in (
            (message.wrench.force, numbers[:3]),
            (message.wrench.torque, numbers[3:]),
        ):
            vector.x, vector.y, vector.z = map(float, part)
        reading = decoder.decode(serialize_message(message))
        assert reading[:2] == (stamp_of(message), message.header.frame_id)
        np.testing.assert_array_equal(reading.values, numbers)


def test_temperature_read_as_rclpy_reads_it(rng):
    decoder = Decoder('temperature')
    for _ in range(CASES):
        message = Temperature()
        random_header(rng, message)
        message.temperature, message.variance = map(float, random_numbers(rng, 2))
        for reading in (
            decoder.decode(serialize_message(message)),
            Decoder('temperature').read(message),
        ):
            assert reading[:2] == (stamp_of(message), message.header.frame_id)
            np.testing.assert_array_equal(reading.values[0], message.temperature)


@pytest.mark.parametrize(
    'absent',
    [
        (),
        ('angular_velocity',),
        ('linear_acceleration',),
        ('angular_velocity', 'linear_acceleration'),
    ],
)
def test_imu_read_as_rclpy_reads_it(rng, absent):
    decoder = Decoder('imu')
    for _ in range(CASES):
        message = Imu()
        random_header(rng, message)
        for field in ('orientation_covariance', 'angular_velocity_covariance'):
            setattr(message, field, np.abs(rng.standard_normal(9)))
        expected = []
        for field in ('angular_velocity', 'linear_acceleration'):
            vector, numbers = getattr(message, field), random_numbers(rng, 3)
            vector.x, vector.y, vector.z = map(float, numbers)
            expected.append(np.full(3, np.nan) if field in absent else numbers)
        for field in absent:
            setattr(message, f'{field}_covariance', np.array([-1.0] + 8 * [0.0]))
        for reading in (decoder.decode(serialize_message(message)), Decoder('imu').read(message)):
            assert reading[:2] == (stamp_of(message), message.header.frame_id)
            np.testing.assert_array_equal(reading[2:4], expected)
            assert reading.declares_nothing is (len(absent) == 2)


def test_joint_efforts_written_as_rclpy_understands(rng):
    for _ in range(CASES):
        names = [random_text(rng) for _ in range(rng.integers(0, 40))]
        encoder = effort_encoder(names, frame_id=random_text(rng))
        for _ in range(2):
            stamp, efforts = int(rng.integers(0, 2**60)), random_numbers(rng, len(names))
            message = deserialize_message(encoder.encode(stamp, efforts), JointState)
            assert stamp_of(message) == stamp
            assert message.name == names
            assert not message.position
            assert not message.velocity
            np.testing.assert_array_equal(message.effort, efforts)


def test_wrenches_written_as_rclpy_understands(rng):
    for _ in range(CASES):
        names = [random_text(rng) for _ in range(rng.integers(0, 10))]
        encoder = wrenches_encoder(names, frame_id=random_text(rng))
        wrenches = random_numbers(rng, 6 * len(names)).reshape(-1, 6)
        message = deserialize_message(encoder.encode(10**18 + 7, wrenches), MultiDOFJointState)
        assert stamp_of(message) == 10**18 + 7
        assert message.joint_names == names
        got = [[*_xyz(w.force), *_xyz(w.torque)] for w in message.wrench]
        np.testing.assert_array_equal(np.reshape(got, (-1, 6)), wrenches)


def test_wrench_written_as_rclpy_understands(rng):
    for _ in range(CASES):
        frame_id, wrench = random_text(rng), random_numbers(rng, 6)
        data = Encoder(WRENCH, frame_id).encode(10**18 + 7, wrench)
        message = deserialize_message(data, WrenchStamped)
        assert (stamp_of(message), message.header.frame_id) == (10**18 + 7, frame_id)
        got = [*_xyz(message.wrench.force), *_xyz(message.wrench.torque)]
        np.testing.assert_array_equal(got, wrench)


def _parts(wrench):
    return wrench.force, wrench.torque


def _xyz(vector):
    return vector.x, vector.y, vector.z


def test_diagnostics_are_read_by_rclpy(rng):
    for _ in range(CASES):
        stamp_ns = int(rng.integers(0, 2**60))
        statuses = [
            Status(
                random_text(rng),
                tuple(
                    finding('clock', random_text(rng), what=random_text(rng), level=Level(level))
                    for level in rng.integers(0, 3, rng.integers(0, 3)).tolist()
                ),
                {random_text(rng): random_text(rng) for _ in range(rng.integers(0, 5))},
                note=random_text(rng),
            )
            for _ in range(rng.integers(0, 5))
        ]
        data = diagnostic_array(stamp_ns, 'node', 'robot', statuses)
        message = deserialize_message(data, DiagnosticArray)
        assert stamp_of(message) == stamp_ns
        for found, status in zip(message.status, statuses, strict=True):
            assert found.level == bytes([status.level])
            assert (found.name, found.message) == (f'node: {status.name}', status.message)
            assert found.hardware_id == 'robot'
            assert {one.key: one.value for one in found.values} == status.values


def test_markers_are_read_by_rclpy(rng):
    for _ in range(CASES):
        stamp_ns = int(rng.integers(0, 2**60))
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
        message = deserialize_message(marker_array(stamp_ns, markers), MarkerArray)
        for found, marker in zip(message.markers, markers, strict=True):
            assert stamp_of(found) == stamp_ns
            pose, scale, colour = found.pose, found.scale, found.color
            assert found.header.frame_id == marker.frame
            assert (found.ns, found.id, found.type) == marker_key(marker)
            assert [pose.position.x, pose.position.y, pose.position.z] == marker.position
            at = pose.orientation
            assert [at.x, at.y, at.z, at.w] == marker.orientation
            assert [scale.x, scale.y, scale.z] == marker.scale
            assert (colour.r, colour.g, colour.b, colour.a) == marker.colour
            assert [[p.x, p.y, p.z] for p in found.points] == marker.points
            assert found.lifetime.sec * 10**9 + found.lifetime.nanosec == marker.lifetime_ns
            assert (found.text, found.frame_locked) == (marker.text, marker.frame_locked)
            assert found.action == marker.action


def marker_key(marker):
    return marker.namespace, marker.index, marker.shape
