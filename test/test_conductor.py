# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a session asks for next, and when it goes on by itself.

Not covered: what data sets tell, in `test_session`; keys and topics, in
`ros/test_calibration_session`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hanging_body import GRAVITY, MATRIX
from pinocchio.rpy import rpyToMatrix
from turned_body import TurnedBody

from inertial_estimation.calibration.accelerometer import TOUCHED
from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.collection import CONTACT, DIRECTIONS, JOINTS, Wanted
from inertial_estimation.calibration.conductor import PAUSES, Conductor, Phase
from inertial_estimation.calibration.session import NOTHING, Load, Plan, Session

LOADS = (NOTHING, Load('far', 0.5, (0.3, -0.05, 0.1)), Load('side', 0.5, (0.0, 0.2, 0.1)))
DOWN = np.array([0.0, 0.0, -GRAVITY])


def plan(loads=LOADS):
    return Plan('foot', 'x', loads, before=SensorCalibration(MATRIX), rotation=np.eye(3))


def hold(conductor, body, gravity, seconds=1.0, disturbance='', now=0.0):
    """Hold a pose."""
    for one in body.readings(gravity, round(100 * seconds)):
        conductor.take(Reading(*one, disturbance), now)


def turn(conductor, body):
    """Turn the body fast."""
    body.stamp_ns += 10_000_000
    conductor.take(Reading(body.stamp_ns, np.zeros(6), 15 * np.eye(3)[0], np.ones(3)), 0.0)


def go_through(conductor, body, poses=GRAVITY * DIRECTIONS):
    """Go through poses until the data set is closed."""
    for gravity in poses:
        turn(conductor, body)
        hold(conductor, body, gravity, 0.8)
        conductor.look(0.0)
        if conductor.phase is not Phase.COLLECTING:
            return


@pytest.mark.parametrize(
    ('rotation', 'axes'),
    [(None, 'accelerometer'), (np.eye(3), 'sensor'), (rpyToMatrix(0.3, -0.5, 1.2), 'sensor')],
)
def test_loads_are_asked_for_in_the_axes_that_the_fit_takes_them_in(rotation, axes):
    asked = Plan('foot', 'x', (*LOADS[1:], NOTHING), rotation=rotation)
    assert f'in the axes of the {axes}' in Conductor(Session(asked)).instruction(0.0)


def test_a_session_goes_from_load_to_load(rng):
    conductor, body = Conductor(Session(plan())), TurnedBody(rng)
    assert conductor.phase is Phase.COLLECTING
    for k, load in enumerate(LOADS):
        if k:
            assert conductor.phase is Phase.LOADING
            assert f"'{load.name}'" in conductor.instruction(0.0)
            # What comes meanwhile does not count.
            hold(conductor, body, DOWN)
            assert conductor.session.collection.received == 0
            assert conductor.look(1e6) is False and conductor.phase is Phase.LOADING
            assert conductor.proceed() is True
        body.added, body.at = load.mass, load.centre
        go_through(conductor, body)
    assert conductor.phase is Phase.DONE and conductor.session.is_closed
    assert conductor.instruction(0.0) == 'done'
    assert len(conductor.notes) == 7


def test_unattended_loads_hang_after_a_while(rng):
    conductor, body = Conductor(Session(plan()), 5.0), TurnedBody(rng)
    go_through(conductor, body)
    assert conductor.phase is Phase.LOADING
    assert 'Enter' not in conductor.instruction(0.0)
    assert conductor.look(100.0) is False
    assert conductor.look(104.9) is False and conductor.phase is Phase.LOADING
    assert conductor.look(105.0) is True and conductor.phase is Phase.COLLECTING


def test_the_first_load_is_asked_for_unless_there_is_none():
    assert Conductor(Session(plan((NOTHING,)))).phase is Phase.COLLECTING
    heavy = Conductor(Session(plan(LOADS[1:] + LOADS[:1])))
    assert heavy.phase is Phase.LOADING
    body = TurnedBody(np.random.default_rng(0))
    heavy.proceed()
    body.added, body.at = LOADS[1][1:]
    go_through(heavy, body)
    heavy.proceed()
    body.added, body.at = LOADS[2][1:]
    go_through(heavy, body)
    assert 'remove' in heavy.instruction(0.0)


def test_a_person_may_close_a_data_set_that_is_not_enough(rng):
    conductor, body = Conductor(Session(plan())), TurnedBody(rng)
    axes = GRAVITY * np.vstack([np.eye(3), -np.eye(3)])
    go_through(conductor, body, axes)
    assert conductor.phase is Phase.COLLECTING
    conductor.proceed()
    assert conductor.phase is Phase.COLLECTING
    conductor.proceed()
    assert conductor.phase is Phase.LOADING


@pytest.mark.parametrize('why', [CONTACT, JOINTS, 'another reason'])
def test_a_pause_is_said_with_its_reason(rng, why):
    conductor, body = Conductor(Session(plan())), TurnedBody(rng)
    hold(conductor, body, DOWN, disturbance=why)
    assert conductor.instruction(0.0) == PAUSES.get(why, 'paused: another reason')
    hold(conductor, body, DOWN)
    said = conductor.instruction(0.0)
    assert said.startswith('turn the body so that ') and 'of the sensor points down' in said


def test_a_touch_is_said_until_the_body_is_turned(rng):
    conductor, body = (
        Conductor(Session(replace(plan(), wanted=Wanted(poses=500)))),
        TurnedBody(rng),
    )
    go_through(conductor, body)
    body.touch = np.array([6.0, 0.0, 0.0, 0.0, 0.6, 0.0])
    hold(conductor, body, DOWN, 0.4)
    assert conductor.instruction(0.0) == PAUSES[TOUCHED]
    turn(conductor, body)
    assert conductor.instruction(0.0) not in PAUSES.values()


def test_silence_is_said(rng):
    conductor, body = Conductor(Session(plan())), TurnedBody(rng)
    assert 'no readings' in conductor.instruction(0.0)
    hold(conductor, body, DOWN, now=10.0)
    assert 'no readings' not in conductor.instruction(10.5)
    assert 'no readings' in conductor.instruction(11.5)


def test_a_channel_that_never_changes_is_said_while_the_body_is_turned(rng):
    conductor, body = Conductor(Session(plan())), TurnedBody(rng)
    for k, gravity in enumerate(GRAVITY * DIRECTIONS):
        turn(conductor, body)
        for stamp, raw, *others in body.readings(gravity, 80):
            raw[1] = 3.0
            conductor.take(Reading(stamp, raw, *others, ''), 0.0)
        if not k:
            assert 'never changes' not in conductor.instruction(0.0)
    assert 'channel 2 (fy)' in conductor.instruction(0.0)
    conductor.proceed()
    assert 'channel 2 (fy)' in conductor.notes[-1]
