# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motion, touches and recording of samples for offsets from the model.

Each sign of motion is tried alone; the readings are wrong then, which must not reach the offsets.
"""

from dataclasses import replace

import numpy as np
import pytest
from standing_biped import biped, standing

from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.tare import MAX_SAMPLES, TareRecorder
from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9
MS = 1_000_000
N, FIRST, LAST = 300, 100, 130
"""Samples 10 ms apart, and those that are disturbed."""
SETTLE = 30
"""Samples before and after that count as well: 0.3 s."""


@pytest.fixture(scope='module')
def robot():
    return biped()


@pytest.fixture
def offsets(rng):
    return rng.normal(0.0, 10.0, (5, 6))


@pytest.fixture
def samples(robot, rng, offsets):
    shot = standing(robot, rng.uniform(-0.8, 0.8, len(robot.joint_names)), {'l_sole': 1.0})
    shot = shot._replace(ft_readings=shot.ft_readings + offsets)
    return SampleBatch.stack([shot._replace(stamp_ns=(k + 1) * 10 * MS) for k in range(N)])


@pytest.mark.parametrize(
    ('name', 'values'),
    [
        ('velocities', 0.5),
        ('angular_velocities', [[0.0, 0.3, 0.0]]),
        ('proper_accelerations', [[0.0, 1.0, 10.5]]),
    ],
)
def test_f12_motion_is_left_out_and_counted(robot, samples, offsets, name, values):
    """Fault F12: a peer knows whether its model is still, and does not look when it calibrates."""
    fields = {key: getattr(samples, key).copy() for key in (name, 'ft_readings')}
    # Wrong readings, whose own step is too small to be taken for a motion.
    fields['ft_readings'][FIRST:LAST] += 0.8
    if name == 'velocities':
        values = values * (np.array(robot.joint_names) == 'l_knee')
    fields[name][FIRST:LAST] = values
    found = offset_from_model(WrenchEstimator(robot), replace(samples, **fields), ['l_sole'])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out['moving'] == LAST - FIRST + 2 * SETTLE
    np.testing.assert_array_equal(found.n_samples, N - found.left_out['moving'])


def test_vibrations_and_slow_touches_are_left_out(robot, samples, offsets, rng):
    estimator = WrenchEstimator(robot)
    shaken, touched = samples.ft_readings.copy(), samples.ft_readings.copy()
    shaken[FIRST:LAST, 1, 2] += 50.0 * rng.normal(size=LAST - FIRST)
    # Slow enough to spread little within 0.2 s.
    touched[:, 4, 2] += np.interp(np.arange(N), [80, 120, 140, 180], [0.0, 25.0, 25.0, 0.0])
    for readings, tolerance, reason in ((shaken, EXACT, 'moving'), (touched, 0.1, 'touched')):
        given = replace(samples, ft_readings=readings)
        found = offset_from_model(estimator, given, ['l_sole'], noisy=False)
        # A touch below 1 % of the weight remains.
        np.testing.assert_allclose(found.offsets, offsets, atol=tolerance)
        assert found.left_out[reason] > 80
        assert sum(found.left_out.values()) == found.left_out[reason]


def test_reported_touches_are_left_out(robot, samples, offsets):
    felt = np.abs(np.arange(N) - 149.5) < 100
    samples.ft_readings[felt, 4] += 5.0
    found = offset_from_model(WrenchEstimator(robot), samples, ['l_sole'], felt=felt, noisy=False)
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out['touched'] == 200


def test_motion_in_all_samples_is_refused_unless_accepted(robot, samples, offsets):
    velocities = samples.velocities.copy()
    velocities[:, 0] = 0.11
    moved, estimator = replace(samples, velocities=velocities), WrenchEstimator(robot)
    with pytest.raises(CalibrationError) as caught:
        offset_from_model(estimator, moved, ['l_sole'])
    assert robot.joint_names[0] in str(caught.value)
    found = offset_from_model(estimator, moved, ['l_sole'], moving=True)
    # 0.11 rad/s squared on a few kilograms a metre away.
    np.testing.assert_allclose(found.offsets, offsets, atol=0.1)


HAND = (Contact('hand'),)


def test_many_samples_are_thinned_and_no_touch_is_lost(robot, samples):
    recorder, shot = TareRecorder(robot, ['l_sole'], 10.0), samples[0]
    for k in range(10_001):
        is_over = recorder.add(shot._replace(stamp_ns=10**12 + k * MS), HAND if k == 105 else ())
        assert is_over == (k == 10_000)
    assert recorder.done == 1.0
    found, felt = recorder.recorded()
    assert MAX_SAMPLES <= len(found) <= MAX_SAMPLES + 1
    assert (np.diff(found.stamp_ns) == 10 * MS).all()
    assert np.flatnonzero(felt).tolist() == [11] and recorder.touched == {'hand'}
