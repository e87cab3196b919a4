# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors say arguments as the caller knows them, and leave what the caller gave as it is."""

import pickle

import pytest

from inertial_estimation.errors import (
    ModelError,
    NameNotFound,
    OffsetsNotUnique,
    ShapeError,
)

OPTIONS = {'weight': '--prior-weight', 'ft': '--ft', 'accept_split': '--accept-split'}
SAID = [
    (ModelError("'weight' is -1", about=('weight',)), '--prior-weight is -1'),
    (ModelError('weight is -1', about=('weight',)), '--prior-weight is -1'),
    (ModelError("'weight' is -1"), "'weight' is -1"),
    (ModelError("'other' is -1", about=('other',)), "'other' is -1"),
    (ModelError("a 'weight' is in frame 'weight'", about=('weight',)),
     "a --prior-weight is in frame 'weight'"),
    (ShapeError('weight', (3,), (2,)), '--prior-weight has shape (2,), expected (3,)'),
    (NameNotFound('sensor', 'ft', ('hand',), "'ft' names 'ft'"),
     "--ft names 'ft', but no sensor is named 'ft'; there is hand"),
    (NameNotFound('sensor', 'ft', ('hand',)), "no sensor is named 'ft'; there is hand"),
    (OffsetsNotUnique("accept it ('accept_split')", ('a',)), 'accept it (--accept-split)'),
]  # fmt: skip


@pytest.mark.parametrize(('error', 'said'), SAID)
def test_arguments_are_called_as_the_caller_knows_them(error, said):
    plain = str(error)
    assert error.said_with(OPTIONS) == said
    assert error.said_with({}) == plain == str(error)
    # Other processes get errors in pieces.
    assert pickle.loads(pickle.dumps(error)).said_with(OPTIONS) == said
