# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
F12: a peer can tell that its model is still, and does not look when it calibrates.

Each sign of motion is tried alone; what spoils the readings then must not reach the offsets. Not
covered: how still a real robot stands (test_calibrate_offsets.py).
"""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from standing_biped import biped, standing

from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.still_samples import Stillness
from inertial_estimation.errors import CalibrationError, ConfigError, ModelError, ShapeError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9
MS = 1_000_000
N, FIRST, LAST = 300, 100, 130
"""Instants 10 ms apart, and which of them are disturbance."""
SETTLE = 30
"""Instants before and after that count as well: 0.3 s."""
QUIET = np.zeros(5, dtype=bool)
"""No sensor has noise, so that a channel that never changes is none that is dead."""


@pytest.fixture
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


def disturbed(samples, name, values):
    """Return samples of which some hold other values, and readings that are wrong then."""
    fields = {key: getattr(samples, key).copy() for key in (name, 'ft_readings')}
    fields['ft_readings'][FIRST:LAST] += 50.0
    fields[name][FIRST:LAST] = values
    return replace(samples, **fields)


MOVES = {
    "joint 'l_knee'": ('velocities', [0.0, 0.0, 0.5, 0.0, 0.0]),
    "IMU 'root' turning": ('angular_velocities', [[0.0, 0.3, 0.0]]),
    "IMU 'root' accelerating": ('proper_accelerations', [[0.0, 1.0, 10.5]]),
}


@pytest.mark.parametrize('sign', MOVES)
def test_f12_what_moves_is_left_out_and_counted(robot, samples, offsets, sign):
    name, values = MOVES[sign]
    names = list(robot.joint_names)
    if name == 'velocities':
        values = [0.5 * (joint == 'l_knee') for joint in names]
    moved = disturbed(samples, name, values)
    limits = Stillness(force_spread=inf, moment_spread=inf)
    found = offset_from_model(WrenchEstimator(robot), moved, ['l_sole'], stillness=limits)
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out['moving'] == LAST - FIRST + 2 * SETTLE
    np.testing.assert_array_equal(found.n_samples, N - found.left_out['moving'])


def test_f12_readings_that_shake_are_no_rest(robot, samples, offsets, rng):
    shaken = samples.ft_readings.copy()
    shaken[FIRST:LAST, 1, 2] += 50.0 * rng.normal(size=LAST - FIRST)
    found = offset_from_model(
        WrenchEstimator(robot), replace(samples, ft_readings=shaken), ['l_sole'], noisy=QUIET
    )
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)


def test_a_touch_that_comes_and_goes_is_left_out(robot, samples, offsets):
    # A push is slow enough for no spread: within 0.2 s it changes by a few newtons only.
    ramp = np.interp(np.arange(N), [80, 120, 140, 180], [0.0, 25.0, 25.0, 0.0])
    touched = samples.ft_readings.copy()
    touched[:, 4, 2] += ramp
    found = offset_from_model(
        WrenchEstimator(robot), replace(samples, ft_readings=touched), ['l_sole'], noisy=QUIET
    )
    assert found.left_out['touched'] > 90 and found.left_out['moving'] == 0
    # What is below the limit of 1 % of the weight remains, for a few instants.
    np.testing.assert_allclose(found.offsets, offsets, atol=0.1)


def test_what_a_skin_feels_is_left_out(robot, samples, offsets):
    felt = np.zeros(N, dtype=bool)
    felt[50:250] = True
    touched = samples.ft_readings.copy()
    touched[felt, 4] += [5.0, 5.0, 5.0, 0.5, 0.5, 0.5]
    touched = replace(samples, ft_readings=touched)
    estimator = WrenchEstimator(robot)
    found = offset_from_model(estimator, touched, ['l_sole'], felt=felt)
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out == {'touched': 200, 'moving': 0, 'momentum': 0, 'missing': 0}
    with pytest.raises(ShapeError):
        offset_from_model(estimator, touched, ['l_sole'], felt=felt[:7])


def test_too_few_still_instants_are_refused_with_the_reason(robot, samples):
    velocities = samples.velocities.copy()
    velocities[:, robot.joint_names.index('l_knee')] = 0.5
    with pytest.raises(CalibrationError, match='l_knee'):
        offset_from_model(
            WrenchEstimator(robot), replace(samples, velocities=velocities), ['l_sole']
        )


def test_motion_may_be_trusted_to_the_model(robot, samples, offsets):
    velocities = samples.velocities.copy()
    velocities[:, 0] = 1e-3
    moved = replace(samples, velocities=velocities)
    limits = Stillness(joint_velocity=1e-4)
    with pytest.raises(CalibrationError):
        offset_from_model(WrenchEstimator(robot), moved, ['l_sole'], stillness=limits)
    for stillness in (None, Stillness.none()):
        found = offset_from_model(WrenchEstimator(robot), moved, ['l_sole'], stillness=stillness)
        # 1e-3 rad/s squared on a few kilograms a metre away.
        np.testing.assert_allclose(found.offsets, offsets, atol=1e-4)


def swinging(robot, told):
    """Return a swing of all joints whose accelerations are told to some share."""
    n = len(robot.joint_names)
    t = 0.01 * np.arange(300)[:, None] + np.zeros(n)
    w = 2.0 * np.pi
    none = np.empty((300, 0, 3))
    return SampleBatch(
        (1e9 * t[:, 0]).astype(np.int64) + 1,
        0.5 * np.sin(w * t), 0.5 * w * np.cos(w * t), -told * 0.5 * w * w * np.sin(w * t),
        none, none, none, np.zeros((300, len(robot.ft_sensors), 6)),
    )  # fmt: skip


@pytest.mark.parametrize(('told', 'contradicted'), [(1.0, False), (0.0, True)])
def test_accelerations_that_the_momentum_contradicts_are_found(told, contradicted):
    robot = biped(fixed_link='root', imus=[])
    samples = swinging(robot, told)
    found = offset_from_model(
        WrenchEstimator(robot), samples, ['root'], min_samples=1,
        stillness=replace(Stillness.none(), momentum=0.005),
    )  # fmt: skip
    assert (found.left_out['momentum'] > 0) == contradicted


def test_what_is_no_limit_or_no_order_is_refused(robot, samples):
    with pytest.raises(ConfigError):
        Stillness(joint_velocity=-1.0)
    assert Stillness.none().angular_velocity == inf
    with pytest.raises(CalibrationError):
        offset_from_model(WrenchEstimator(robot), samples.take(slice(0, 0)), ['l_sole'])
    back = replace(samples, stamp_ns=samples.stamp_ns[::-1].copy())
    with pytest.raises(ModelError):
        offset_from_model(WrenchEstimator(robot), back, ['l_sole'])
