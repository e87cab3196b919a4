# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tracked FT offsets; not covered: offsets beside the parameters in use (test_recursion.py)."""

from itertools import pairwise

import numpy as np
import pytest

from inertial_estimation.identification.recursion.offsets import (
    DRIFT,
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
)

ALL = np.ones(6, dtype=bool)
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13


@pytest.fixture
def tracker():
    """Return a tracker that has subtracted ten of each for long."""
    tracker, ten = OffsetTracker(6, 0.1 / DRIFT), np.full(6, 10.0)
    first = tracker.proposed(ten, np.zeros(6), ALL, 0.0)
    # Offsets that are determined for the first time are taken at once.
    assert (first.values == 10.0).all()
    for seconds in (0.0, MAX_INTERVAL, MAX_INTERVAL):
        tracker.now = tracker.proposed(ten, ten, ALL, seconds)
    return tracker


def ask(tracker, found, before, seconds=1.0, determined=ALL):
    """Return what is proposed, and take it."""
    pair = np.broadcast_to(found, 6), np.broadcast_to(before, 6)
    tracker.now = tracker.proposed(*pair, determined, seconds)
    return tracker.now.values


def test_tracker_follows_at_drift_rate(tracker):
    asked = np.array([13.0, 10.0, 6.0, 10.0, 9.0, 10.0])
    # Along the way there: 5 N, 1 Nm.
    wanted = [10.12, 10.0, 9.84, 10.0, 9.98, 10.0]
    # A proposal changes nothing.
    for _ in range(2):
        found = tracker.proposed(asked, asked, ALL, 2.0).values
        np.testing.assert_allclose(found, wanted, atol=ROUND_OFF)
    for _ in range(60):
        ask(tracker, asked, asked, 2.0)
    np.testing.assert_allclose(tracker.now.values, asked, atol=ROUND_OFF)
    # Long intervals count as MAX_INTERVAL, time set back as none.
    far = np.full(6, 1e6)
    short, long, back = (
        tracker.proposed(far, far, ALL, seconds).values for seconds in (MAX_INTERVAL, 1e4, -5.0)
    )
    np.testing.assert_array_equal(long, short)
    np.testing.assert_allclose(back, asked, atol=ROUND_OFF)


def test_tracker_begins_with_the_mean(rng):
    tracker = OffsetTracker(6, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for values in swaying:
        ask(tracker, values, values)
    # The first one counts for no time yet.
    np.testing.assert_allclose(tracker.now.values, swaying[1:].mean(axis=0), atol=ROUND_OFF)
    for _ in range(2):
        before = tracker.now.values
        ask(tracker, 1e3, 1e3)
    np.testing.assert_array_equal(tracker.now.values, before)


def test_tracker_takes_what_parameters_change(tracker):
    np.testing.assert_array_equal(ask(tracker, 13.0, 10.0), 13.0)
    # Back again while a push acts, which is hidden no faster than a drift; but not away from the
    # readings.
    for found, before, sign in ((-10.0, -7.0, -1.0), (30.0, 33.0, 1.0)):
        pair = np.full(6, found), np.full(6, before)
        values = tracker.proposed(*pair, ALL, 1.0).values
        start = 10.0 if sign < 0.0 else 13.0
        np.testing.assert_allclose(values[:3], start + sign * 0.1 / 3**0.5)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_swaying_parameters_hide_no_push(tracker, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = ask(tracker, 10.0 + push + after, 10.0 + push + before)
    # A drift of 20 s, and from one end of the sways to the other.
    hidden = np.linalg.norm(found[:3] - 10.0)
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_offsets_that_are_forgotten_or_without_equations(tracker):
    tracker.forget(np.arange(3))
    found = ask(tracker, 20.0, 20.0)
    np.testing.assert_array_equal(found[:3], 20.0)
    assert (found[3:] < 10.1).all()
    # What is not determined changes with parameters only.
    np.testing.assert_array_equal(ask(tracker, 25.0, 20.0, determined=~ALL), found + 5.0)
    found, nothing = tracker.now.values, np.full(6, np.nan)
    np.testing.assert_array_equal(ask(tracker, nothing, nothing, determined=~ALL), found)
