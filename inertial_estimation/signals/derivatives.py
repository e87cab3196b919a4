# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""First and second time derivative of many channels by the filter of the settings."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter, differentiate

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
        """Whether `evaluate` returns numbers."""

    @property
    def lack(self) -> str:
        """Samples that are missing for `evaluate` to return numbers; empty while `ready`."""

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; values (n_channels,)."""

    def evaluate(self) -> Array:
        """Return the derivatives at the newest sample; returns (2, n_channels) [1/s]."""

    def evaluate_at(self, stamp_ns: int) -> Array:
        """Return value and derivatives at an instant; returns (3, n_channels) [1/s]."""


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


def differentiate_with(
    differentiator: Differentiator, stamps_ns: Stamps, values: Array, delay: float = 0.0
) -> tuple[Array, Array]:
    """
    Differentiate a whole log with any filter, as step by step.

    stamps_ns (n,) [ns]; values (n, n_channels); delay [s]; returns first, second (n, n_channels)
    [1/s, 1/s^2].
    """
    if values.ndim != 2 or len(values) != len(stamps_ns):
        raise ShapeError('values', (len(stamps_ns), 'n_channels'), values.shape)
    if isinstance(differentiator, SavitzkyGolayFilter) and not delay:
        return differentiate(stamps_ns, values, differentiator.window, differentiator.order)
    differentiator.reset()
    derivatives = np.full((2, *values.shape), np.nan)
    stamps, delay_ns, asked = stamps_ns.tolist(), round(1e9 * delay), 0
    for stamp, row in zip(stamps, values):
        differentiator.append(stamp, row)
        while asked < len(stamps) and stamps[asked] <= stamp - delay_ns:
            derivatives[:, asked] = differentiator.evaluate_at(stamps[asked])[1:]
            asked += 1
    return derivatives[0], derivatives[1]


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
