# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Classes, fields and pickling of the exceptions.

Not covered: when they are raised; the tests of every module do that.
"""

import pickle

import pytest

from inertial_estimation import errors
from inertial_estimation.errors import InertialEstimationError, closest_names, is_wrong_call

EXAMPLES = [
    (errors.ModelError('no'), ValueError),
    (errors.ConfigError('no'), ValueError),
    (errors.CallError('no'), ValueError),
    (errors.LogError('no'), ValueError),
    (errors.CalibrationError('no'), ValueError),
    (errors.OffsetsNotUnique('no', ('l_leg',)), ValueError),
    (errors.ShapeError('positions', (3,), (4,)), ValueError),
    (errors.NameNotFound('joint', 'elbw', ['elbow']), KeyError),
    (errors.FrameNotFound('foot', ['l_foot'], 'it is named', 'or leave it out'), KeyError),
]


def test_every_error_has_one_base_the_matching_builtin_and_travels():
    classes = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, InertialEstimationError)
    }
    assert classes - {InertialEstimationError} == {type(error) for error, _ in EXAMPLES}
    for error, builtin in EXAMPLES:
        assert isinstance(error, InertialEstimationError) and isinstance(error, builtin)
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_errors_carry_shapes_and_close_names():
    error = errors.ShapeError('ft_readings', (6, 6), (5, 6))
    assert (error.argument, error.expected, error.got) == ('ft_readings', (6, 6), (5, 6))
    error = errors.NameNotFound('frame', 'l_hnad', iter(['head', 'r_hand', 'l_hand', 'l_foot']))
    assert (error.kind, error.name) == ('frame', 'l_hnad') and 'l_hand' in str(error)
    assert closest_names('l_knee_joint', ['r_foot', 'l_knee'])[0] == 'l_knee'
    assert 'hand' in str(errors.FrameNotFound('hand', []))


@pytest.mark.parametrize(
    ('error', 'wrong'),
    [
        (errors.CallError('no'), True),
        (errors.ModelError("'weight' is -1", about=('weight',)), True),
        (errors.ModelError("'weight' is -1"), False),
        (errors.ModelError("'other' is -1", about=('other',)), False),
        (errors.ConfigError("'a.yaml' of 'weight' is of robot 'b'", about=('weight',)), False),
        (errors.CalibrationError("allow more 'weight'", about=('weight',)), False),
        (errors.NameNotFound('sensor', 'ft', ('hand',), "'weight' names 'ft'"), False),
    ],
)
def test_impossible_values_are_wrong_calls_and_data_are_not(error, wrong):
    assert is_wrong_call(error, {'weight': '--prior-weight'}) == wrong
