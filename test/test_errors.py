# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Classes and pickling of the exceptions, and which of them are wrong calls."""

import pickle

import pytest

from inertial_estimation import errors
from inertial_estimation.errors import InertialEstimationError, is_wrong_call

EXAMPLES = [
    errors.ModelError('no'),
    errors.ConfigError('no'),
    errors.CallError('no'),
    errors.LogError('no'),
    errors.CalibrationError('no'),
    errors.OffsetsNotUnique('no', ('l_leg',)),
    errors.ShapeError('positions', (3,), (4,)),
    errors.NameNotFound('joint', 'elbw', ['elbow'], 'it is named'),
]


def test_errors_have_one_base_a_matching_builtin_and_pickle():
    classes = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, InertialEstimationError)
    }
    assert classes - {InertialEstimationError} == set(map(type, EXAMPLES))
    for error in EXAMPLES:
        assert isinstance(error, ValueError | KeyError)
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


@pytest.mark.parametrize(
    ('error', 'wrong'),
    [
        (errors.CallError('no'), True),
        (errors.ModelError("'weight' is -1", about=('weight',)), True),
        (errors.ModelError("'weight' is -1"), False),
        (errors.CalibrationError("allow more 'weight'", about=('weight',)), False),
    ],
)
def test_impossible_values_are_wrong_calls_and_data_are_not(error, wrong):
    assert is_wrong_call(error, {'weight': '--prior-weight'}) == wrong
