# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First and second time derivative of many channels: what every filter does, and which one is asked.

The filters are in `savitzky_golay`, `kalman` and `adaptive_window`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.filters.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.filters.kalman import KalmanFilter
from inertial_estimation.filters.savitzky_golay import SavitzkyGolayFilter, differentiate
from inertial_estimation.filters.windows import Stamps
from inertial_estimation.sample import Array

__all__ = [
    'BAND',
    'Differentiator',
    'differentiate',
    'differentiate_with',
    'gyroscope_differentiator',
    'joint_differentiator',
    'smoother',
]

BAND = 5.0
"""Noise band of the adaptive window over the standard deviation of the noise."""


class Differentiator(Protocol):
    """
    A filter of many channels that share their stamps.

    No value is returned that a later sample would be needed for: what is asked for an instant in
    the past comes from the samples that were there when it was asked.
    """

    n_channels: int

    def reset(self) -> None:
        """Forget every sample."""

    @property
    def ready(self) -> bool:
        """Whether there are samples enough for `evaluate` to return numbers."""

    @property
    def lack(self) -> str:
        """What is wanting for `evaluate` to return numbers; empty while `ready`."""

    def append(self, stamp_ns: int, values: Array) -> None:
        """
        Take one sample.

        Parameters
        ----------
        stamp_ns : int
            Stamp, later than the one before [ns].
        values : ndarray, shape (n_channels,)
            A NaN costs its own channel, for a while.

        """

    def evaluate(self) -> Array:
        """
        Return the derivatives at the newest sample.

        Returns
        -------
        ndarray, shape (2, n_channels)
            First derivative [1/s] and second derivative [1/s^2] of each channel, a fresh array;
            NaN where they are not known.

        """

    def evaluate_at(self, stamp_ns: int) -> Array:
        """
        Return value and derivatives at an instant.

        Parameters
        ----------
        stamp_ns : int
            The instant; a later one than the newest sample stands for that sample [ns].

        Returns
        -------
        ndarray, shape (3, n_channels)
            Smoothed value, first derivative [1/s] and second derivative [1/s^2] of each channel,
            a fresh array; NaN where they are not known.

        """


def joint_differentiator(settings: EstimatorSettings, n_channels: int) -> Differentiator:
    """
    Return the filter of joint positions that the settings ask for.

    Parameters
    ----------
    settings : EstimatorSettings
        Kind of filter and its parameters.
    n_channels : int
        Number of joints.

    Returns
    -------
    Differentiator

    """
    noise, jerk = settings.derivative_joint_noise, settings.derivative_joint_jerk
    return _differentiator(settings, n_channels, noise, jerk, 2)


def gyroscope_differentiator(settings: EstimatorSettings) -> Differentiator:
    """
    Return the filter of one gyroscope that the settings ask for.

    Parameters
    ----------
    settings : EstimatorSettings
        Kind of filter and its parameters.

    Returns
    -------
    Differentiator
        Of three channels; only the first derivative is wanted.

    """
    noise, jerk = settings.derivative_gyroscope_noise, settings.derivative_gyroscope_jerk
    return _differentiator(settings, 3, noise, jerk, 1)


def smoother(settings: EstimatorSettings) -> SavitzkyGolayFilter:
    """
    Return the filter through which the readings of an FT sensor or IMU go.

    Parameters
    ----------
    settings : EstimatorSettings
        Window and order.

    Returns
    -------
    SavitzkyGolayFilter
        Of six channels.

    """
    return SavitzkyGolayFilter(6, settings.derivative_window, settings.derivative_order)


def differentiate_with(
    differentiator: Differentiator, stamps_ns: Stamps, values: Array, delay: float = 0.0
) -> tuple[Array, Array]:
    """
    Differentiate a whole log with any filter: what it gives step by step.

    Parameters
    ----------
    differentiator : Differentiator
        The filter; what it held is forgotten.
    stamps_ns : ndarray of int64, shape (n,)
        Increasing stamps [ns].
    values : ndarray, shape (n, n_channels)
        Samples.
    delay : float, optional
        How much later than a sample its derivatives are asked for [s].

    Returns
    -------
    first, second : ndarray, shape (n, n_channels)
        Derivatives at each sample [1/s, 1/s^2], from the samples up to the first one that is
        later by the delay. NaN where the filter does not know them, and for the last samples,
        which none is so much later than.

    Raises
    ------
    ShapeError
        If there is not one row of values for each stamp.

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
    """Return a filter for signals with a certain noise and jerk, up to some derivative."""
    if settings.derivative_filter == 'kalman':
        return KalmanFilter(n_channels, noise, jerk, settings.filter_delay)
    window = settings.derivative_window
    if settings.derivative_filter == 'adaptive_window':
        return AdaptiveWindowFilter(n_channels, window, BAND * noise, highest)
    return SavitzkyGolayFilter(n_channels, window, settings.derivative_order)
