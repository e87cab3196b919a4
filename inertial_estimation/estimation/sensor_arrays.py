# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensors that measure the motion of each link with IMUs [T sections 4.3.2, 4.4.2, 4.4.3].

Such a link carries whole IMUs, or accelerometers and gyroscopes alone. Each of its three motions
(angular velocity, angular acceleration, acceleration) is measured on it, or comes from the nearest
link on which it is measured, through the joints in between. Several sensors of a link enter by a
weighted mean; three accelerometers or more, off one line, are an array that measures angular
acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from inertial_estimation.arrays import Array
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu
from inertial_estimation.model.spatial import hat

Bits = tuple[int, ...]
"""For each IMU what it delivers: the sum of `ACCELEROMETER` and `GYROSCOPE`, or 0."""

ACCELEROMETER, GYROSCOPE = 1, 2
DELIVERS = {'accelerometer': ACCELEROMETER, 'gyroscope': GYROSCOPE, 'both': 3}
ARRAY_SPREAD = 0.005
"""
Accelerometers whose positions spread by less than this off every line are no array [m].

It is a root mean square, whatever their noise. One of 5 mm turns noise of 0.05 m/s^2 into some
10 rad/s^2.
"""
LEAST_NOISE = 1e-3
"""Of the largest noise in an array; what is more exact counts no more."""


@dataclass(frozen=True, eq=False)
class ImuLink:
    """A link with the sensors on it that deliver, and the frame in which its motion is given."""

    link: int
    lead: int
    """The IMU whose frame it is, the first one of the link, whether it delivers or not."""
    L_H_B: Array
    """Pose of that frame in the link, shape (4, 4) [m]."""
    accelerometers: tuple[int, ...]
    """IMUs that deliver an acceleration."""
    gyroscopes: tuple[int, ...]
    """IMUs that deliver an angular velocity."""
    is_array: bool
    """Its accelerometers determine its angular acceleration."""


def find_imu_links(robot: Robot, bits: Bits) -> tuple[ImuLink, ...]:
    """Return the links with sensors that deliver, in the order of their first IMUs."""
    on: dict[int, list[int]] = {}
    for k, imu in enumerate(robot.imus):
        on.setdefault(imu.link, []).append(k)
    found = []
    for link, rows in on.items():
        accelerometers = tuple(k for k in rows if bits[k] & ACCELEROMETER)
        gyroscopes = tuple(k for k in rows if bits[k] & GYROSCOPE)
        if accelerometers or gyroscopes:
            lead = robot.imus[rows[0]]
            one = ImuLink(link, rows[0], lead.L_H_S, accelerometers, gyroscopes, is_array=False)
            if len(accelerometers) >= 3:
                _, positions = positions_in(one, robot.imus, accelerometers)
                apart = positions - positions.mean(axis=0)
                # Rms distance to the best line.
                squares = np.linalg.svd(apart, compute_uv=False)[1:] ** 2 / len(positions)
                one = replace(one, is_array=np.sqrt(squares.sum()) >= ARRAY_SPREAD)
            found.append(one)
    return tuple(found)


def positions_in(
    imu_link: ImuLink, imus: Sequence[Imu], rows: Sequence[int]
) -> tuple[Array, Array]:
    """
    Return where sensors of a link are in its frame.

    Returns rotations (n, 3, 3); positions (n, 3) [m].
    """
    B_H_L = np.linalg.inv(imu_link.L_H_B)
    # The frame is that of one of them: no round-off there.
    poses = np.array(
        [np.eye(4) if k == imu_link.lead else B_H_L @ imus[k].L_H_S for k in rows]
    ).reshape(-1, 4, 4)
    return poses[:, :3, :3], poses[:, :3, 3]


def weights(noise: ArrayLike) -> Array:
    """Return by how much each of several sensors counts in their mean; returns (n,)."""
    deviations = np.array(noise)
    exact = deviations == 0.0
    raw = exact.astype(np.float64) if exact.any() else (deviations.min() / deviations) ** 2
    shares: Array = raw / raw.sum()
    return shares


class SensorSum:
    """
    For each of some links a sum over its sensors, each with a matrix of its own.

    blocks (n, 3, 3).
    """

    def __init__(self, rows: Sequence[Sequence[int]], blocks: Sequence[Array]) -> None:
        self._n_imu_links = len(rows)
        self.rows = np.array([k for each in rows for k in each], dtype=np.intp)
        self.matrix_T = np.zeros((3 * len(self.rows), 3 * len(rows)))
        start = 0
        for b, matrices in enumerate(blocks):
            for matrix in matrices:
                self.matrix_T[start : start + 3, 3 * b : 3 * b + 3] = matrix.T
                start += 3

    def of(self, readings: Array) -> Array:
        """Return the sums; readings (..., n_imus, 3); returns (..., n_imu_links, 3)."""
        chosen = readings.take(self.rows, axis=-2)
        lead = readings.shape[:-2]
        sums: Array = chosen.reshape(*lead, 3 * len(self.rows)) @ self.matrix_T
        return sums.reshape(*lead, self._n_imu_links, 3)


def mean_of(imu_link: ImuLink, robot: Robot, kind: str) -> tuple[Array, Array]:
    """
    Return the weighted mean of sensors of a link in its frame, by the inverse of variances.

    Returns blocks (n, 3, 3); position (3,) [m].
    """
    rows = imu_link.accelerometers if kind == 'accelerometer' else imu_link.gyroscopes
    rotations, positions = positions_in(imu_link, robot.imus, rows)
    shares = weights([getattr(robot.imus[k], f'{kind}_noise') for k in rows])
    return shares[:, None, None] * rotations, shares @ positions


def array_of(imu_link: ImuLink, robot: Robot) -> tuple[Array, Array]:
    """
    Return the matrices from an array of accelerometers to the angular acceleration.

    Returns blocks (n, 3, 3); lever (3, 9).
    """
    rows = imu_link.accelerometers
    rotations, positions = positions_in(imu_link, robot.imus, rows)
    noise = np.array([robot.imus[k].accelerometer_noise for k in rows])
    # None counts nothing: the array would shrink.
    shares = weights(np.maximum(noise, LEAST_NOISE * noise.max()))
    apart = positions - shares @ positions
    normal = np.einsum('i,iab,iac->bc', shares, hat(apart), hat(apart))
    each = np.linalg.solve(normal, np.einsum('i,iab->iab', shares, hat(apart)))
    return each @ rotations, np.einsum('iab,ic->abc', each, positions).reshape(3, 9)
