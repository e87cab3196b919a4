# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Stated noise of the sensors, and what a derivative filter makes of it.

Noise is zero-mean and white: a sample of a sensor errs independently of its other samples and of
other sensors. Offsets, delays, the bias of a filter and errors of the model are no noise.

A filter takes position, velocity and acceleration of a joint from the same encoder samples. Their
errors go together: the second derivative at the end of a window errs almost in proportion to the
first. So the noise of a joint is a covariance of three signals, and so is that of an IMU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ShapeError
from inertial_estimation.estimation.derivatives import Differentiator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import read_only

Array = NDArray[np.float64]

IMPULSE = 1e-9
"""The odd sample [unit]: small beside the noise, where a filter asks how large that is."""
FADED = 1e-3
"""Part of the largest weight below which weights are left out."""
LEAST_ANSWERS = 16
MOST_SAMPLES = 1 << 16
NO_VARIANCE = 1e-12
"""Less than this part of a signal's variance left beside the others is round-off."""
IMPOSSIBLE = 1e-5
"""Correlations that exceed what is possible by more are no round-off: the root of it and more."""


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """
    Noise of every reading of a robot; rows follow the robot.

    Raises
    ------
    ShapeError
        If an array has the wrong shape.
    ConfigError
        If a number is not finite, a standard deviation is negative, or a matrix is no covariance.

    """

    joints: Array
    """Covariance of position, velocity, acceleration, shape (n_joints, 3, 3) [rad or m, s]."""
    imus: Array
    """
    Covariance of angular velocity [rad/s], proper acceleration [m/s^2] and angular acceleration
    [rad/s^2] along each axis; the axes are alike and independent, shape (n_imus, 3, 3).
    """
    fts: Array
    """Standard deviation of the readings before calibration, shape (n_fts, 6) [N, Nm]."""
    assumed_positions: Array
    """
    Standard deviation of a position that is assumed, in place of the joint's noise, shape
    (n_joints,) [rad or m]. Zero: what rests on the joint is as sure as if it were measured.
    """

    def __post_init__(self) -> None:
        """Check all numbers and keep read-only copies."""
        n = len(np.atleast_1d(self.joints))
        shapes = (
            ('joints', (n, 3, 3)),
            ('imus', (len(np.atleast_1d(self.imus)), 3, 3)),
            ('fts', (len(np.atleast_1d(self.fts)), 6)),
            ('assumed_positions', (n,)),
        )
        for name, shape in shapes:
            array = read_only(getattr(self, name))
            if array.shape != shape:
                raise ShapeError(name, shape, array.shape)
            if not np.isfinite(array).all():
                raise ConfigError(f'{name} of the noise hold NaN or infinity')
            object.__setattr__(self, name, array)
        for name in ('fts', 'assumed_positions'):
            if (getattr(self, name) < 0.0).any():
                raise ConfigError(f'{name} of the noise hold a negative standard deviation')
        for name in ('joints', 'imus'):
            triangular_root(getattr(self, name))

    @classmethod
    def uniform(
        cls, robot: Robot, *, joint: Array, imu: Array, ft: Array, assumed_position: float = 0.0
    ) -> NoiseModel:
        """
        Return the noise of a robot whose sensors of a kind are alike.

        Parameters
        ----------
        robot : Robot
            Number of joints, IMUs and FT sensors.
        joint : ndarray, shape (3, 3)
            Covariance of position, velocity and acceleration: `joint_covariance`, `independent`.
        imu : ndarray, shape (3, 3)
            Covariance of angular velocity, proper acceleration and angular acceleration:
            `imu_covariance`, `independent`.
        ft : ndarray, shape (6,)
            Standard deviation of the readings [N, Nm].
        assumed_position : float
            Standard deviation of assumed positions [rad or m].

        Returns
        -------
        NoiseModel

        """
        n_joints, n_imus = len(robot.joint_names), len(robot.imus)
        return cls(
            joints=np.broadcast_to(joint, (n_joints, 3, 3)),
            imus=np.broadcast_to(imu, (n_imus, 3, 3)),
            fts=np.broadcast_to(ft, (len(robot.ft_sensors), 6)),
            assumed_positions=np.full(n_joints, assumed_position),
        )


