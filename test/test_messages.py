# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bytes of messages: round trips, padding, damage, other encodings.

That real messages are read as rclpy reads them is in ros/test_messages_against_rclpy.py.
"""

import numpy as np
import pytest

from inertial_estimation.signals.cdr import LayoutReader
from inertial_estimation.signals.decoders import ImuDecoder, JointStateDecoder, WrenchDecoder
from inertial_estimation.signals.encoders import JointEffortEncoder

NAMES = ('hip', 'knee', 'ankle_pitch')
EFFORTS = np.array([1.0, np.nan, -3.5])


def wrench_bytes(frame_id='l_sole', numbers=range(6)):
    frame = frame_id.encode() + b'\0'
    head = b'\0\1\0\0' + (7).to_bytes(4, 'little') + (9).to_bytes(4, 'little')
    head += len(frame).to_bytes(4, 'little') + frame
    head += b'\xaa' * ((4 - len(head)) % 8)
    return head + np.array(numbers, float).tobytes()


def test_efforts_survive_a_round_trip():
    reading = JointStateDecoder().decode(JointEffortEncoder(NAMES).encode(5_000_000_001, EFFORTS))
    assert reading.stamp_ns == 5_000_000_001
    assert reading.names == NAMES
    assert reading.positions.size == reading.velocities.size == 0
    np.testing.assert_array_equal(reading.efforts, EFFORTS)


def test_padding_does_not_matter():
    data = bytearray(JointEffortEncoder(NAMES).encode(1, EFFORTS))
    reader = LayoutReader(bytes(data))
    reader.string(), reader.strings()
    padding = [i for i in range(12, reader.position) if not reader.fixed[i]]
    assert padding
    decoder = JointStateDecoder()
    names = decoder.decode(bytes(data)).names
    for index in padding:
        data[index] = 0x5A
    assert decoder.decode(bytes(data)).names is names


def test_two_publishers_with_equally_long_messages_are_not_mixed_up():
    decoder = JointStateDecoder()
    for names in (('left', 'foot'), ('hand', 'left'), ('left', 'foot')):
        data = JointEffortEncoder(names).encode(1, np.arange(2.0))
        assert decoder.decode(data).names == names


def test_frame_of_equal_length_is_read_again():
    decoder = WrenchDecoder()
    assert [decoder.decode(wrench_bytes(f)).frame_id for f in ('l_sole', 'r_sole')] == [
        'l_sole',
        'r_sole',
    ]


def test_wrench_by_hand():
    reading = WrenchDecoder().decode(wrench_bytes())
    assert reading.stamp_ns == 7_000_000_009
    np.testing.assert_array_equal(reading.wrench, np.arange(6.0))


@pytest.mark.parametrize('encapsulation', [b'\0\0\0\0', b'\0\7\0\0', b'\0\3\0\0', b'\0\1\0\1'])
@pytest.mark.parametrize('warm', [False, True])
def test_other_encodings_are_left_to_the_caller(encapsulation, warm):
    wrench, joints = wrench_bytes(), JointEffortEncoder(NAMES).encode(1, EFFORTS)
    for decoder, data in ((WrenchDecoder(), wrench), (JointStateDecoder(), joints)):
        assert not warm or decoder.decode(data)
        assert decoder.decode(encapsulation + data[4:]) is None


@pytest.mark.parametrize('data', [wrench_bytes(), JointEffortEncoder(NAMES).encode(1, EFFORTS)])
def test_cut_bytes_are_refused(data):
    decoder = WrenchDecoder() if data == wrench_bytes() else JointStateDecoder()
    assert decoder.decode(data)
    for size in range(len(data)):
        assert decoder.decode(data[:size]) is None


@pytest.mark.parametrize('decoder', [JointStateDecoder, WrenchDecoder, ImuDecoder])
def test_damaged_bytes_never_raise(decoder):
    decoder, rng = decoder(), np.random.default_rng(3)
    for whole in (wrench_bytes(), JointEffortEncoder(NAMES).encode(1, EFFORTS)):
        for size in range(len(whole)):
            decoder.decode(whole[:size])
        for _ in range(300):
            damaged = bytearray(whole)
            for index in rng.integers(0, len(whole), 3):
                damaged[index] = rng.integers(0, 256)
            decoder.decode(bytes(damaged))
            decoder.decode(whole[:4] + rng.bytes(rng.integers(0, 200)))


def test_huge_counts_are_refused_at_once():
    data = JointEffortEncoder([]).encode(1, np.empty(0))
    assert JointStateDecoder().decode(data[:20] + b'\xff' * 4 + data[24:]) is None
