# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration sessions: still poses, data sets, instructions, offset and matrix in the end.

Not covered: ill-posed data sets, in `test_in_situ_matrix`; keys and topics, in
`ros/test_calibration_session`.
"""

import numpy as np
import pytest
from hanging_body import GRAVITY, MATRIX, OFFSET
from pinocchio.rpy import rpyToMatrix
from turned_body import AROUND, RATE, TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.in_situ_matrix import in_situ_matrix
from inertial_estimation.calibration.raw_readings import MOVING, NOT_FINITE
from inertial_estimation.calibration.session import (
    DIRECTIONS,
    KEPT,
    NAMES,
    PAUSES,
    SETTLING,
    Collection,
    Session,
)  # fmt: skip
from inertial_estimation.findings import Level

LOADS = ((0.5, 0.3, -0.05, 0.1), (0.5, 0.0, 0.2, 0.1))
WORKSHOP = SensorCalibration(1.02 * MATRIX)
DOWN = np.array([0.0, 0.0, -GRAVITY])
TILTED = rpyToMatrix(0.3, -0.5, 1.2)
POSE = 21
"""Readings of a pose: 0.2 s and the one at its start."""


@pytest.fixture
def body(rng):
    return TurnedBody(rng)


def states(collection, readings):
    """Return the use of each reading."""
    return ['pose' if collection.update(one) else collection.state for one in readings]


def test_motion_is_left_out_until_the_body_has_settled(body):
    found = Collection()
    states(found, body.still(DOWN, 60))
    (pose,) = found.poses
    np.testing.assert_allclose(pose[6:], -DOWN, atol=5 * 0.02 / np.sqrt(POSE))
    assert set(states(found, body.moving())) == {MOVING}
    uses = states(found, body.still(DOWN, 100))
    # The first reading after the motion is one step after its end.
    assert uses[:29] == 29 * [SETTLING] and set(uses[29:]) == {KEPT, 'pose'}
    assert uses.index('pose') == 29 + POSE - 1
    one = next(body.still(DOWN, 1))
    one.raw[0] = np.nan
    assert not found.update(one) and found.state == NOT_FINITE
    # Neither a gap nor a clock that is set back is part of a pose.
    for step in (10**9, -(10**10)):
        body.stamp_ns += step
        assert states(found, body.still(DOWN, 30)) == 30 * [SETTLING]
    assert len(found.poses) == 4


def test_slow_tilt_is_seen_without_a_gyroscope(body):
    found = Collection()
    for angle in 0.5 * np.arange(200) / RATE:
        gravity = GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        found.update(next(body.still(gravity, 1))._replace(turning=None))
    assert not found.poses


def test_touched_poses_are_left_out(body):
    found = Collection()
    body.go_through(found.update, AROUND[:40])
    assert found.offset.kept.all() and not found.lacking
    # 3 N on a body of 2.9 kg, which is then let go.
    body.touch = np.array([3.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    body.go_through(found.update, AROUND[:5])
    assert not found.offset.kept[-5:].any() and found.offset.kept[:-10].all()
    body.touch = np.zeros(6)
    body.go_through(found.update, AROUND[:1])
    assert found.offset.kept[-1]


def test_following_the_suggestions_is_enough(body):
    found, gravity, reached = Collection(), DOWN, []
    assert found.suggestions() and found.lacking
    for _ in range(26):
        body.go_through(found.update, [gravity], 1.3)
        reached.append(gravity / GRAVITY)
        if not found.lacking:
            break
        asked = DIRECTIONS[NAMES.index(found.suggestions()[0])]
        # Near to one that was reached, and new.
        assert 0.49 < (reached @ asked).max() < 0.9
        gravity = GRAVITY * asked
    assert not found.lacking and len(reached) < 20


def new_session(loads=LOADS, **more):
    return Session(loads, **{'before': WORKSHOP, 'rotation': np.eye(3), **more})


def test_loads_are_in_the_axes_of_the_sensor(rng):
    """One data set determines the offset, that of all loads the matrix."""
    session, body = new_session(rotation=TILTED), TurnedBody(rng, rotation=TILTED)
    for body.added, *body.at in ((0.0, 0.0, 0.0, 0.0), *LOADS):
        if session.is_loading:
            session.proceed()
        body.go_through(session.take)
    assert session.is_done
    offset, deviations = session.collections[0].offset.in_wrench(WORKSHOP.matrix)
    assert np.abs((offset - 1.02 * OFFSET) / deviations).max() < 5.0
    found = in_situ_matrix(session.data_sets, rotation=TILTED, former=WORKSHOP.matrix)
    findings = found.findings('foot', WORKSHOP.matrix)
    assert not any(one.level == Level.ERROR for one in findings)


def test_session_goes_from_load_to_load(body):
    session = new_session()
    body.go_through(session.take, AROUND[:3])
    session.proceed()
    assert 'cannot be closed' in session.notes.pop() and not session.is_loading
    session.restart()
    assert not session.collection.poses
    body.go_through(session.take)
    assert session.is_loading and '0.5 kg' in session.instruction()
    body.go_through(session.take, [DOWN])
    assert not session.collection.poses
    session.proceed()
    # A request closes a data set that determines an offset, complete or not.
    body.go_through(session.take, AROUND[:14])
    assert session.collection.lacking and not session.is_loading
    session.proceed()
    assert session.is_loading and not session.is_done and len(session.notes) == 3


def test_disturbances_and_dead_channels_are_reported(body):
    session = new_session(())
    for reading in body.still(DOWN, 100, touched=True):
        session.take(reading)
    assert session.instruction() == PAUSES['contact']

    def without_channel(reading):
        reading.raw[1] = 3.0
        session.take(reading)

    body.go_through(without_channel)
    assert 'channel 2 (fy)' in session.instruction() and not session.is_done
