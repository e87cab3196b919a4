# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples that are collected for a tare, and what is said of the offsets that they tell.

How offsets are found is in `test_supported_offsets.py`, the node in `ros/test_taring.py`.
"""

from dataclasses import fields

import numpy as np
import pytest
from standing_biped import biped, standing

from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.offset_from_model import METHOD, offset_from_model
from inertial_estimation.calibration.tare_recorder import (
    MAX_SAMPLES,
    TareRecorder,
    stack_recorded,
)
from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import finding
from inertial_estimation.sample import SampleBatch

MS = 1_000_000
START = 10**12
HAND, SOLE = (Contact('hand'),), (Contact('l_sole'),)


@pytest.fixture(scope='module')
def robot():
    return biped()


@pytest.fixture(scope='module')
def shot(robot):
    return standing(robot, np.full(len(robot.joint_names), 0.2), {'l_sole': 1.0})


def later(shot, k, rng, step=10 * MS):
    """Return the k-th sample, with a reading of its own."""
    noise = 0.1 * rng.normal(size=shot.ft_readings.shape)
    return shot._replace(stamp_ns=START + k * step, ft_readings=shot.ft_readings + noise)


def collect(collecting, samples, touches=()):
    """Give samples until the time is over; return those that were taken."""
    taken = []
    for sample in samples:
        taken.append(sample)
        if collecting.add(sample, touches):
            return taken
    return taken


def test_what_is_kept_is_what_was_given(robot, shot, rng):
    samples = [later(shot, k, rng) for k in range(500)]
    collecting = TareRecorder(robot, ['l_sole'], 4.0)
    taken = collect(collecting, samples)
    assert len(taken) == collecting.count == 401 and collecting.done == 1.0
    expected = SampleBatch.stack(taken)
    for field in fields(SampleBatch):
        found, wanted = getattr(collecting.samples, field.name), getattr(expected, field.name)
        assert (found is None) is (wanted is None)
        np.testing.assert_array_equal(found, wanted)
    assert not any(collecting.felt)


def test_a_field_that_one_sample_lacks_is_dropped(robot, shot, rng):
    collecting = TareRecorder(robot, ['l_sole'], 4.0)
    warm = np.full(5, 20.0)
    for k, temperatures in enumerate((warm, warm, None, warm)):
        collecting.add(later(shot, k, rng)._replace(ft_temperatures=temperatures), ())
    assert collecting.samples.ft_temperatures is None
    other = TareRecorder(robot, ['l_sole'], 4.0)
    other.add(later(shot, 9, rng)._replace(ft_temperatures=warm), HAND)
    np.testing.assert_array_equal(other.samples.ft_temperatures, [warm])
    samples, felt = stack_recorded([collecting, other])
    assert len(samples) == 5 and samples.ft_temperatures is None
    np.testing.assert_array_equal(felt, [False] * 4 + [True])


def test_many_samples_are_thinned_and_no_touch_is_lost(robot, shot, rng):
    collecting = TareRecorder(robot, ['l_sole'], 10.0)
    for k in range(10_001):
        collecting.add(shot._replace(stamp_ns=START + k * MS), HAND if k == 105 else ())
    assert MAX_SAMPLES <= collecting.count <= MAX_SAMPLES + 1
    stamps = collecting.samples.stamp_ns
    assert (np.diff(stamps) == 10 * MS).all()
    assert np.flatnonzero(collecting.felt).tolist() == [11] and collecting.touched == {'hand'}


def test_touches_of_supports_do_not_count(robot, shot, rng):
    collecting = TareRecorder(robot, ['l_foot', 'r_sole'], 1.0, refuse_touched=True)
    collecting.add(later(shot, 0, rng), (Contact('l_foot'),))
    assert not collecting.touched
    with pytest.raises(CalibrationError):
        collecting.add(later(shot, 1, rng), HAND)


def test_time_that_is_set_back_ends_it(robot, shot, rng):
    collecting = TareRecorder(robot, ['l_sole'], 1.0)
    collecting.add(later(shot, 1, rng), ())
    with pytest.raises(CalibrationError):
        collecting.add(later(shot, 0, rng), ())


def test_what_is_found_says_where_it_came_from(robot, shot, rng):
    collecting = TareRecorder(robot, ['l_sole'], 1.0)
    collect(collecting, [later(shot, k, rng) for k in range(101)])
    samples, felt = stack_recorded([collecting])
    found = offset_from_model(
        WrenchEstimator(robot), samples, ['l_sole'], sensors=['arm'], felt=felt
    )
    workshop = Provenance('workshop', '2020-01-01')
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    before = {
        name: SensorCalibration(matrix=2.0 * np.eye(6), provenance=(workshop,)) for name in names
    }
    changed = found.calibrations(
        before, '2026-11-22', [finding('residual', 'foot', what='a', share=0.6)]
    )
    assert tuple(changed) == ('arm',)
    step = changed['arm'].provenance[-1]
    assert step.method == f'{METHOD}, one support: l_sole' and step.n_samples == 101
    assert len(step.notes) == 1
    np.testing.assert_array_equal(changed['arm'].offset, found.offsets[names.index('arm')])
    np.testing.assert_array_equal(changed['arm'].matrix, 2.0 * np.eye(6))
    # The next tare takes the place of this one, not of what the matrix came from.
    again = found.calibrations(before | changed, 'later')
    assert [one.method for one in again['arm'].provenance] == [workshop.method, step.method]
