# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the exceptions say and what they can be caught as.

Not covered: when they are raised; every module's tests do that.
"""

import pickle

import pytest

from inertial_estimation import errors
from inertial_estimation.errors import (
    CalibrationError,
    CallError,
    ConfigError,
    FrameNotFound,
    InertialEstimationError,
    LogError,
    ModelError,
    NameNotFound,
    OffsetsNotUnique,
    ShapeError,
    closest_names,
    is_wrong_call,
)

EXAMPLES = [
    (ModelError('no'), ValueError),
    (ConfigError('no'), ValueError),
    (CallError('no'), ValueError),
    (LogError('no'), ValueError),
    (CalibrationError('no'), ValueError),
    (OffsetsNotUnique('no', ('l_leg',)), ValueError),
    (ShapeError('positions', (3,), (4,)), ValueError),
    (NameNotFound('joint', 'elbw', ['elbow']), KeyError),
    (FrameNotFound('hnd', ['hand']), KeyError),
]


def test_every_error_of_the_package_is_an_example():
    classes = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, InertialEstimationError)
    }
    assert classes - {InertialEstimationError} == {type(error) for error, _ in EXAMPLES}


@pytest.mark.parametrize(('error', 'builtin'), EXAMPLES)
def test_one_base_and_the_matching_builtin(error, builtin):
    assert isinstance(error, InertialEstimationError)
    assert isinstance(error, builtin)


def test_shapes_are_told():
    error = ShapeError('ft_readings', (6, 6), (5, 6))
    assert str(error) == "'ft_readings' has shape (5, 6), expected (6, 6)"
    assert (error.argument, error.expected, error.got) == ('ft_readings', (6, 6), (5, 6))


def test_the_closest_names_come_first():
    known = ['head', 'r_hand', 'l_hand', 'l_foot', 'r_foot', 'chest']
    error = NameNotFound('frame', 'l_hnad', known)
    message = str(error)
    assert message.startswith("no frame is named 'l_hnad'; closest: l_hand")
    assert (error.kind, error.name) == ('frame', 'l_hnad')
    assert len(message.split('closest: ')[1].split(', ')) <= 3


def test_the_message_has_no_quotes_around_it():
    assert not str(NameNotFound('joint', 'x', ['a'])).startswith(("'", '"'))


def test_where_nothing_is_close_some_names_are_shown():
    """As such: names that have nothing in common are not called close."""
    known = ['aa', 'bb', 'cc', 'dd']
    assert str(NameNotFound('joint', 'zzzz', known)).endswith('; there are aa, bb, cc and 1 more')
    assert str(NameNotFound('joint', 'zzzz', known[:2])).endswith('; there are aa, bb')
    assert str(NameNotFound('joint', 'zzzz', known[:1])).endswith('; there is aa')


@pytest.mark.parametrize(
    ('name', 'closest'),
    [
        ('left_foot', 'l_foot'),
        ('foot_left', 'l_foot'),
        ('L_SOLE', 'l_sole'),
        ('LeftSole', 'l_sole'),
        ('lsole', 'l_sole'),
        ('l_knee_joint', 'l_knee'),
        ('r_knee_link', 'r_knee'),
        ('torso', 'torso_yaw'),
        ('imu', 'imu_frame'),
        ('imu_0', 'head_imu_0'),
        ('upperarm', 'l_upper_arm'),
        ('hip', 'l_hip_yaw'),
    ],
)
def test_parts_of_names_count_in_any_order(name, closest):
    """As people misremember them: sides written out, words swapped, cases, what it is behind."""
    known = ['l_sole_skin_0_fixed_joint', 'r_foot', 'l_foot', 'l_foot_ft', 'l_sole', 'r_sole',
             'r_knee', 'l_knee', 'torso_yaw', 'head_imu_0', 'imu_frame', 'l_upper_arm',
             'l_hip_yaw', 'base_link_fixed_joint']  # fmt: skip
    assert closest_names(name, known)[0] == closest


def test_who_asked_and_what_helps_stand_around_it():
    error = FrameNotFound('hed', ['head'], "'imus' names it", 'or do without')
    assert (
        str(error) == "'imus' names it, but no frame is named 'hed'; closest: head; or do without"
    )


def test_where_there_is_nothing_at_all():
    assert str(FrameNotFound('hand', [])) == "no frame is named 'hand'; there are none"


def test_names_may_come_from_an_iterator():
    assert 'closest: hand' in str(FrameNotFound('hnd', iter(['hand', 'foot'])))


@pytest.mark.parametrize(
    'error',
    [
        ShapeError('positions', (3,), (4,)),
        NameNotFound('joint', 'knee', ['l_knee', 'r_knee']),
        FrameNotFound('foot', ['l_foot']),
        FrameNotFound('foot', ['l_foot'], 'it is named', 'or leave it out'),
    ],
)
def test_errors_travel_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    ('error', 'wrong'),
    [
        (CallError('no'), True),
        (ModelError("'weight' is -1", about=('weight',)), True),
        (ModelError("'weight' is -1"), False),
        (ModelError("'other' is -1", about=('other',)), False),
        (ConfigError("'a.yaml' of 'weight' is of robot 'b'", about=('weight',)), False),
        (CalibrationError("allow more 'weight'", about=('weight',)), False),
        (NameNotFound('sensor', 'ft', ('hand',), "'weight' names 'ft'"), False),
    ],
)
def test_values_that_make_no_sense_are_wrong_calls_and_data_are_not(error, wrong):
    assert is_wrong_call(error, {'weight': '--prior-weight'}) == wrong
