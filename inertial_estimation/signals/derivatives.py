# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First and second time derivative of many channels by the filter of the settings.

The usual one fits a polynomial by least squares to the samples of the last ``window`` seconds
(Savitzky and Golay), with their true stamps, and differentiates it at an instant inside.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg.lapack import dposv

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.windows import WindowFilter

ORDER = 3
"""Degree of the polynomial of savitzky_golay."""
MIN_NOISE = 1e-9
"""Least noise of angular velocities for the Kalman filter [rad/s]."""
JERK_RATIO = 10.0
"""Density of the third derivative of angular velocities over that of the jerk of joints [1/s]."""
BAND = 5.0
"""Noise band of the adaptive window over the standard deviation of the noise."""


class SavitzkyGolayFilter(WindowFilter):
    """
    Savitzky-Golay differentiator of many channels that share their stamps.

    It is ready once ``order + 1 + SPARE_SAMPLES`` samples span `MIN_FILL` of the window [s].
    """

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return value and derivatives at an instant; (3, n_channels) [1/s]."""
        if (lag := self._lag(stamp_ns)) is None:
            return np.full((3, self.n_channels), np.nan)
        count = len(self._stamps)
        stamps, values = self._samples.newest(count)
        if self._regular:
            weights = _regular_weights(count, self._span, lag, self.order)
        else:
            weights = _weights(stamps, lag, self.order)
        polynomial: Array = weights @ values
        return polynomial


Differentiator = SavitzkyGolayFilter | AdaptiveWindowFilter | KalmanFilter
"""A filter of many channels that share their stamps."""


@lru_cache(maxsize=2048)
def _regular_weights(count: int, span_ns: int, lag_ns: int, order: int) -> Array:
    return _weights(np.linspace(0, span_ns, count), lag_ns, order)


def _weights(stamps: Array | Stamps, lag_ns: int, order: int) -> Array:
    """Return the weights of samples in value and derivatives before the last one, (3, count)."""
    # In units of half the span, -1 to 1, powers are best conditioned.
    half = 0.5e-9 * float(stamps[-1] - stamps[0])
    times = (stamps - stamps[-1]) * (1e-9 / half) + 1.0
    powers = np.vander(times, order + 1, increasing=True).T
    wanted = _powers_and_derivatives(1.0 - 1e-9 * lag_ns / half, order)
    weights: Array = dposv(powers @ powers.T, wanted)[1].T @ powers
    weights[1] /= half
    weights[2] /= half * half
    return weights


@lru_cache(maxsize=64)
def _powers_and_derivatives(time: float, order: int) -> Array:
    """Return each power at a time and its two derivatives, shape (order + 1, 3)."""
    k = np.arange(order + 1.0)
    first = k * time ** np.maximum(k - 1.0, 0.0)
    second = k * (k - 1.0) * time ** np.maximum(k - 2.0, 0.0)
    return np.stack([time**k, first, second], axis=1)


def joint_differentiator(settings: EstimatorSettings, n_channels: int) -> Differentiator:
    """Return the filter of joint positions."""
    noise, jerk = settings.joint_states.position_noise, settings.filter.joint_jerk
    return _differentiator(settings, n_channels, noise, jerk, 2)


def gyroscope_differentiator(settings: EstimatorSettings, noise: float) -> Differentiator:
    """Return the filter of one gyroscope; noise [rad/s]."""
    jerk = JERK_RATIO * settings.filter.joint_jerk
    return _differentiator(settings, 3, max(noise, MIN_NOISE), jerk, 1)


def _differentiator(
    settings: EstimatorSettings, n_channels: int, noise: float, jerk: float, highest: int
) -> Differentiator:
    """Return a filter for signals with some noise and jerk, up to the highest derivative."""
    if settings.filter.kind == 'kalman':
        return KalmanFilter(n_channels, noise, jerk, settings.filter.delay)
    window = settings.filter.window
    if settings.filter.kind == 'adaptive_window':
        return AdaptiveWindowFilter(n_channels, window, BAND * noise, highest)
    return smoother(settings, n_channels)


def smoother(settings: EstimatorSettings, n_channels: int = 6) -> SavitzkyGolayFilter:
    """Return the filter of the readings of an FT sensor or IMU."""
    return SavitzkyGolayFilter(n_channels, settings.filter.window, ORDER)
