# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bytes of messages: padding, damage, other encodings.

That real messages are read as rclpy reads them is in ros/test_messages_against_rclpy.py.
"""

import numpy as np
import pytest

from inertial_estimation.signals.messages import WRENCH, Decoder, Encoder, effort_encoder

NAMES = ('hip', 'knee', 'ankle_pitch')
EFFORTS = np.array([1.0, np.nan, -3.5])
JOINTS = effort_encoder(NAMES).encode(5_000_000_001, EFFORTS)
FORCE = Encoder(WRENCH, 'l_sole').encode(7_000_000_009, np.arange(6.0))
BOTH = [('joints', JOINTS), ('ft', FORCE)]


def test_padding_is_ignored_and_equally_long_messages_are_not_mixed_up():
    decoder, data = Decoder('joints'), bytearray(JOINTS)
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
