# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The byte reading and writing of messages against rclpy's, on random messages.

Damaged bytes and other encodings are in test_router.py; nothing here goes over a network.
"""

import string

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped, Point, PointStamped, PoseStamped, WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.time import Time
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState, Temperature
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.findings import Level, finding
from inertial_estimation.outputs.diagnostics import Status, diagnostic_array
from inertial_estimation.outputs.encoders import effort_encoder, topic_names, wrenches_encoder
from inertial_estimation.outputs.markers import Marker as MarkerRecord
from inertial_estimation.outputs.markers import marker_array
from inertial_estimation.ros.subscriptions import message_class
from inertial_estimation.signals.messages import (
    INERTIA,
    WRENCH,
    Decoder,
    Encoder,
)

CASES = 300
ALPHABET = list(string.ascii_letters + string.digits + '_/é漢')
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 5e-324)
STAMP_NS = 10**18 + 7


def random_text(rng):
    return ''.join(rng.choice(ALPHABET, rng.integers(0, 12)))


def random_texts(rng, most):
    return [random_text(rng) for _ in range(rng.integers(0, most))]


def random_numbers(rng, *shape):
    numbers = rng.standard_normal(shape)
    for special in SPECIAL:
        numbers[rng.random(shape) < 0.05] = special
    return numbers


def fill(rng, message):
    """Return a message with random numbers and texts in all its fields."""
    for name, kind in message.get_fields_and_field_types().items():
        if kind == 'int32':
            value = int(rng.integers(-(2**31), 2**31))
        elif kind == 'uint32':
            value = int(rng.integers(0, 10**9))
        elif kind == 'string':
            value = random_text(rng)
        elif kind == 'sequence<string>':
            value = random_texts(rng, 40)
        elif kind == 'sequence<double>':
            # A driver that does not measure a quantity leaves it empty; the node refuses others.
            value = random_numbers(rng, rng.integers(0, 40)).tolist()
        elif kind == 'double[9]':
            value = np.abs(rng.standard_normal(9))
        elif kind == 'double':
            value = float(random_numbers(rng, 1)[0])
        else:
            value = fill(rng, getattr(message, name))
        setattr(message, name, value)
    return message


def stamped(message, frame_id=''):
    message.header.stamp = Time(nanoseconds=STAMP_NS).to_msg()
    message.header.frame_id = frame_id
    return message


def numbers_of(*vectors):
    return [getattr(vector, axis) for vector in vectors for axis in 'xyz']


def test_topic_names_are_valid_and_differ():
    names = ['l_sole', 'tool/tip', 'tool-tip', 'tool tip', '3rd_finger', '', 'größe']
    topics = topic_names(names)
    assert topics[0] == 'l_sole' and len(set(topics)) == len(names)
    for topic in topics:
        validate_topic_name(f'~/external_wrench/{topic}')


VALUES = {
    'joints': (JointState, lambda m: (m.name, m.position, m.velocity, m.effort)),
    'ft': (WrenchStamped, lambda m: (numbers_of(m.wrench.force, m.wrench.torque),)),
    'imu': (Imu, lambda m: (numbers_of(m.angular_velocity), numbers_of(m.linear_acceleration))),
    'temperature': (Temperature, lambda m: ([m.temperature, m.variance],)),
    'contacts': (PointStamped, lambda m: (numbers_of(m.point),)),
    'contact_poses': (
        PoseStamped,
        lambda m: ([*numbers_of(m.pose.position, m.pose.orientation), m.pose.orientation.w],),
    ),
}


@pytest.mark.parametrize('kind', VALUES)
def test_messages_are_read_from_bytes_and_objects(rng, kind):
    (make, values_of), decoder = VALUES[kind], Decoder(kind)
    assert message_class(decoder.type) is make
    for _ in range(CASES):
        message = fill(rng, make())
        # The layout of the message before it is used again.
        for _ in range(2):
            message.header.stamp.nanosec = int(rng.integers(0, 10**9))
            stamp = message.header.stamp
            for reading in (decoder.decode(serialize_message(message)), decoder.read(message)):
                assert reading[0] == stamp.sec * 10**9 + stamp.nanosec
                assert reading[1] == message.header.frame_id
                for got, sent in zip(reading[2:], values_of(message)):
                    np.testing.assert_array_equal(got, np.array(sent))


@pytest.mark.parametrize('absent', [(), (0,), (1,), (0, 1)])
def test_what_an_imu_does_not_measure_is_nan(rng, absent):
    message = fill(rng, Imu())
    covariances = message.angular_velocity_covariance, message.linear_acceleration_covariance
    for k in absent:
        covariances[k][0] = -1.0
    for reading in (
        Decoder('imu').decode(serialize_message(message)),
        Decoder('imu').read(message),
    ):
        for k, given in enumerate((message.angular_velocity, message.linear_acceleration)):
            wanted = np.full(3, np.nan) if k in absent else numbers_of(given)
            np.testing.assert_array_equal(reading[2 + k], wanted)
        assert reading.declares_nothing is (len(absent) == 2)


def test_efforts_wrenches_and_inertias_are_written(rng):
    for _ in range(CASES):
        names, frame_id = random_texts(rng, 10), random_text(rng)
        n = len(names)
        efforts, wrenches, inertia = (random_numbers(rng, *k) for k in ((n,), (n, 6), (10,)))

        def written(kind, encoder, *values, frame_id=frame_id):
            message = deserialize_message(encoder.encode(STAMP_NS, *values), kind)
            assert message.header == stamped(kind(), frame_id).header
            return message

        message = written(JointState, effort_encoder(names, frame_id), efforts)
        assert message.name == names and not message.position and not message.velocity
        np.testing.assert_array_equal(message.effort, efforts)
        message = written(MultiDOFJointState, wrenches_encoder(names, frame_id), wrenches)
        assert message.joint_names == names and not message.transforms and not message.twist
        found = message.wrench
        for row in wrenches:
            found.append(written(WrenchStamped, Encoder(WRENCH, frame_id), row).wrench)
        found = [numbers_of(one.force, one.torque) for one in found]
        np.testing.assert_array_equal(np.reshape(found, (-1, 6)), np.tile(wrenches, (2, 1)))
        one = written(InertiaStamped, Encoder(INERTIA, frame_id), inertia).inertia
        found = [one.m, *numbers_of(one.com), one.ixx, one.ixy, one.ixz, one.iyy, one.iyz, one.izz]
        np.testing.assert_array_equal(found, inertia)


def test_diagnostics_are_written(rng):
    for _ in range(CASES):
        statuses, wanted = [], stamped(DiagnosticArray())
        for _ in range(rng.integers(0, 5)):
            levels = [Level(level) for level in rng.integers(0, 3, rng.integers(0, 3)).tolist()]
            texts = [random_text(rng) for _ in levels]
            name, note, keys = random_text(rng), random_text(rng), random_texts(rng, 5)
            found = tuple(
                finding('clock', 'x', what=what, level=level) for what, level in zip(texts, levels)
            )
            statuses.append(Status(name, found, {key: f'{key}?' for key in keys}, note))
            wanted.status.append(
                DiagnosticStatus(
                    level=bytes([max(levels, default=0)]), name=f'node: {name}',
                    message='; '.join(texts) or note, hardware_id='robot',
                    values=[KeyValue(key=key, value=f'{key}?') for key in dict.fromkeys(keys)],
                )
            )  # fmt: skip
        data = diagnostic_array(STAMP_NS, 'node', 'robot', statuses)
        assert deserialize_message(data, DiagnosticArray) == wanted


def test_markers_are_written(rng):
    for _ in range(CASES):
        records, wanted = [], MarkerArray()
        for _ in range(rng.integers(0, 5)):
            one = stamped(Marker(), random_text(rng))
            one.ns, one.text, one.frame_locked = random_text(rng), random_text(rng), True
            one.id, one.type, one.action = rng.integers(0, 9, 3).tolist()
            lifetime = one.lifetime.sec, one.lifetime.nanosec = rng.integers(0, 10**9, 2).tolist()
            p, q, s = one.pose.position, one.pose.orientation, one.scale
            p.x, p.y, p.z, q.x, q.y, q.z, q.w, s.x, s.y, s.z = rng.normal(size=10).tolist()
            colour = rng.random(4).astype(np.float32).tolist()
            one.color.r, one.color.g, one.color.b, one.color.a = colour
            points = rng.normal(size=(rng.integers(0, 3), 3)).tolist()
            one.points = [Point(x=x, y=y, z=z) for x, y, z in points]
            wanted.markers.append(one)
            records.append(
                MarkerRecord(
                    one.ns, one.id, one.type, one.header.frame_id,
                    lifetime[0] * 10**9 + lifetime[1], numbers_of(p), (q.x, q.y, q.z, q.w),
                    numbers_of(s), tuple(colour), points, one.text, True, one.action,
                )
            )  # fmt: skip
        assert deserialize_message(marker_array(STAMP_NS, records), MarkerArray) == wanted
