# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of a joint or an IMU whose derivatives come from a filter.

The samples err independently of each other. Position, velocity and acceleration of a joint are
made of the same ones, so their errors go together: the second derivative at the end of a window
errs almost in proportion to the first. How a filter lags behind the motion is no noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.signals.derivatives import Differentiator

Array = NDArray[np.float64]

IMPULSE = 1e-9
"""The odd sample [unit]: small beside the noise, where a filter asks how large that is."""
FADED = 1e-3
"""Part of the largest weight below which weights are left out."""
LEAST_ANSWERS = 16
MOST_SAMPLES = 1 << 16


def independent(*deviations: float) -> Array:
    """
    Return the covariance of signals that err independently.

    Returns (n, n).
    """
    return np.diag(np.square(deviations))


def filter_weights(
    differentiator: Differentiator, rate: float, *, delay: float = 0.0, smooth: bool = False
) -> Array:
    """
    Return what a sampled value and its derivatives are made of: the answer to one odd sample.

    rate [Hz]; delay [s]; returns (3, count) [1/s].
    """
    period_ns, delay_ns = round(1e9 / rate), round(1e9 * delay)
    stamps = _warm_up(differentiator, period_ns)
    sample = np.full(differentiator.n_channels, IMPULSE)
    answers: list[Array] = []
    while not _has_faded(answers):
        if len(answers) > MOST_SAMPLES:
            raise ConfigError(f'the derivative filter at {rate} Hz does not forget a sample')
        stamp_ns = next(stamps)
        differentiator.append(stamp_ns, sample)
        answers.append(differentiator.evaluate_at(stamp_ns - delay_ns)[:, 0] / IMPULSE)
        sample = np.zeros(differentiator.n_channels)
    weights = np.array(answers)[::-1].T.copy()
    if not smooth:
        weights[0] = 0.0
        weights[0, -1 - delay_ns // period_ns] = 1.0
    return weights


def _warm_up(differentiator: Differentiator, period_ns: int) -> Iterator[int]:
    """Fill a filter with zeros, for twice as long as it takes; return the stamps to go on with."""
    differentiator.reset()
    stamps = count(period_ns, period_ns)
    zeros = np.zeros(differentiator.n_channels)
    least = 1
    while not differentiator.ready:
        if least > MOST_SAMPLES:
            raise ConfigError(
                f'samples every {1e-9 * period_ns:g} s: {differentiator.lack}; choose another '
                'filter, or state the noise of the derivatives'
            )
        differentiator.append(next(stamps), zeros)
        least += 1
    for _ in range(least):
        differentiator.append(next(stamps), zeros)
    return stamps


def _has_faded(answers: Sequence[Array]) -> bool:
    """Tell whether the second half of the answers is nothing beside the first."""
    n = len(answers)
    if n < LEAST_ANSWERS or n & (n - 1):
        return False
    sizes = np.abs(answers)
    sizes[np.isnan(sizes)] = 0.0
    return bool((sizes[n // 2 :].max(axis=0) <= FADED * sizes.max(axis=0)).all())


def joint_covariance(
    position: float,
    weights: Array,
    *,
    velocity: float | None = None,
    neglects_acceleration: bool = False,
) -> Array:
    """
    Return the noise of a joint whose derivatives are filtered from its positions.

    position [rad or m]; weights (3, count); velocity [rad/s or m/s]; returns (3, 3).
    """
    own = np.array([1.0, velocity is None, not neglects_acceleration])
    weights = own[:, None] * weights
    covariance: Array = position**2 * (weights @ weights.T)
    if velocity is not None:
        covariance[1, 1] = velocity**2
    return covariance


def imu_covariance(gyroscope: float, accelerometer: float, weights: Array | None = None) -> Array:
    """
    Return the noise of an IMU whose angular acceleration is filtered from its gyroscope.

    gyroscope [rad/s]; accelerometer [m/s^2]; weights (3, count); returns (3, 3).
    """
    covariance = independent(gyroscope, accelerometer, 0.0)
    if weights is not None:
        covariance[::2, ::2] = gyroscope**2 * (weights[:2] @ weights[:2].T)
    return covariance
