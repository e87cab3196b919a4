# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensor descriptions and how raw FT readings become wrenches.

Not covered: where sensors sit on a robot (test_robot.py), and how a calibration is found.
"""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.sensors import FtCalibration, FtSpec, LinkSensorSpec, read_only

# Six products of numbers up to 100.
ROUND_OFF = 1e-12


def test_read_only_copies():
    original = [[1, 2], [3, 4]]
    copy = read_only(original)
    assert copy.dtype == np.float64
    with pytest.raises(ValueError, match='read-only'):
        copy[0, 0] = 5.0
    array = np.zeros(3)
    read_only(array)
    array[0] = 1.0


@pytest.mark.parametrize(
    ('arguments', 'error'),
    [
        ({'frame': 'parent'}, ModelError),
        ({'frame': 'base'}, ModelError),
        ({'pose': np.diag([1.0, -1.0, -1.0, 1.0])}, ModelError),
        ({'frame': 'sensor', 'pose': np.full((4, 4), np.nan)}, ModelError),
        ({'frame': 'sensor', 'pose': np.eye(3)}, ShapeError),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(arguments, error):
    with pytest.raises(error):
        FtSpec('ft', 'joint', **arguments)


@pytest.mark.parametrize(
    ('arguments', 'error'),
    [
        ({'pose': np.eye(4)}, ModelError),
        ({'frame': 'hand', 'pose': np.full((4, 4), np.inf)}, ModelError),
        ({'frame': 'hand', 'pose': np.zeros(6)}, ShapeError),
    ],
)
def test_a_place_that_makes_no_sense_is_refused(arguments, error):
    with pytest.raises(error):
        LinkSensorSpec('acc', **arguments)


def test_identity_leaves_readings_as_they_are(rng):
    raw = rng.normal(size=(4, 3, 6))
    np.testing.assert_array_equal(FtCalibration.identity(3).apply(raw), raw)


@pytest.mark.parametrize('lead', [(), (5,), (2, 3)])
@pytest.mark.parametrize('with_matrix', [False, True])
def test_matrix_first_then_offset(rng, lead, with_matrix):
    matrices = rng.normal(size=(2, 6, 6)) if with_matrix else np.tile(np.eye(6), (2, 1, 1))
    offsets = rng.normal(size=(2, 6))
    raw = rng.normal(0.0, 10.0, (*lead, 2, 6))
    wrenches = FtCalibration(matrices, offsets).apply(raw)
    assert wrenches.shape == raw.shape
    for index in np.ndindex(*lead, 2):
        expected = matrices[index[-1]] @ raw[index] - offsets[index[-1]]
        np.testing.assert_allclose(wrenches[index], expected, rtol=0, atol=ROUND_OFF)


def test_the_readings_are_not_written_to(rng):
    raw = rng.normal(size=(2, 6))
    raw.flags.writeable = False
    FtCalibration.identity(2).apply(raw)[:] = 0.0


def test_a_calibration_keeps_its_own_numbers():
    offsets = np.zeros((1, 6))
    calibration = FtCalibration(np.eye(6)[None], offsets)
    offsets[:] = 7.0
    np.testing.assert_array_equal(calibration.offsets, np.zeros((1, 6)))
    assert not calibration.offsets.flags.writeable
    assert not calibration.matrices.flags.writeable


@pytest.mark.parametrize(
    ('matrices', 'offsets', 'name'),
    [
        (np.zeros((2, 6, 6)), np.zeros((3, 6)), 'matrices'),
        (np.zeros((3, 6, 5)), np.zeros((3, 6)), 'matrices'),
        (np.zeros((3, 6, 6)), np.zeros((3, 5)), 'offsets'),
    ],
)
def test_wrong_shapes_are_named(matrices, offsets, name):
    with pytest.raises(ShapeError):
        FtCalibration(matrices, offsets)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_numbers_that_would_spoil_every_estimate_are_refused(bad):
    matrices, offsets = np.eye(6)[None], np.zeros((1, 6))
    with pytest.raises(ModelError):
        FtCalibration(matrices, offsets + bad)
    with pytest.raises(ModelError):
        FtCalibration(np.full((1, 6, 6), bad), offsets)


def test_no_sensors_at_all():
    calibration = FtCalibration.identity(0)
    assert calibration.apply(np.zeros((0, 6))).shape == (0, 6)
    assert calibration.apply(np.zeros((4, 0, 6))).shape == (4, 0, 6)
