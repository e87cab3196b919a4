# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Classes, fields and pickling of the exceptions.

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


def test_shape_error_carries_the_shapes():
    error = ShapeError('ft_readings', (6, 6), (5, 6))
    assert (error.argument, error.expected, error.got) == ('ft_readings', (6, 6), (5, 6))


def test_unknown_name_lists_the_closest():
    known = ['head', 'r_hand', 'l_hand', 'l_foot', 'r_foot', 'chest']
    error = NameNotFound('frame', 'l_hnad', iter(known))
    assert 'l_hand' in str(error)
    assert (error.kind, error.name) == ('frame', 'l_hnad')
    assert closest_names('l_knee_joint', ['r_foot', 'l_knee'])[0] == 'l_knee'


def test_unknown_name_among_none():
    assert 'hand' in str(FrameNotFound('hand', []))


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
