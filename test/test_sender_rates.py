# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Senders of touches that are slower than the time after which a touch is over.

Not covered: that touches lapse then (test_contact_stream.py), what the diagnostics and a replay
say (test/ros/test_slow_touches.py, test_replay_checks.py).
"""

import numpy as np
import pytest

from inertial_estimation.estimation.contact_stream import SenderRates

START_NS = 1_700_000_000_000_000_000
TIMEOUT = 0.1
PERIOD = 0.25
SLOW = np.arange(0.0, 2.0, PERIOD)
"""Eight messages [s]."""
# Stamps are rounded to nanoseconds.
ROUND_OFF = 1e-8


def rhythm_of(seconds):
    rhythm = SenderRates(TIMEOUT)
    for second in seconds:
        rhythm.note(START_NS + round(1e9 * second), 'hand')
    return rhythm


def noted(*seconds):
    """Return what is found of messages at some times, at the last of them."""
    return rhythm_of(seconds).slow_now(START_NS + round(1e9 * seconds[-1]))


def test_a_sender_is_slow_when_most_of_its_gaps_are_too_long():
    (slow,) = noted(*SLOW)
    assert (slow.frame, slow.n_gaps) == ('hand', 7)
    assert slow.period == pytest.approx(PERIOD, rel=ROUND_OFF)
    assert not noted(*np.arange(0.0, 2.0, 0.09))
    assert not noted(0.0, 0.25, 0.5)


@pytest.mark.parametrize('points', [2, 3, 5])
@pytest.mark.parametrize('apart', [0.0, 1e-6, 1e-3])
def test_several_points_of_one_message_are_one(points, apart):
    (slow,) = noted(*(SLOW[:, None] + apart * np.arange(points)).ravel())
    assert slow.period == pytest.approx(PERIOD, rel=ROUND_OFF)
    assert slow.n_gaps == 7


def test_gaps_of_no_period_are_those_of_what_is_touched():
    assert not noted(*np.cumsum([0.3, 0.7, 0.2, 1.5, 0.4, 3.0, 0.15, 0.9]))


def test_a_finger_that_taps_is_no_slow_sender():
    assert not noted(*(np.arange(5.0)[:, None] + 0.01 * np.arange(5)).ravel())


def test_two_slow_senders_in_turn_are_fast_together():
    """Also where one of them always comes late."""
    early, late = np.arange(0.0, 3.0, 0.15), np.arange(0.0, 3.0, 0.15) + 0.075
    assert noted(*early)
    assert not rhythm_of(np.sort([*early, *late])).ever_slow
    swapped = np.stack([early[1:], late[:-1]], axis=1).ravel()
    assert not rhythm_of(swapped).ever_slow


def test_who_has_ended_was_slow():
    rhythm = rhythm_of(SLOW)
    assert rhythm.slow_now(START_NS + 2_000_000_000)
    assert not rhythm.slow_now(START_NS + 4_000_000_000)
    assert [slow.n_gaps for slow in rhythm.ever_slow] == [7]
