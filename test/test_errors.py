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
    ConfigError,
    FrameNotFound,
    InertialEstimationError,
    LogError,
    ModelError,
    NameNotFound,
    ShapeError,
)

EXAMPLES = [
    (ModelError('no'), ValueError),
    (ConfigError('no'), ValueError),
    (LogError('no'), ValueError),
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
    message = str(NameNotFound('joint', 'zzzz', ['aa', 'bb', 'cc', 'dd']))
    assert message.endswith('closest: aa, bb, cc')


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
    ],
)
def test_errors_travel_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
