# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Messages as objects, names as topics."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import serialize_message
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import Imu, JointState

from inertial_estimation.ros.conversions import ns_to_stamp, stamp_to_ns, wrench_to_message
from inertial_estimation.signals.messages import (
    Decoder,
    topic_names,
)

STAMP_NS = 1_457_614_036_659_765_005


@pytest.mark.parametrize('stamp_ns', [0, 1, STAMP_NS, -1, -1_500_000_000])
def test_stamps_survive(stamp_ns):
    assert stamp_to_ns(ns_to_stamp(stamp_ns)) == stamp_ns


def test_objects_and_bytes_say_the_same(rng):
    joints = JointState(name=['a', 'b'], position=[1.0, 2.0], effort=[3.0, np.nan])
    wrench = wrench_to_message(STAMP_NS, 'sole', rng.standard_normal(6))
    imu = Imu()
    imu.angular_velocity.y, imu.linear_acceleration.z = 0.5, 9.81
    imu.angular_velocity_covariance[0] = -1.0
    for message, kind in ((joints, 'joints'), (wrench, 'ft'), (imu, 'imu')):
        message.header.stamp = ns_to_stamp(STAMP_NS)
        decoder = Decoder(kind)
        expected, got = decoder.read(message), decoder.decode(serialize_message(message))
        assert type(got) is type(expected)
        for one, other in zip(got, expected):
            np.testing.assert_array_equal(one, other)


def test_wrenches_survive(rng):
    numbers = rng.standard_normal(6)
    message = wrench_to_message(STAMP_NS, 'sole', numbers)
    assert isinstance(message, WrenchStamped)
    np.testing.assert_array_equal(Decoder('ft').read(message).values, numbers)


def test_topic_names_are_valid_and_differ():
    names = ['l_sole', 'tool/tip', 'tool-tip', 'tool tip', '3rd_finger', '', 'größe']
    topics = topic_names(names)
    assert topics[0] == 'l_sole'
    assert len(set(topics)) == len(names)
    for topic in topics:
        validate_topic_name(f'~/external_wrench/{topic}')
