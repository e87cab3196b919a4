# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The filters of the settings: derivatives of joint positions and of angular velocities."""

from __future__ import annotations

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.savitzky_golay import (
    CUBIC,
    QUINTIC,
    SavitzkyGolayFilter,
)

MIN_NOISE = 1e-9
"""Least noise of angular velocities for the Kalman filter [rad/s]."""
JERK_RATIO = 10.0
"""Density of the third derivative of angular velocities over that of the jerk of joints [1/s]."""

Differentiator = SavitzkyGolayFilter | KalmanFilter
"""A filter of many channels that share their stamps."""


def joint_differentiator(settings: EstimatorSettings, n_channels: int) -> Differentiator:
    """Return the filter of joint positions."""
    noise, jerk = settings.joint_states.position_noise, settings.filter.joint_jerk
    return _differentiator(settings, n_channels, noise, jerk)


def gyroscope_differentiator(settings: EstimatorSettings, noise: float) -> Differentiator:
    """Return the filter of one gyroscope; noise [rad/s]."""
    jerk = JERK_RATIO * settings.filter.joint_jerk
    return _differentiator(settings, 3, max(noise, MIN_NOISE), jerk)


def _differentiator(
    settings: EstimatorSettings, n_channels: int, noise: float, jerk: float
) -> Differentiator:
    """Return a filter for signals with some noise and jerk."""
    if settings.filter.kind == 'kalman':
        return KalmanFilter(n_channels, noise, jerk, settings.filter.delay)
    return smoother(settings, n_channels)


def smoother(settings: EstimatorSettings, n_channels: int = 6) -> SavitzkyGolayFilter:
    """Return the filter of the readings of an FT sensor or IMU."""
    order = QUINTIC if settings.filter.kind == 'quintic' else CUBIC
    return SavitzkyGolayFilter(n_channels, settings.filter.window, order)
