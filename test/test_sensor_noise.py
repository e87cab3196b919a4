# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of joints and IMUs behind a filter: against the filters themselves, fed with noise.

Not covered: what the noise does to estimates (test_uncertainty.py).
"""

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, ShapeError
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    independent,
    joint_covariance,
    triangular_root,
)

RATE = 500.0
# Standard deviations from 4000 independent channels err by 1.1 %, four times that is allowed.
CHANNELS = 4000
SAMPLED = 0.045
# Round-off of products of numbers that differ by the square of the rate; and the weights of a
# filter that forgets gradually, cut off.
EXACT = 1e-9
CUT = 3e-3
DEVIATION = 2e-4


def filters(n):
    return {
        'savitzky_golay': SavitzkyGolayFilter(n, 0.1, 3),
        'kalman': KalmanFilter(n, DEVIATION, 3.0),
        'adaptive_window': AdaptiveWindowFilter(n, 0.1, 5.0 * DEVIATION),
    }


def feed(differentiator, values):
    for k, row in enumerate(values):
        differentiator.append(round((k + 1) * 1e9 / RATE), row)
    return round(len(values) * 1e9 / RATE)


@pytest.mark.parametrize('delay', [0.0, 0.02])
@pytest.mark.parametrize('name', ['savitzky_golay', 'kalman'])
def test_weights_are_those_of_the_filter(name, delay, rng):
    options = {'savitzky_golay': (0.1, 3), 'kalman': (DEVIATION, 3.0, delay)}[name]
    kind = {'savitzky_golay': SavitzkyGolayFilter, 'kalman': KalmanFilter}[name]
    weights = filter_weights(kind(1, *options), RATE, delay=delay, smooth=True)
    values = rng.normal(size=(1000, 4))
    differentiator = kind(4, *options)
    newest = feed(differentiator, values)
    expected = differentiator.evaluate_at(newest - round(1e9 * delay))
    got = weights @ values[-weights.shape[1] :]
    size = np.linalg.norm(weights, axis=1)[:, None]
    np.testing.assert_allclose(got / size, expected / size, atol=CUT, rtol=0)


@pytest.mark.parametrize('name', ['savitzky_golay', 'kalman', 'adaptive_window'])
def test_covariance_is_that_of_filtered_noise(name, rng):
    weights = filter_weights(filters(1)[name], RATE)
    covariance = joint_covariance(DEVIATION, weights)
    differentiator = filters(CHANNELS)[name]
    noise = rng.normal(0.0, DEVIATION, (256, CHANNELS))
    feed(differentiator, noise)
    signals = np.vstack([noise[-1], differentiator.evaluate()])
    size = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
        np.cov(signals) / np.outer(size, size), covariance / np.outer(size, size), atol=2 * SAMPLED
    )


@pytest.mark.parametrize('smooth', [False, True])
@pytest.mark.parametrize('name', ['savitzky_golay', 'kalman'])
def test_covariance_at_an_instant_in_the_past(name, smooth, rng):
    """Joints and gyroscopes alike, as an IMU has the first two of the signals."""
    lag = 10
    delay = lag / RATE

    def make(n):
        if name == 'kalman':
            return KalmanFilter(n, DEVIATION, 3.0, delay)
        return SavitzkyGolayFilter(n, 0.1, 3)

    weights = filter_weights(make(1), RATE, delay=delay, smooth=smooth)
    covariance = joint_covariance(DEVIATION, weights)
    differentiator = make(CHANNELS)
    noise = rng.normal(0.0, DEVIATION, (256, CHANNELS))
    newest = feed(differentiator, noise)
    signals = differentiator.evaluate_at(newest - round(1e9 * delay))
    if not smooth:
        signals[0] = noise[-1 - lag]
    size = np.sqrt(np.diag(covariance))
    scale = np.outer(size, size)
    np.testing.assert_allclose(np.cov(signals) / scale, covariance / scale, atol=2 * SAMPLED)
    turns = imu_covariance(DEVIATION, 1.0, weights)[::2, ::2]
    np.testing.assert_allclose(turns, covariance[:2, :2], rtol=EXACT)


def test_a_value_that_is_not_smoothed_is_one_sample():
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), RATE, delay=0.02)
    np.testing.assert_array_equal(np.flatnonzero(weights[0]), [weights.shape[1] - 11])
    smooth = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), RATE, delay=0.02, smooth=True)
    np.testing.assert_allclose(smooth.sum(axis=1), [1.0, 0.0, 0.0], atol=1e-6)
    np.testing.assert_array_equal(smooth[1:], weights[1:])


def test_a_filter_without_second_derivative_serves_a_gyroscope():
    weights = filter_weights(AdaptiveWindowFilter(3, 0.1, 1e-2, 1), RATE)
    covariance = imu_covariance(2e-3, 0.1, weights)
    assert np.isfinite(covariance).all()
    np.testing.assert_allclose(covariance[2, 2], 4e-6 * (weights[1] @ weights[1]), rtol=EXACT)
    assert covariance[0, 0] == 4e-6
    assert covariance[1, 1] == pytest.approx(0.01)
    assert covariance[0, 2] > 0.0
    assert not covariance[1, [0, 2]].any()


def test_signals_that_are_not_filtered():
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), RATE)
    whole = joint_covariance(1e-4, weights)
    measured = joint_covariance(1e-4, weights, velocity=0.01)
    assert measured[1, 1] == pytest.approx(1e-4)
    assert not measured[1, [0, 2]].any()
    np.testing.assert_array_equal(measured[::2, ::2], whole[::2, ::2])
    neglected = joint_covariance(1e-4, weights, neglects_acceleration=True)
    assert not neglected[2].any()
    assert not neglected[:, 2].any()
    np.testing.assert_array_equal(imu_covariance(1e-3, 0.1), independent(1e-3, 0.1, 0.0))


def test_a_filter_that_is_too_short_is_named():
    with pytest.raises(ConfigError):
        filter_weights(SavitzkyGolayFilter(1, 0.1, 3), 20.0)


def test_roots(rng):
    parts = rng.normal(size=(50, 3, 3))
    parts[10:20, :, 1:] = 0.0
    parts[20:30, 1] = 0.0
    parts[30:40] *= np.array([1e-6, 1.0, 1e4])[:, None]
    parts[40:45] = 0.0
    covariances = parts @ parts.swapaxes(1, 2)
    roots = triangular_root(0.5 * (covariances + covariances.swapaxes(1, 2)))
    assert not np.triu(roots, 1).any()
    size = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    size = np.where(size > 0.0, size, 1.0)
    scale = size[:, :, None] * size[:, None]
    error = (roots @ roots.swapaxes(1, 2) - covariances) / scale
    np.testing.assert_allclose(error, 0.0, atol=EXACT)


@pytest.mark.parametrize(
    ('change', 'error'),
    [
        ({'fts': np.ones((3, 5))}, ShapeError),
        ({'fts': -np.ones((3, 6))}, ConfigError),
        ({'imus': np.eye(3)}, ShapeError),
        ({'joints': np.full((5, 3, 3), np.nan)}, ConfigError),
        ({'joints': np.tile(-np.eye(3), (5, 1, 1))}, ConfigError),
        ({'joints': np.tile(np.ones((3, 3)) - np.eye(3), (5, 1, 1))}, ConfigError),
        ({'joints': np.tile(np.triu(np.ones((3, 3))), (5, 1, 1))}, ConfigError),
        ({'imus': np.tile(2 * np.ones((3, 3)) - np.eye(3), (1, 1, 1))}, ConfigError),
        ({'assumed_positions': np.zeros(4)}, ShapeError),
        ({'assumed_positions': -np.ones(5)}, ConfigError),
    ],
)
def test_numbers_that_are_no_noise(change, error):
    good = {
        'joints': np.tile(np.eye(3), (5, 1, 1)),
        'imus': np.eye(3)[None],
        'fts': np.ones((3, 6)),
        'assumed_positions': np.zeros(5),
    }
    NoiseModel(**good)
    with pytest.raises(error):
        NoiseModel(**{**good, **change})
