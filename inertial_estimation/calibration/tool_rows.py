# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the tool's unknowns at any instant, from an IMU that may be late."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.delay import SmoothStream, Stream, smooth
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.rigid_body import net_wrench

if TYPE_CHECKING:
    from inertial_estimation.calibration.tool import ToolMotion, ToolSettings

Array = NDArray[np.float64]

N_POINT, N_BODY = 4, 10
"""Inertial unknowns of a tool without inertia, and of one with it."""
ROUND_OFF = 1e-6
"""A rotation matrix that somebody wrote may be off by so much."""


class ToolRows(NamedTuple):
    """What multiplies mass, first moments, inertia and offset."""

    imu: SmoothStream
    """Columns of the inertial unknowns, then the proper acceleration, in the sensor frame."""
    n_inertial: int
    """4, or 10 with the inertia."""

    @classmethod
    def of(cls, imu: Stream, motion: ToolMotion, settings: ToolSettings, width: float) -> ToolRows:
        """
        Make them from what an IMU says.

        width [s].
        """
        R, place = _pose(motion)
        acceleration = imu.values[:, :3] @ R.T
        spin = np.zeros_like(acceleration)
        rate = np.zeros_like(acceleration)
        if imu.values.shape[1] > 3:
            spin = imu.values[:, 3:] @ R.T
            rate = _derivative(imu.times, spin)
        # From the IMU to the sensor's origin, about which the rows are.
        origin = acceleration - np.cross(rate, place) - np.cross(spin, np.cross(spin, place))
        n = N_BODY if settings.inertia else N_POINT
        values = _columns(origin, spin, rate, n, settings.direction)
        # Products of noisy signals are smoothed as the readings are that they are to match.
        return cls(smooth(Stream(imu.times, values), width), n)

    @classmethod
    def of_poses(cls, accelerations: Array, direction: int) -> ToolRows:
        """
        Make them of poses at rest, known at the numbers of the poses.

        accelerations (n, 3) [m/s^2].
        """
        still = np.zeros_like(accelerations)
        values = _columns(accelerations, still, still, N_POINT, direction)
        last = len(values) - 1

        def at(numbers: Array) -> Array:
            found: Array = values[np.clip(np.rint(numbers), 0, last).astype(np.intp)]
            return found

        return cls(SmoothStream(at, 0.0, float(last), np.zeros((0, 2))), N_POINT)

    def at(self, times: Array, delay: float) -> Array:
        """
        Return the rows at some instants.

        times (n,) [s]; delay [s]; returns (n, 6, n_inertial + 6) [N, Nm].
        """
        inertial = self.imu.spline(times + delay)[:, :-3].reshape(len(times), 6, -1)
        offset = np.broadcast_to(np.eye(6), (len(times), 6, 6))
        return np.concatenate([inertial, offset], axis=2)

    def accelerations(self, times: Array, delay: float = 0.0) -> Array:
        """
        Return proper accelerations of the sensor's origin.

        times (n,) [s]; returns (n, 3) [m/s^2].
        """
        found: Array = self.imu.spline(times + delay)[:, -3:]
        return found


def _columns(origin: Array, spin: Array, rate: Array, n: int, direction: int) -> Array:
    """Return columns of n inertial unknowns, row by row, and the acceleration, (k, 6 n + 3)."""
    proper = np.hstack([origin, rate])
    wrenches = [-direction * net_wrench(unit, spin, proper) for unit in np.eye(N_BODY)[:n]]
    return np.hstack([np.stack(wrenches, axis=2).reshape(len(proper), -1), origin])


def _pose(motion: ToolMotion) -> tuple[Array, Array]:
    """Return rotation and place of the IMU in the sensor frame."""
    pose = np.eye(4) if motion.sensor_H_imu is None else np.asarray(motion.sensor_H_imu)
    if pose.shape != (4, 4):
        raise ShapeError('sensor_H_imu', (4, 4), pose.shape)
    R = pose[:3, :3]
    if not np.allclose(R.T @ R, np.eye(3), atol=ROUND_OFF) or np.linalg.det(R) < 0.0:
        raise ModelError(
            "'sensor_H_imu' holds no rotation: its axes must be orthonormal",
            about=('sensor_H_imu',),
        )
    return R, pose[:3, 3]


def _derivative(times: Array, values: Array) -> Array:
    """Return the rate of change at the samples."""
    from scipy.interpolate import CubicSpline

    found: Array = CubicSpline(times, values)(times, 1)
    return found