def independent(*deviations: float) -> Array:
    """
    Return the covariance of signals that err independently.

    Parameters
    ----------
    *deviations : float
        Standard deviation of each.

    Returns
    -------
    ndarray, shape (n, n)

    """
    return np.diag(np.square(deviations))


def filter_weights(
    differentiator: Differentiator, rate: float, *, delay: float = 0.0, smooth: bool = False
) -> Array:
    """
    Return what a sampled value and its derivatives are made of: the answer to one odd sample.

    A filter whose window adapts is taken as it is at rest, with its longest window; in motion its
    derivatives are noisier.

    Parameters
    ----------
    differentiator : Differentiator
        The filter; what it held is forgotten.
    rate : float
        Rate of the samples, taken to be regular [Hz].
    delay : float
        How far the instant that is estimated lies before the newest sample [s].
    smooth : bool
        The filter gives the value, too; otherwise it is the sample at the instant.

    Returns
    -------
    ndarray, shape (3, count)
        Weights of the samples, the newest one last, in the value, its first [1/s] and its second
        derivative [1/s^2]; NaN for a derivative that the filter leaves out.

    Raises
    ------
    ConfigError
        If the filter returns nothing at this rate, or never forgets.

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

    Parameters
    ----------
    position : float
        Standard deviation of a position sample [rad or m].
    weights : ndarray, shape (3, count)
        From `filter_weights`.
    velocity : float, optional
        Standard deviation of velocities that the robot reports [rad/s or m/s]. Default: they are
        filtered, too.
    neglects_acceleration : bool
        Accelerations are set to zero; how wrong that is, is no noise.

    Returns
    -------
    ndarray, shape (3, 3)

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

    Parameters
    ----------
    gyroscope : float
        Standard deviation of a sample along each axis [rad/s].
    accelerometer : float
        Likewise [m/s^2].
    weights : ndarray, shape (3, count), optional
        From `filter_weights`. Default: angular accelerations are neglected.

    Returns
    -------
    ndarray, shape (3, 3)

    """
    covariance = independent(gyroscope, accelerometer, 0.0)
    if weights is not None:
        covariance[::2, ::2] = gyroscope**2 * (weights[:2] @ weights[:2].T)
    return covariance


def triangular_root(covariances: Array) -> Array:
    """
    Return lower triangular L with ``L L' = covariance``, for singular covariances, too.

    Parameters
    ----------
    covariances : ndarray, shape (..., 3, 3)
        Zero rows and perfect correlations are fine; signals may differ by any factor in size.

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Raises
    ------
    ConfigError
        If a matrix is no covariance.

    """
    variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    if (variances < 0.0).any() or not np.array_equal(covariances, covariances.swapaxes(-1, -2)):
        raise ConfigError('a covariance of the noise is not symmetric or has a negative variance')
    deviations = np.sqrt(variances)
    sizes = np.where(deviations > 0.0, deviations, 1.0)
    remainder = covariances / sizes[..., None] / sizes[..., None, :]
    root = np.zeros_like(remainder)
    for k in range(3):
        pivot = remainder[..., k, k]
        left = pivot > NO_VARIANCE
        column = remainder[..., k:, k] * left[..., None]
        root[..., k:, k] = column / np.sqrt(np.where(left, pivot, 1.0))[..., None]
        remainder = remainder - root[..., :, None, k] * root[..., None, :, k]
    if np.abs(remainder).max(initial=0.0) > IMPOSSIBLE:
        raise ConfigError('a covariance of the noise has correlations that are impossible')
    return root * sizes[..., None]
