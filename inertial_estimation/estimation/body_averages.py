# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What several sensors of one body say together: weighted means, and arrays [T 4.4.2]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.bodies import Body, array_weights, positions_in, weights
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]


class SensorSum:
    """
    For each of some bodies a sum over its sensors, each with a matrix of its own.

    blocks (n, 3, 3).
    """

    def __init__(self, rows: Sequence[Sequence[int]], blocks: Sequence[Array]) -> None:
        self._n_bodies = len(rows)
        self._rows = np.array([k for each in rows for k in each], dtype=np.intp)
        self._matrix_T = np.zeros((3 * len(self._rows), 3 * len(rows)))
        start = 0
        for b, matrices in enumerate(blocks):
            for matrix in matrices:
                self._matrix_T[start : start + 3, 3 * b : 3 * b + 3] = matrix.T
                start += 3

    def of(self, readings: Array) -> Array:
        """Return the sums; readings (..., n_imus, 3); returns (..., n_bodies, 3)."""
        chosen = readings.take(self._rows, axis=-2)
        lead = readings.shape[:-2]
        sums: Array = chosen.reshape(*lead, 3 * len(self._rows)) @ self._matrix_T
        return sums.reshape(*lead, self._n_bodies, 3)


def mean_of(body: Body, robot: Robot, kind: str) -> tuple[Array, Array]:
    """
    Return how sensors of a body are averaged in its frame, by the inverse of their variances.

    Returns blocks (n, 3, 3); position (3,) [m].
    """
    rows = body.accelerometers if kind == 'accelerometer' else body.gyroscopes
    rotations, positions = positions_in(body, robot.imus, rows)
    shares = weights([getattr(robot.imus[k], f'{kind}_noise') for k in rows])
    return shares[:, None, None] * rotations, shares @ positions


def array_of(body: Body, robot: Robot) -> tuple[Array, Array]:
    """
    Return how an array of accelerometers tells the angular acceleration of its body.

    Returns blocks (n, 3, 3); lever (3, 9).
    """
    rows = body.accelerometers
    rotations, positions = positions_in(body, robot.imus, rows)
    shares = array_weights([robot.imus[k].accelerometer_noise for k in rows])
    apart = positions - shares @ positions
    normal = np.einsum('i,iab,iac->bc', shares, hat(apart), hat(apart))
    each = np.linalg.solve(normal, np.einsum('i,iab->iab', shares, hat(apart)))
    return each @ rotations, np.einsum('iab,ic->abc', each, positions).reshape(3, 9)


def array_deviation(body: Body, robot: Robot) -> float:
    """Return the largest standard deviation of the angular acceleration that an array tells."""
    blocks, _ = array_of(body, robot)
    noise = np.array([robot.imus[k].accelerometer_noise for k in body.accelerometers])
    covariance = np.einsum('i,iab,icb->ac', noise**2, blocks, blocks)
    return float(np.sqrt(np.linalg.eigvalsh(covariance)[-1]))
