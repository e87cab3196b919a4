# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of joints and IMUs behind a filter: against the filters themselves.

Not covered: what the noise does to estimates (test_uncertainty.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, ShapeError
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.derivatives import SavitzkyGolayFilter
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    covariance_root,
    filter_weights,
    imu_covariance,
    joint_covariance,
)

RATE, LAG, DEVIATION = 500.0, 10, 2e-4
# Standard deviations from 4000 independent channels err by 1.1 %; correlations by twice that.
CHANNELS, SAMPLED = 4000, 0.09
# Weights of a filter that forgets gradually, cut off.
CUT = 3e-3
FILTERS = {
    'savitzky_golay': lambda n, delay: SavitzkyGolayFilter(n, 0.1, 3),
    'kalman': lambda n, delay: KalmanFilter(n, DEVIATION, 3.0, delay),
    'adaptive_window': lambda n, delay: AdaptiveWindowFilter(n, 0.1, 5.0 * DEVIATION),
}


@pytest.mark.parametrize(
    ('name', 'lag', 'smooth'),
    [
        ('savitzky_golay', 0, True),
        ('savitzky_golay', LAG, False),
        ('kalman', LAG, True),
        ('adaptive_window', 0, False),
    ],
)
def test_noise_is_that_of_the_filter(name, lag, smooth, rng):
    delay = lag / RATE
    weights = filter_weights(FILTERS[name](1, delay), RATE, delay=delay, smooth=smooth)
    covariance = joint_covariance(DEVIATION, weights)
    noise = rng.normal(0.0, DEVIATION, (256, CHANNELS))
    differentiator = FILTERS[name](CHANNELS, delay)
    for k, row in enumerate(noise):
        differentiator.append(round((k + 1) * 1e9 / RATE), row)
    signals = np.array(differentiator.evaluate_at(round((len(noise) - lag) * 1e9 / RATE)))
    if not smooth:
        signals[0] = noise[-1 - lag]
    size = np.sqrt(np.diag(covariance))
    scale = np.outer(size, size)
    np.testing.assert_allclose(np.cov(signals) / scale, covariance / scale, atol=SAMPLED)
    if name != 'adaptive_window':
        found = weights @ noise[-weights.shape[1] :] - signals
        np.testing.assert_allclose(found / size[:, None], 0.0, atol=CUT)
    # A gyroscope has the first two of the signals.
    turns = imu_covariance(DEVIATION, 1.0, weights)[::2, ::2]
    np.testing.assert_allclose(turns, covariance[:2, :2], rtol=1e-9)


def test_signals_that_are_not_filtered():
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), RATE)
    whole = joint_covariance(1e-4, weights)
    measured = joint_covariance(1e-4, weights, velocity=0.01)
    assert measured[1, 1] == pytest.approx(1e-4)
    assert not measured[1, [0, 2]].any()
    np.testing.assert_array_equal(measured[::2, ::2], whole[::2, ::2])
    neglected = joint_covariance(1e-4, weights, neglects_acceleration=True)
    assert not neglected[2].any() and not neglected[:, 2].any()
    np.testing.assert_array_equal(imu_covariance(1e-3, 0.1), np.diag([1e-6, 0.1**2, 0.0]))


def test_roots_of_singular_covariances(rng):
    parts = rng.normal(size=(50, 3, 3))
    parts[10:20, :, 1:] = 0.0
    parts[20:30, 1] = 0.0
    parts[30:40] *= np.array([1e-6, 1.0, 1e4])[:, None]
    parts[40:45] = 0.0
    covariances = parts @ parts.swapaxes(1, 2)
    roots = covariance_root(0.5 * (covariances + covariances.swapaxes(1, 2)))
    assert not np.triu(roots, 1).any()
    size = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    error = roots @ roots.swapaxes(1, 2) - covariances
    assert (np.abs(error) <= 1e-9 * size[:, :, None] * size[:, None]).all()


def test_impossible_noise_is_refused():
    good = NoiseModel(np.eye(3)[None], np.eye(3)[None], np.ones((3, 6)))
    for change, error in (
        ({'fts': np.ones((3, 5))}, ShapeError),
        ({'fts': -np.ones((3, 6))}, ConfigError),
        ({'joints': np.triu(np.ones((1, 3, 3)))}, ConfigError),
        ({'imus': 2 * np.ones((1, 3, 3)) - np.eye(3)}, ConfigError),
    ):
        with pytest.raises(error):
            replace(good, **change)
