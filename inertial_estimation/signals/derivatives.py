# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""First and second time derivative of many channels by the filter of the settings."""

from __future__ import annotations

from typing import Protocol

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter

ORDER = 3
"""Degree of the polynomial of savitzky_golay."""
MIN_NOISE = 1e-9
"""Least noise of angular velocities for the Kalman filter [rad/s]."""
BAND = 5.0
"""Noise band of the adaptive window over the standard deviation of the noise."""


class Differentiator(Protocol):
    """
    A filter of many channels that share their stamps.

    Values at an instant in the past come from the samples so far.
    """

    n_channels: int

    def reset(self) -> None:
        """Forget every sample."""

    @property
    def ready(self) -> bool:
        """Whether `evaluate_at` returns numbers."""

    @property
    def lack(self) -> str:
        """Samples that are missing for `evaluate_at` to return numbers; empty while `ready`."""

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; values (n_channels,)."""

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return value and derivatives at an instant; (3, n_channels) [1/s]."""


def joint_differentiator(settings: EstimatorSettings, n_channels: int) -> Differentiator:
    """Return the filter of joint positions."""
    noise, jerk = settings.joint_states.position_noise, settings.filter.joint_jerk
    return _differentiator(settings, n_channels, noise, jerk, 2)


def gyroscope_differentiator(settings: EstimatorSettings, noise: float) -> Differentiator:
    """Return the filter of one gyroscope; noise [rad/s]."""
    return _differentiator(settings, 3, max(noise, MIN_NOISE), settings.filter.gyroscope_jerk, 1)


def smoother(settings: EstimatorSettings) -> SavitzkyGolayFilter:
    """Return the filter of the readings of an FT sensor or IMU."""
    return SavitzkyGolayFilter(6, settings.filter.window, ORDER)


def _differentiator(
    settings: EstimatorSettings, n_channels: int, noise: float, jerk: float, highest: int
) -> Differentiator:
    """Return a filter for signals with some noise and jerk, up to the highest derivative."""
    if settings.filter.kind == 'kalman':
        return KalmanFilter(n_channels, noise, jerk, settings.filter.delay)
    window = settings.filter.window
    if settings.filter.kind == 'adaptive_window':
        return AdaptiveWindowFilter(n_channels, window, BAND * noise, highest)
    return SavitzkyGolayFilter(n_channels, window, ORDER)
