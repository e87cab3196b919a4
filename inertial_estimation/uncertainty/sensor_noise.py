# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Stated noise of every reading of a robot.

Noise is zero-mean, and that of one sensor has nothing to do with that of another. Offsets, delays
and errors of the model are no noise. What is taken from the same samples errs together, so the
noise of a joint is a covariance of three signals, and so is that of an IMU; `filtered_noise` has
those behind a filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ShapeError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import read_only

Array = NDArray[np.float64]

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
            Covariance of position, velocity and acceleration, such as from
            `filtered_noise.joint_covariance`.
        imu : ndarray, shape (3, 3)
            Covariance of angular velocity, proper acceleration and angular acceleration, such as
            from `filtered_noise.imu_covariance`.
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


def triangular_root(covariances: Array) -> Array:
    """
    Return lower triangular L with ``L L' = covariance``, for singular covariances, too.

    covariances (..., 3, 3); returns (..., 3, 3).
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
