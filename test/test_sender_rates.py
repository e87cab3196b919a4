# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Senders of contacts that are slower than the contact timeout.

Not covered: that contacts lapse then (test_contact_stream.py).
"""

import numpy as np
import pytest

from inertial_estimation.estimation.contact_stream import SenderRates

START_NS = 1_700_000_000_000_000_000
SLOW = np.arange(0.0, 2.0, 0.25)
"""Eight messages [s]; the timeout is 0.1 s."""
EARLY, LATE = np.arange(0.0, 3.0, 0.15), np.arange(0.0, 3.0, 0.15) + 0.075


def rates_of(seconds):
    rates = SenderRates(0.1)
    for second in np.ravel(seconds):
        rates.note(START_NS + round(1e9 * second), 'hand')
    return rates


@pytest.mark.parametrize(('points', 'apart'), [(1, 0.0), (2, 0.0), (5, 1e-3)])
def test_a_sender_is_slow_while_its_period_exceeds_the_timeout(points, apart):
    """Points that are close in time are of one message."""
    rates = rates_of(SLOW[:, None] + apart * np.arange(points))
    (slow,) = rates.slow_now(START_NS + 2_000_000_000)
    assert (slow.frame, slow.n_gaps) == ('hand', 7)
    # Stamps are rounded to nanoseconds.
    assert slow.period == pytest.approx(0.25, rel=1e-8)
    assert not rates.slow_now(START_NS + 4_000_000_000)
    assert [slow.n_gaps for slow in rates.ever_slow] == [7]


@pytest.mark.parametrize(
    'seconds',
    [
        np.arange(0.0, 2.0, 0.09),
        [0.0, 0.25, 0.5],
        np.cumsum([0.3, 0.7, 0.2, 1.5, 0.4, 3.0, 0.15, 0.9]),
        np.arange(5.0)[:, None] + 0.01 * np.arange(5),
        np.sort([*EARLY, *LATE]),
        np.stack([EARLY[1:], LATE[:-1]], axis=1),
    ],
    ids=['fast', 'few', 'irregular', 'taps', 'two senders', 'two senders, one late'],
)
def test_other_gaps_are_those_of_the_contact(seconds):
    assert not rates_of(seconds).ever_slow
