# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What of the offsets that are found is subtracted.

Not covered: which offsets fit which bodies (`test_offsets_in_use.py`), and what estimators do with
them (`test_set_parameters.py`).
"""

from itertools import pairwise

import numpy as np
import pytest

from inertial_estimation.identification.recursion.offsets import (
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
)

FORCES = tuple(f'arm.force_{axis}' for axis in 'xyz')
MOMENTS = tuple(f'arm.moment_{axis}' for axis in 'xyz')
NAMES = FORCES + MOMENTS
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13
# A force that is alike in all three coordinates, over one of them.
ALONG = 3**0.5


def offsets(*values):
    """Return offsets of a sensor by their columns."""
    return dict(zip(NAMES, np.broadcast_to(values, 6).tolist(), strict=True))


def force(proposal):
    """Return the force that would be subtracted."""
    return tuple(proposal.values[name] for name in FORCES)


@pytest.fixture
def followed():
    """Return what subtracts ten of each."""
    followed = OffsetTracker(0.1, 0.01)
    first = followed.proposed(offsets(10.0), offsets(0.0), NAMES, 0.0)
    # What is told for the first time is taken at once: it comes with the bodies.
    assert first.values == offsets(10.0)
    followed.take(first, NAMES, 0.0)
    # It has been there for long.
    for _ in range(2):
        followed.take(first, NAMES, MAX_INTERVAL)
    return followed


def test_what_readings_ask_for_is_followed_as_fast_as_sensors_drift(followed):
    asked = offsets(13.0, 10.0, 6.0, 10.0, 9.0, 10.0)
    found = followed.proposed(asked, asked, NAMES, 2.0)
    # Along the way there: 5 N, 1 Nm.
    assert found.values == pytest.approx(
        offsets(10.12, 10.0, 9.84, 10.0, 9.98, 10.0), abs=ROUND_OFF
    )
    # Nothing is changed by asking.
    assert followed.proposed(asked, asked, NAMES, 2.0) == found
    for _ in range(60):
        followed.take(followed.proposed(asked, asked, NAMES, 2.0), NAMES, 2.0)
    assert followed.values == pytest.approx(asked, abs=ROUND_OFF)
    # Time in which nobody looked is no time in which it drifted at that speed.
    far = offsets(1e6)
    short = followed.proposed(far, far, NAMES, MAX_INTERVAL)
    assert followed.proposed(far, far, NAMES, 1e4) == short
    # Time that was set back is none.
    assert followed.proposed(far, far, NAMES, -5.0).values == pytest.approx(asked, abs=ROUND_OFF)


def test_at_first_it_is_the_mean_of_what_readings_ask_for(rng):
    followed = OffsetTracker(0.0, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for k, values in enumerate(swaying):
        asked = offsets(*values)
        followed.take(followed.proposed(asked, asked, NAMES, 1.0), NAMES, 1.0 if k else 0.0)
    # The first one stands for no time yet.
    expected = offsets(*swaying[1:].mean(axis=0))
    assert followed.values == pytest.approx(expected, abs=ROUND_OFF)
    # After that nothing is followed beyond a drift, here none.
    for _ in range(2):
        before, far = dict(followed.values), offsets(1e3)
        followed.take(followed.proposed(far, far, NAMES, 1.0), NAMES, 1.0)
    assert followed.values == before


def test_time_in_which_nothing_tells_an_offset_is_no_part_of_its_mean():
    followed = OffsetTracker(0.0, 0.0)
    for asked, told in ((10.0, NAMES), (10.0, NAMES), *[(0.0, ())] * 3, (13.0, NAMES)):
        found = offsets(asked)
        followed.take(followed.proposed(found, found, told, MAX_INTERVAL), told, MAX_INTERVAL)
    # Ten, which was there for ten seconds in which it was told, and thirteen for as many.
    assert followed.values == pytest.approx(offsets(11.5), abs=ROUND_OFF)


def test_what_bodies_change_is_taken_at_once(followed):
    # Beside the bodies so far rows ask for nothing else; beside the new ones for three more.
    found = followed.proposed(offsets(13.0), offsets(10.0), NAMES, 1.0)
    assert found.values == offsets(13.0)
    followed.take(found, NAMES, 1.0)
    # Back again, while somebody pushes, which is hidden no faster than a drift.
    found = followed.proposed(offsets(-10.0), offsets(-7.0), NAMES, 1.0)
    assert force(found) == pytest.approx((10.0 - 0.1 / ALONG,) * 3)


def test_what_bodies_change_against_a_push_may_be_the_load_that_looks_like_one(followed):
    followed.take(followed.proposed(offsets(13.0), offsets(10.0), NAMES, 1.0), NAMES, 1.0)
    # Beside these bodies rows asked for ten again, were it not for twenty newtons.
    found = followed.proposed(offsets(30.0), offsets(33.0), NAMES, 1.0)
    assert force(found) == pytest.approx((13.0 + 0.1 / ALONG,) * 3)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_bodies_that_sway_hide_no_more_of_a_push_than_a_drift_does(followed, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = followed.proposed(
            offsets(*(10.0 + push + after)), offsets(*(10.0 + push + before)), NAMES, 1.0
        )
        followed.take(found, NAMES, 1.0)
    hidden = np.linalg.norm(np.array(force(found)) - 10.0)
    # A drift of 20 s, and from one end of the sways to the other.
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_what_was_refused_is_forgotten(followed):
    followed.take(followed.proposed(offsets(27.0), offsets(30.0), NAMES, 1.0), NAMES, 1.0)
    at = followed.values[FORCES[0]]
    # Three newtons against the push were refused: right after it they are made up for first.
    found = followed.proposed(offsets(at + 3.0), offsets(at), NAMES, 1.0)
    assert found.values[FORCES[0]] < at + 0.3
    for _ in range(20):
        asked = dict(followed.values)
        followed.take(followed.proposed(asked, asked, NAMES, MAX_INTERVAL), NAMES, MAX_INTERVAL)
    asked = {name: value + 3.0 for name, value in followed.values.items()}
    found = followed.proposed(asked, dict(followed.values), NAMES, 1.0)
    assert found.values == pytest.approx(asked, abs=1e-3)


def test_a_load_that_was_an_offset_until_it_was_found_in_a_body_leaves_none(followed):
    # Readings ask for five more, as if somebody pushed, until a body explains them.
    for _ in range(4):
        pushed = followed.proposed(offsets(15.0), offsets(15.0), NAMES, 1.0)
        followed.take(pushed, NAMES, 1.0)
    assert 10.0 < followed.values[FORCES[0]] < 10.5
    found = followed.proposed(offsets(10.0), offsets(15.0), NAMES, 1.0)
    assert found.values == pytest.approx(offsets(10.0), abs=ROUND_OFF)


def test_what_is_not_told_comes_with_bodies_alone(followed):
    found = followed.proposed(offsets(25.0), offsets(20.0), (), 1.0)
    assert found.values == offsets(15.0)
    fresh = OffsetTracker(0.1, 0.01)
    assert fresh.proposed(offsets(25.0), offsets(20.0), FORCES, 1.0).values.keys() == set(FORCES)


def test_what_has_jumped_is_taken_anew_and_a_tare_shifts_it(followed):
    followed.forget(FORCES)
    found = followed.proposed(offsets(20.0), offsets(20.0), NAMES, 1.0)
    assert force(found) == (20.0,) * 3
    assert found.values[MOMENTS[0]] < 10.1
    followed.take(found, NAMES, 1.0)
    followed.recalibrate({FORCES[0]: 20.0, 'leg.force_x': 1.0})
    assert followed.values[FORCES[0]] == 0.0
    assert followed.values[FORCES[1]] == 20.0
    assert 'leg.force_x' not in followed.values
