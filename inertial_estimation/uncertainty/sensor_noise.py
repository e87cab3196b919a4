# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Stated noise of every reading of a robot.

Noise has zero mean, and that of different sensors is independent. Offsets, delays and errors of
the model are no noise. Signals from the same samples err together, so the noise of a joint is a
covariance of three signals, and so is that of an IMU; behind a filter the weights of its samples
determine it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.errors import ConfigError, ShapeError
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.derivatives import Differentiator

IMPOSSIBLE = 1e-5
"""Correlations with an eigenvalue further below zero are no round-off."""


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

    def __post_init__(self) -> None:
        """Check all numbers and keep read-only copies."""
        for name, size in (('joints', (3, 3)), ('imus', (3, 3)), ('fts', (6,))):
            array = read_only(getattr(self, name))
            if array.shape[1:] != size:
                raise ShapeError(name, ('n', *size), array.shape)
            if not np.isfinite(array).all():
                raise ConfigError(f'{name} of the noise hold NaN or infinity')
            object.__setattr__(self, name, array)
        if (self.fts < 0.0).any():
            raise ConfigError('fts of the noise hold a negative standard deviation')
        covariance_root(self.joints)
        covariance_root(self.imus)

    @classmethod
    def uniform(cls, robot: Robot, *, joint: Array, imu: Array, ft: Array) -> NoiseModel:
        """
        Return the noise of a robot whose sensors of a kind are alike.

        Parameters
        ----------
        robot : Robot
            Number of joints, IMUs and FT sensors.
        joint : ndarray, shape (3, 3)
            Covariance of position, velocity and acceleration, such as from
            `joint_covariance`.
        imu : ndarray, shape (3, 3)
            Covariance of angular velocity, proper acceleration and angular acceleration, such as
            from `imu_covariance`.
        ft : ndarray, shape (6,)
            Standard deviation of the readings [N, Nm].

        Returns
        -------
        NoiseModel

        """
        return cls(
            joints=np.broadcast_to(joint, (len(robot.joint_names), 3, 3)),
            imus=np.broadcast_to(imu, (len(robot.imus), 3, 3)),
            fts=np.broadcast_to(ft, (len(robot.ft_sensors), 6)),
        )


def covariance_root(covariances: Array) -> Array:
    """Return lower triangular L with ``L L' = covariance``, also if singular; (..., 3, 3)."""
    variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    if (variances < 0.0).any() or not np.array_equal(covariances, covariances.swapaxes(-1, -2)):
        raise ConfigError('a covariance of the noise is not symmetric or has a negative variance')
    sizes = np.sqrt(variances)[..., None]
    scales = np.where(sizes > 0.0, sizes, 1.0)
    values, axes = np.linalg.eigh(covariances / scales / scales.swapaxes(-1, -2))
    if values.min(initial=0.0) < -IMPOSSIBLE:
        raise ConfigError('a covariance of the noise has correlations that are impossible')
    root = sizes * axes * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(np.linalg.qr(root.swapaxes(-1, -2), mode='r')).swapaxes(-1, -2)


IMPULSE = 1e-9
"""The odd sample [unit]: small beside the noise, where a filter asks how large that is."""
FADED = 1e-3
"""Part of the largest weight below which weights are left out."""
MIN_ANSWERS = 16
MAX_SAMPLES = 1 << 16


def filter_weights(
    differentiator: Differentiator, rate: float, *, delay: float = 0.0, smooth: bool = False
) -> Array:
    """
    Return the weights of samples in a value and its derivatives: the answer to one odd sample.

    rate [Hz]; delay [s]; returns (3, count) [1/s].
    """
    period_ns, delay_ns = round(1e9 / rate), round(1e9 * delay)
    differentiator.reset()
    stamps, zeros, n = count(period_ns, period_ns), np.zeros(differentiator.n_channels), 0
    while not differentiator.ready:
        if n > MAX_SAMPLES:
            raise ConfigError(f'samples every {1e-9 * period_ns:g} s: {differentiator.lack}')
        differentiator.append(next(stamps), zeros)
        n += 1
    # Until nothing of the beginning is left.
    for _ in range(n + 1):
        differentiator.append(next(stamps), zeros)
    answers: list[Array] = []
    faded = False
    while not faded:
        if len(answers) > MAX_SAMPLES:
            raise ConfigError(f'the derivative filter at {rate} Hz does not forget a sample')
        stamp_ns = next(stamps)
        differentiator.append(stamp_ns, zeros if answers else zeros + IMPULSE)
        answers.append(differentiator.evaluate_at(stamp_ns - delay_ns)[:, 0] / IMPULSE)
        # At powers of two: whether the second half is small beside all.
        n = len(answers)
        if n >= MIN_ANSWERS and not n & (n - 1):
            sizes = np.nan_to_num(np.abs(answers), nan=0.0)
            faded = bool((sizes[n // 2 :].max(axis=0) <= FADED * sizes.max(axis=0)).all())
    weights = np.array(answers)[::-1].T.copy()
    if not smooth:
        weights[0] = 0.0
        weights[0, -1 - round(delay_ns / period_ns)] = 1.0
    return weights


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


def imu_covariance(gyroscope: float, accelerometer: float, weights: Array) -> Array:
    """
    Return the noise of an IMU whose angular acceleration is filtered from its gyroscope.

    gyroscope [rad/s]; accelerometer [m/s^2]; weights (3, count); returns (3, 3).
    """
    covariance = np.diag(np.square([0.0, accelerometer, 0.0]))
    covariance[::2, ::2] = gyroscope**2 * (weights[:2] @ weights[:2].T)
    return covariance
