# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Senders of touches that are slower than the time after which a touch is over.

Not covered: that touches lapse then (test_contact_stream.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, PERIOD_NS, START_NS, BenchRobot, figure
from geometry_msgs.msg import PointStamped

from inertial_estimation.ros.conversions import point_to_message
from inertial_estimation.ros.diagnostics import WARN
from inertial_estimation.ros.touch_rhythm import KEPT, MAX_FRAMES, TouchRhythm

TIMEOUT = 0.1
SLOW = 25
"""Periods of the bench between two messages: 0.25 s."""


def noted(*seconds, frame='hand'):
    """Return what is found of messages at some times, at the last of them."""
    rhythm = TouchRhythm(TIMEOUT)
    for second in seconds:
        rhythm.note(START_NS + round(1e9 * second), frame)
    return rhythm.slow_senders(START_NS + round(1e9 * seconds[-1]))


def test_a_sender_is_slow_when_most_of_its_gaps_are_too_long():
    (slow,) = noted(*np.arange(0.0, 2.0, 0.25))
    assert slow.frame == 'hand'
    assert slow.period == pytest.approx(0.25)
    assert noted(*np.arange(0.0, 2.0, 0.09)) == []
    assert noted(0.0, 0.25, 0.5) == []


def test_a_finger_that_taps_is_no_slow_sender():
    taps = [start + k * 0.01 for start in (0.0, 1.0, 2.0, 3.0, 4.0) for k in range(5)]
    assert noted(*taps) == []


def test_several_points_of_one_instant_are_one_message():
    (slow,) = noted(*np.repeat(np.arange(0.0, 2.0, 0.25), 3))
    assert slow.period == pytest.approx(0.25)


def test_who_has_ended_is_not_slow():
    rhythm = TouchRhythm(TIMEOUT)
    for k in range(8):
        rhythm.note(START_NS + k * 250_000_000, 'hand')
    assert rhythm.slow_senders(START_NS + 2_000_000_000)
    assert not rhythm.slow_senders(START_NS + 4_000_000_000)


def test_time_that_is_set_back_begins_anew():
    assert noted(100.0, *np.arange(0.0, 0.6, 0.25)) == []
    assert len(noted(100.0, *np.arange(0.0, 1.1, 0.25))) == 1


def test_the_memory_is_bounded():
    rhythm = TouchRhythm(TIMEOUT)
    for k in range(10 * KEPT):
        rhythm.note(START_NS + k, 'hand')
        rhythm.note(START_NS + k, f'frame {k}')
    assert len(rhythm._stamps) == MAX_FRAMES
    assert len(rhythm._stamps['hand']) == KEPT


def test_the_diagnostics_name_period_and_remedy(context, rng):
    robot = BenchRobot(context, HUMANOID | {'acceleration_source': 'zero'})
    try:
        robot.listen_to_diagnostics()
        wrenches = robot.listen_to_wrenches()
        touch = robot.publisher(PointStamped, 'contacts')
        for k in range(6):
            stamp = START_NS + k * SLOW * PERIOD_NS
            robot.send_all(stamp, rng)
            robot.wait_for_stamp(wrenches, stamp)
            touch.publish(point_to_message(stamp, 'hand', (0.0, 0.0, 0.0)))
        rhythm = robot.estimator.pipeline._inputs.touch_rhythm
        robot.spin_until(lambda: len(rhythm.slow_senders(stamp)))
        robot.send_all(stamp + PERIOD_NS, rng)
        robot.spin_for(0.1)
        # The bench stamps with a clock of its own, which is a lesser warning.
        status = robot.status('contacts')
        assert status.level == WARN
        assert 'of hand every 0.25 s, but each is over after 0.1 s' in status.message
        assert status.message.endswith('set contact_timeout: 0.5')
        assert figure(status, 'period of hand [ms]') == '250.000'
    finally:
        robot.close()
