# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration sessions: data sets, instructions, offset and matrix in the end.

Not covered: ill-posed data sets, in `test_in_situ_matrix`; keys and topics, in
`ros/test_calibration_session`.
"""

import numpy as np
import pytest
from hanging_body import CENTRE, GRAVITY, MASS, MATRIX, OFFSET
from pinocchio.rpy import rpyToMatrix
from turned_body import AROUND, TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.session import PAUSES, Load, Session
from inertial_estimation.errors import CallError
from inertial_estimation.findings import Level

DATE = '2026-11-22T12:00:00+00:00'
LOADS = (Load(0.5, (0.3, -0.05, 0.1)), Load(0.5, (0.0, 0.2, 0.1)))
WORKSHOP = SensorCalibration(1.02 * MATRIX)
DOWN = np.array([0.0, 0.0, -GRAVITY])
TILTED = rpyToMatrix(0.3, -0.5, 1.2)


def new_session(loads=LOADS, **more):
    return Session('foot', "IMU 'foot'", loads, **{'before': WORKSHOP, **more})


def run(session, body, loads=LOADS):
    """Mount the loads and turn the body; return what the session finds."""
    for load in (Load(), *loads):
        if session.is_loading:
            session.proceed()
        body.added, body.at = load
        body.go_through(session.take)
    assert session.is_done
    return session.outcome(DATE, 31.5)


def errors_of(found):
    return {one.code for one in found.findings if one.level == Level.ERROR}


def test_one_data_set_determines_the_offset(rng, tmp_path):
    found = run(new_session(()), TurnedBody(rng), ())
    assert found.findings == ()
    one = found.calibration
    np.testing.assert_array_equal(one.matrix, WORKSHOP.matrix)
    errors = (one.offset - 1.02 * OFFSET) / found.figures['deviations']
    assert np.abs(errors).max() < 5.0
    (step,) = one.provenance
    assert step.date == DATE and step.temperature == 31.5
    assert step.notes[0] == "gravity from IMU 'foot'"
    write(tmp_path / 'a.yaml', 'icub', {'foot': one})
    assert read(tmp_path / 'a.yaml')[1]['foot'].provenance == one.provenance


def test_three_data_sets_determine_the_matrix(rng):
    found = run(new_session(rotation=np.eye(3)), TurnedBody(rng))
    assert found.calibration.axes == 'sensor' and not errors_of(found)
    errors = (found.calibration.matrix - MATRIX) / found.figures['deviations']
    assert np.abs(errors).max() < 6.0
    # T section 5.4 reaches this.
    assert found.figures['body_mass'] == pytest.approx(MASS, abs=0.05)
    assert errors_of(run(new_session(rotation=np.eye(3)), TurnedBody(rng), LOADS[::-1]))
    # A former matrix is compared; without one nothing is known of the change.
    assert np.isnan(run(new_session(before=None), TurnedBody(rng)).figures['change'])


def test_without_a_rotation_the_matrix_is_in_the_axes_of_the_accelerometer(rng):
    loads = [Load(mass, tuple(TILTED.T @ centre)) for mass, centre in LOADS]
    found = run(new_session(loads), TurnedBody(rng, rotation=TILTED))
    assert found.calibration.axes == 'accelerometer'
    turned = np.kron(np.eye(2), TILTED.T)
    errors = (found.calibration.matrix - turned @ MATRIX) / found.figures['deviations']
    assert np.abs(errors).max() < 6.0
    # An offset stays in the axes of the matrix that it is found with.
    assert new_session((), before=found.calibration).axes == 'accelerometer'
    # With the rotation, both bodies and loads are in the sensor's axes.
    body = TurnedBody(rng, rotation=TILTED)
    assert not errors_of(run(new_session(rotation=TILTED), body)) and CENTRE.any()


def test_session_goes_from_load_to_load(rng):
    session, body = new_session(), TurnedBody(rng)
    body.go_through(session.take, AROUND[:3])
    session.proceed()
    assert 'cannot be closed' in session.notes.pop() and not session.is_loading
    session.restart()
    assert not session.collection.poses
    body.go_through(session.take)
    assert session.is_loading and '0.5 kg' in session.instruction()
    body.go_through(session.take, [DOWN])
    assert not session.collection.poses and not session.collection.left_out
    session.proceed()
    # A request closes a data set that determines an offset, complete or not.
    body.go_through(session.take, AROUND[:14])
    assert session.collection.lacking and not session.is_loading
    session.proceed()
    assert session.is_loading and not session.is_done and len(session.notes) == 3


def test_disturbances_and_dead_channels_are_reported(rng):
    session, body = new_session(()), TurnedBody(rng)
    for reading in body.still(DOWN, 100, touched=True):
        session.take(reading)
    assert session.instruction() == PAUSES['contact']

    def without_channel(reading):
        reading.raw[1] = 3.0
        session.take(reading)

    body.go_through(without_channel)
    assert 'channel 2 (fy)' in session.instruction() and not session.is_done


def test_one_load_determines_nothing():
    with pytest.raises(CallError):
        new_session(LOADS[:1])
