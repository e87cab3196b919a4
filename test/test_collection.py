# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Still moments of a body that is turned: what is kept, what is left out and why, what is lacking.

Not covered: offsets and matrices that come of them, in `test_session`; messages, in
`ros/test_calibration_session`.
"""

import numpy as np
import pytest
from hanging_body import GRAVITY
from turned_body import AROUND, RATE, TurnedBody

from inertial_estimation.calibration import collection as module
from inertial_estimation.calibration.accelerometer import MOVING, NOT_FINITE, TOUCHED
from inertial_estimation.calibration.collection import (
    CONTACT,
    DIRECTIONS,
    JOINTS,
    KEPT,
    NAMES,
    REPEATED,
    SETTLING,
    UNSTEADY,
    WAITING,
    Collection,
    Wanted,
)

DOWN = np.array([0.0, 0.0, -GRAVITY])
MOMENT = 21
"""Readings of a moment: 0.2 s and the one at its start."""


@pytest.fixture
def body(rng):
    return TurnedBody(rng)


def check_sums(found: Collection):
    """Every reading is kept, left out for one reason, or pending."""
    assert sum(found.counts().values()) + found.pending == found.received


def test_a_body_at_rest_makes_a_moment_every_fifth_of_a_second(body):
    found = Collection()
    said = body.hold(found, DOWN, 1.0)
    assert said.count(KEPT) == 100 // MOMENT
    assert set(said) == {KEPT, WAITING}
    check_sums(found)
    moment = found.poses[0]
    assert moment.n_readings == MOMENT
    # Means of 21 readings with a noise of 0.02 m/s^2 in each axis.
    np.testing.assert_allclose(moment.acceleration, -DOWN, atol=5 * 0.02 / np.sqrt(MOMENT))


def test_motion_is_left_out_with_what_was_pending_and_until_it_has_settled(body):
    found = Collection()
    body.hold(found, DOWN, 0.3)
    assert found.pending == 30 - MOMENT
    assert set(body.turn(found)) == {MOVING}
    assert found.pending == 0
    said = body.hold(found, DOWN, 1.0)
    # The first reading after it is one step after its end.
    assert said[:29].count(SETTLING) == 29 and SETTLING not in said[29:]
    counts = found.counts()
    assert counts[MOVING] == 20 + 30 - MOMENT
    check_sums(found)


@pytest.mark.parametrize('why', [CONTACT, JOINTS, 'asked to wait'])
def test_what_others_tell_of_is_left_out_by_its_reason(body, why):
    found = Collection()
    body.hold(found, DOWN, 0.3)
    assert set(body.hold(found, DOWN, 0.5, disturbance=why)) == {why}
    assert found.state == why
    assert found.counts()[why] == 50 + 30 - MOMENT
    check_sums(found)


def test_readings_that_are_none_are_left_out(body):
    found = Collection()
    for which in (1, 2):
        one = next(body.readings(DOWN, 1))
        one[which][0] = np.nan
        assert found.update(*one) == NOT_FINITE
    stamp, raw, a, _ = next(body.readings(DOWN, 1))
    # A gyroscope that says nothing leaves nothing out, and none is needed.
    assert found.update(stamp + 10**9, raw, a, np.full(3, np.nan)) == WAITING
    assert found.update(stamp + 10**9 + 1, raw, a) == WAITING
    check_sums(found)


def test_a_slow_tilt_is_seen_without_a_gyroscope(body):
    found, said = Collection(), []
    for k in range(200):
        angle = 0.5 * k / RATE
        gravity = GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        stamp, raw, a, _ = next(body.readings(gravity, 1))
        said.append(found.update(stamp, raw, a))
    assert MOVING in said and KEPT not in said


def test_once_the_size_of_gravity_is_known_smaller_motions_show(body):
    found = Collection()
    stamp, raw, a, w = next(body.readings(DOWN, 1))
    assert found.update(stamp, raw, 1.05 * a, w) == WAITING
    body.hold(found, DOWN, 2.0)
    body.turn(found)
    said = [found.update(stamp, raw, 1.05 * a, w) for stamp, raw, a, w in body.readings(DOWN, 80)]
    assert MOVING in said and KEPT not in said
    check_sums(found)


def test_a_body_that_is_touched_too_often_is_not_enough(body):
    found = Collection(np.diag(np.repeat([1.0, 10.0], 3)) @ body.matrix)
    for k, gravity in enumerate(AROUND[:26]):
        body.touch = np.array([3.0, 1.0, 0.0, 0.0, 0.3, 0.0]) * (k % 2)
        body.turn(found)
        body.hold(found, gravity, 0.8)
    (why,) = found.coverage().shortfalls
    assert '9%' in why


def test_a_pose_that_is_held_for_long_does_not_outweigh_others(body):
    found = Collection()
    body.hold(found, DOWN, 10.0)
    assert len(found.poses) == module.MAX_ALIKE
    assert found.state in (REPEATED, WAITING)
    body.hold(found, -DOWN, 1.0)
    assert len(found.poses) > module.MAX_ALIKE
    check_sums(found)


def test_a_hand_that_holds_still_is_found_out_in_the_end(body):
    found = Collection()
    body.go_through(found, AROUND[:26])
    # 3 N on a body of 2.9 kg, at the end of which it is let go.
    body.touch = np.array([3.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    body.go_through(found, AROUND[:5])
    assert found.rejected[-1] == TOUCHED
    body.touch = np.zeros(6)
    body.go_through(found, AROUND[:5])
    assert found.rejected[-1] == ''
    touched = [bool(one) for one in found.rejected]
    assert sum(touched) == sum(touched[-10 - sum(touched) :]) > 0
    assert found.counts()[TOUCHED] == sum(
        one.n_readings for one, off in zip(found.poses, touched) if off
    )
    check_sums(found)


def test_moments_that_were_touched_make_room(body, monkeypatch):
    monkeypatch.setattr(module, 'MAX_ALIKE', 2)
    found = Collection()
    body.go_through(found, AROUND[:26], 1.0)
    n = len(found.poses)
    body.touch = np.array([3.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    elsewhere = GRAVITY * np.array([0.36, 0.48, 0.8])
    body.go_through(found, [elsewhere], 1.0)
    assert found.rejected[-1] == TOUCHED and len(found.poses) == n + 2
    body.touch = np.zeros(6)
    body.go_through(found, [elsewhere], 1.0)
    assert found.rejected[-1] == '' and len(found.poses) == n + 2
    assert not any(found.rejected)
    # Three were, of which the first made room for the third.
    assert found.left_out[TOUCHED] == 3 * MOMENT
    check_sums(found)


def test_readings_that_shake_are_doubted(body, rng):
    found = Collection()
    body.go_through(found, AROUND[:10])
    body.turn(found)
    for stamp, raw, a, w in body.readings(DOWN, 100):
        found.update(stamp, raw + rng.normal(size=6) * 20.0 * raw.std(), a, w)
    assert found.rejected[-1] == UNSTEADY
    assert found.counts()[UNSTEADY] > 0
    check_sums(found)


def test_coverage_says_what_is_missing_until_it_is_enough(body):
    found = Collection()
    empty = found.coverage()
    assert not empty.is_enough and empty.missing == NAMES and empty.orientations is None
    body.hold(found, DOWN, 1.0)
    one = found.coverage()
    assert one.missing == tuple(name for name in NAMES if name != '-z')
    assert len(one.shortfalls) == 5 and one.n_directions == 1 and np.isnan(one.gap)
    body.go_through(found)
    all_of_them = found.coverage()
    assert all_of_them.is_enough and not all_of_them.missing and not all_of_them.suggestions
    assert all_of_them.gap > 50


def test_following_the_suggestions_is_enough(body):
    found = Collection()
    gravity = DOWN
    for _ in range(26):
        body.hold(found, gravity, 1.3)
        body.turn(found)
        seen = found.coverage()
        if seen.is_enough:
            break
        asked = DIRECTIONS[NAMES.index(seen.suggestions[0])]
        # Each one is near to one that was reached.
        reached = DIRECTIONS[seen.counts > 0]
        assert (reached @ asked).max() > 0.49
        gravity = GRAVITY * asked
    assert seen.is_enough and sum(seen.counts > 0) < 20


def test_four_poses_never_are_enough(body):
    found = Collection(wanted=Wanted(poses=20))
    four = GRAVITY * np.vstack([np.eye(3), [-0.6, -0.48, -0.64]])
    body.go_through(found, np.tile(four, (2, 1)), 1.0)
    seen = found.coverage()
    assert seen.n_poses >= 20 and seen.orientations.spreads[-1] > 0.1
    assert len(seen.shortfalls) == 1


def test_turning_about_one_axis_is_not_enough(body):
    found = Collection()
    angles = np.linspace(0, 2 * np.pi, 40)
    flat = GRAVITY * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    body.go_through(found, flat)
    (why,) = found.coverage().shortfalls
    assert 'gravity along (0.0' in why.replace('-', '') and 'expected 10%' in why
    assert 'z' in found.coverage().suggestions[0]
