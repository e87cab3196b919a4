# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sessions of data sets: offsets, matrices, what is refused, stopping and going on.

Not covered: the mathematics of ill-posed data sets, in `test_added_masses`.
"""

import json

import numpy as np
import pytest
from hanging_body import CENTRE, GRAVITY, MASS, MATRIX, OFFSET
from pinocchio.rpy import rpyToMatrix
from turned_body import AROUND, TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.collection import DIRECTIONS
from inertial_estimation.calibration.session import (
    NOTHING,
    Load,
    Plan,
    Session,
)
from inertial_estimation.errors import CallError, ConfigError, LogError, ModelError
from inertial_estimation.findings import Level

DATE = '2026-11-22T12:00:00+00:00'
LOADS = (NOTHING, Load('far', 0.5, (0.3, -0.05, 0.1)), Load('side', 0.5, (0.0, 0.2, 0.1)))
WORKSHOP = SensorCalibration(1.02 * MATRIX)
POSES = GRAVITY * np.vstack([DIRECTIONS, DIRECTIONS[:14]])
TILTED = rpyToMatrix(0.3, -0.5, 1.2)


def plan(loads=(NOTHING,), **more):
    return Plan('foot', "IMU 'foot'", loads, before=WORKSHOP, **more)


def errors_of(session):
    """Return the codes of errors."""
    findings = session.outcome(DATE).findings
    return {one.code for one in findings if one.level == Level.ERROR}


def go_through(session, body, load):
    """Hang a load on and turn the body."""
    body.added, body.at = load.mass, load.centre
    body.go_through(session.collection, POSES, 0.6)


@pytest.fixture
def three(rng):
    """Return a session with three closed data sets, and the body."""
    session, body = Session(plan(LOADS, rotation=np.eye(3))), TurnedBody(rng)
    for load in LOADS:
        assert session.load is load
        go_through(session, body, load)
        session.close_step()
    return session, body


def test_one_data_set_tells_the_offset(rng, tmp_path):
    session, body = Session(plan()), TurnedBody(rng)
    go_through(session, body, NOTHING)
    assert not session.is_closed and session.collection.coverage().is_enough
    session.close_step()
    assert session.is_closed
    found = session.outcome(DATE, 31.5)
    assert found.matrix is None and found.findings == ()
    one = found.calibration
    np.testing.assert_array_equal(one.matrix, WORKSHOP.matrix)
    deviations = found.offset.in_wrench(WORKSHOP.matrix)[1]
    assert (np.abs(one.offset - 1.02 * OFFSET) / deviations).max() < 5.0
    (step,) = one.provenance
    assert step.method == 'live: offset without a model'
    assert step.date == DATE and step.temperature == 31.5
    assert step.notes[0] == "gravity from IMU 'foot'"
    write(tmp_path / 'a.yaml', 'icub', {'foot': one})
    assert read(tmp_path / 'a.yaml')[1]['foot'].provenance == one.provenance


def test_touches_and_motion_spoil_nothing(rng):
    session, body = Session(plan()), TurnedBody(rng)
    for k, gravity in enumerate(AROUND):
        body.touch = np.array([4.0, 0.0, 0.0, 0.0, 0.5, 0.0]) * (k % 6 == 5)
        body.turn(session.collection)
        body.hold(session.collection, gravity, 0.8)
    session.close_step()
    found = session.outcome(DATE)
    deviations = found.offset.in_wrench(WORKSHOP.matrix)[1]
    assert (np.abs(found.calibration.offset - 1.02 * OFFSET) / deviations).max() < 5.0
    assert session.collection.counts()['touched'] > 0


def test_three_data_sets_tell_the_matrix(three):
    session, _ = three
    found = session.outcome(DATE)
    assert found.offset is None and found.matrix.in_sensor_axes
    errors = (found.calibration.matrix - MATRIX) / found.matrix.deviations
    assert np.abs(errors).max() < 6.0
    # T section 5.4 reaches this.
    assert found.matrix.body.mass == pytest.approx(MASS, abs=0.05)
    assert found.calibration.provenance[0].method.startswith('live: matrix from added masses')


def test_loads_that_hung_in_another_order_are_doubted(rng, three):
    assert not errors_of(three[0])
    session, body = Session(plan(LOADS, rotation=np.eye(3))), TurnedBody(rng)
    for load in (LOADS[0], LOADS[2], LOADS[1]):
        go_through(session, body, load)
        session.close_step()
    assert errors_of(session)


def test_a_load_whose_centre_is_not_as_stated_is_doubted(rng):
    session, body = Session(plan(LOADS, rotation=np.eye(3))), TurnedBody(rng)
    for load in (*LOADS[:2], LOADS[2]._replace(centre=(0.0, 0.15, 0.1))):
        go_through(session, body, load)
        session.close_step()
    assert errors_of(session) == {'residual'}


def test_without_a_rotation_the_matrix_is_in_the_axes_of_the_accelerometer(rng):
    session, body = Session(plan(LOADS)), TurnedBody(rng, rotation=TILTED)
    turned = np.kron(np.eye(2), TILTED.T)
    for load in LOADS:
        # Where a load hangs is told in the accelerometer's axes.
        body.added, body.at = load.mass, tuple(TILTED @ load.centre)
        body.go_through(session.collection, POSES, 0.6)
        session.close_step()
    found = session.outcome(DATE)
    assert found.calibration.axes == 'accelerometer' == session.plan.wrench_axes
    np.testing.assert_allclose(found.matrix.body.centre, TILTED.T @ CENTRE, atol=5e-3)
    wrench = turned @ MATRIX
    errors = (found.calibration.matrix - wrench) / found.matrix.deviations
    assert np.abs(errors).max() < 6.0
    # With it, and centres in the sensor's axes, it is in those.
    known = Session(plan(tuple(
        load._replace(centre=tuple(TILTED @ load.centre)) for load in LOADS
    ), rotation=TILTED))  # fmt: skip
    known.collections = session.collections
    known.is_closed = True
    np.testing.assert_allclose(
        known.outcome(DATE).calibration.matrix, turned.T @ found.calibration.matrix, rtol=1e-6,
        atol=1e-9,
    )  # fmt: skip


def test_a_data_set_that_tells_nothing_stays_open(rng):
    session, body = Session(plan(LOADS)), TurnedBody(rng)
    body.go_through(session.collection, [POSES[0]] * 4)
    with pytest.raises(LogError):
        session.close_step()
    assert session.step == 0
    with pytest.raises(LogError):
        session.outcome(DATE)
    go_through(session, body, NOTHING)
    session.close_step()
    assert session.load is LOADS[1]
    session.restart_step()
    assert session.step == 1 and not session.collection.poses


def test_a_matrix_that_is_refused_can_be_had_with_a_further_load(rng, tmp_path):
    path, at = tmp_path / 'session.json', tuple(CENTRE + 0.1)
    loads = (NOTHING, Load('one', 0.5, at), Load('two', 1.0, at))
    session, body = Session(plan(loads)), TurnedBody(rng)
    for load in loads:
        go_through(session, body, load)
        session.close_step()
    session.save(path)
    more = Session.load_file(path, plan((*loads, LOADS[2])))
    assert not more.is_closed and more.step == 3 and more.load is LOADS[2]
    go_through(more, body, LOADS[2])
    more.close_step()
    assert more.outcome(DATE).matrix is not None


def test_a_session_goes_on_where_it_was_stopped(three, rng, tmp_path):
    session, _ = three
    path = tmp_path / 'session.json'
    whole = session.outcome(DATE).calibration
    session.save(path)
    again = Session.load_file(path, session.plan)
    assert again.is_closed
    np.testing.assert_array_equal(again.outcome(DATE).calibration.matrix, whole.matrix)
    np.testing.assert_array_equal(again.outcome(DATE).calibration.offset, whole.offset)
    for one, other in zip(session.collections, again.collections, strict=True):
        assert one.counts() == other.counts()
        assert one.received - one.pending == other.received

    begun, body = Session(plan(LOADS)), TurnedBody(rng)
    body.go_through(begun.collection, POSES[:13])
    begun.save(path)
    on = Session.load_file(path, begun.plan)
    body.go_through(on.collection, POSES[13:])
    on.close_step()
    assert on.step == 1


OTHER = {
    'sensor': lambda p: Plan('hand', p.gravity, p.loads),
    'gravity': lambda p: Plan(p.sensor, "IMU 'head' through 6 joints", p.loads),
    'loads': lambda p: Plan(p.sensor, p.gravity, (NOTHING, Load('far', 0.6, (0, 0, 0)), LOADS[2])),
    'rotation': lambda p: Plan(p.sensor, p.gravity, p.loads, rotation=np.eye(3)),
    'direction': lambda p: Plan(p.sensor, p.gravity, p.loads, direction=-1),
}


@pytest.mark.parametrize('what', OTHER)
def test_moments_of_something_else_are_not_mixed_in(tmp_path, what):
    path, begun = tmp_path / 'session.json', Session(plan(LOADS))
    begun.save(path)
    with pytest.raises(ConfigError):
        Session.load_file(path, OTHER[what](begun.plan))


def test_what_was_stated_wrong_is_restated(three, tmp_path):
    session, _ = three
    path = tmp_path / 'session.json'
    session.save(path)
    right = session.outcome(DATE).calibration
    wrong = plan((NOTHING, Load('far', 0.25, LOADS[1].centre), LOADS[2]), rotation=TILTED)
    with pytest.raises(ConfigError):
        Session.load_file(path, wrong)
    there = Session.load_file(path, wrong, restated=True)
    there.save(path)
    assert there.is_closed and errors_of(there)
    back = Session.load_file(path, session.plan, restated=True).outcome(DATE).calibration
    np.testing.assert_array_equal(back.matrix, right.matrix)
    # Readings of another accelerometer stay others, and each data set has a load.
    with pytest.raises(ConfigError):
        Session.load_file(path, Plan('foot', 'x', LOADS), restated=True)
    with pytest.raises(ConfigError):
        Session.load_file(path, plan(), restated=True)


def test_a_former_matrix_in_the_axes_of_an_accelerometer_is_no_doubt(three, tmp_path):
    session, _ = three
    A_Xf_S = np.kron(np.eye(2), TILTED.T)
    path = tmp_path / 'session.json'
    session.save(path)
    for axes in ('accelerometer', 'sensor'):
        before = SensorCalibration(A_Xf_S @ WORKSHOP.matrix, axes=axes)
        told = Plan('foot', "IMU 'foot'", LOADS, before=before, rotation=np.eye(3))
        assert bool(errors_of(Session.load_file(path, told))) == (axes == 'sensor')
        assert told.wrench_axes == 'sensor'
        # An offset stays in the axes of the matrix that it is found with.
        alone = Plan('foot', "IMU 'foot'", before=before, rotation=np.eye(3))
        assert alone.wrench_axes == axes


@pytest.mark.parametrize('damage', ['absent', 'text', 'list', 'version', 'sets', 'moment', 'nan'])
def test_a_damaged_file_is_refused(rng, tmp_path, damage):
    session = Session(plan(LOADS))
    TurnedBody(rng).go_through(session.collection, POSES[:2])
    path = tmp_path / 'session.json'
    session.save(path)
    content = json.loads(path.read_text())
    inner = content['ft_calibration_session']
    first = inner['data_sets'][0]['moments'][0]
    if damage == 'absent':
        path.unlink()
    elif damage == 'text':
        path.write_text('{')
    else:
        if damage == 'list':
            content = []
        elif damage == 'version':
            inner['version'] = 7
        elif damage == 'sets':
            inner['data_sets'] *= 4
        elif damage == 'moment':
            first.pop()
        else:
            first[5] = float('nan')
        path.write_text(json.dumps(content))
    with pytest.raises(ConfigError):
        Session.load_file(path, session.plan)


def test_plans_that_cannot_work_are_refused():
    with pytest.raises(CallError):
        plan(LOADS[:2])
    with pytest.raises(CallError):
        plan(LOADS[1:3])
    with pytest.raises(ConfigError):
        plan((NOTHING, LOADS[1], LOADS[1]))
    with pytest.raises(ConfigError):
        plan((Load('bad', -1.0),))
    with pytest.raises(ModelError):
        plan((Load('bad', 1.0, (0.0, 0.0, float('nan'))),))


@pytest.mark.parametrize('before', [None, SensorCalibration()])
def test_readings_that_are_wrenches_are_held_against_the_identity(rng, before):
    for hung in ((0, 1, 2), (0, 2, 1)):
        session = Session(Plan('foot', 'x', LOADS, before=before, rotation=np.eye(3)))
        body = TurnedBody(rng, matrix=np.eye(6))
        for k in hung:
            go_through(session, body, LOADS[k])
            session.close_step()
        assert bool(errors_of(session)) == (hung != (0, 1, 2))
