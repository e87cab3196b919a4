# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reading bags, which rosbags writes, and their messages.

Not covered: written bags, and one that ros2 bag recorded, in test_replay.py.
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import JOINT_STATE, WRENCH, imu, joint_state, wrench, write_bag

from inertial_estimation.errors import LogError
from inertial_estimation.logs.bag import BagReader, deserialize
from inertial_estimation.signals.router import Source

START = 1_700_000_000_000_000_000


def two_topics(n=5):
    """Return messages of two topics that alternate, recorded 1 ms after their stamp."""
    for k in range(n):
        stamp = START + 10_000_000 * k
        yield '/joint_states', JOINT_STATE, stamp + 1_000_000, joint_state(stamp, ['a'], [k])
        yield '/ft/leg', WRENCH, stamp + 1_500_000, wrench(stamp, 'leg', [k] * 6)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('as_file', [False, True])
def test_messages_come_in_the_order_of_their_recording(tmp_path, storage, as_file):
    written = list(two_topics())
    # The second half of the first topic is written late.
    path = write_bag(tmp_path / 'bag', [*written[1::2], *written[::2]], storage)
    if as_file:
        path = next(f for f in path.iterdir() if f.suffix in ('.mcap', '.db3'))
    with BagReader(path) as bag:
        assert bag.topics['/ft/leg'] == (WRENCH, 5)
        read = list(bag.messages(['/joint_states', '/ft/leg']))
        only = list(bag.messages(['/ft/leg']))
        none = list(bag.messages([]))
    assert [(m.topic, m.recorded_ns, m.data) for m in read] == [
        (topic, recorded, data) for topic, _, recorded, data in written
    ]
    assert [m.topic for m in only] == ['/ft/leg'] * 5
    assert none == []


def test_what_is_no_bag_or_damaged_is_refused(tmp_path):
    (tmp_path / 'notes.txt').write_text('no bag')
    for name in ('nothing', '.', 'notes.txt'):
        with pytest.raises(LogError):
            BagReader(tmp_path / name)
    for storage in ('mcap', 'sqlite3'):
        path = write_bag(tmp_path / storage, two_topics(200), storage)
        file = next(f for f in path.iterdir() if f.suffix in ('.mcap', '.db3'))
        file.write_bytes(file.read_bytes()[:3000])
        with pytest.raises(LogError), BagReader(path) as bag:
            list(bag.messages(['/ft/leg']))


def test_other_encodings_are_read():
    """Those of nearly all bags are read in test_replay.py."""
    data = joint_state(START, ['hip', 'knee'], [1.0, 2.0], [], [3.0, 4.0], little_endian=False)
    joints = Source('joints', '', '', deserialize)
    reading = joints.read(data)
    assert (reading.stamp_ns, reading.names) == (START, ('hip', 'knee'))
    np.testing.assert_array_equal([reading.positions, reading.efforts], [[1, 2], [3, 4]])
    assert len(reading.velocities) == 0 and joints.fallbacks == 1
    reading = Source('ft', '', '', deserialize).read(
        wrench(START, 'leg', range(6), little_endian=False)
    )
    assert (reading.frame_id, *reading.values) == ('leg', *range(6))
    data = imu(START, 'head', [1, 2, 3], [4, 5, 6], measures_rate=False, little_endian=False)
    reading = Source('imu', '', '', deserialize).read(data)
    assert np.isnan(reading.angular_velocity).all()
    np.testing.assert_array_equal(reading.linear_acceleration, [4, 5, 6])
