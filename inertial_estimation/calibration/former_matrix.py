# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A matrix from added masses beside the one that was there before.

Of readings that are wrenches that one is the identity. Without any, the matrix that was found
tells them: its forces hardly mix and are of the size of the readings, and its moments are not far
smaller, whichever loads were exchanged and whatever the unit of their centres. Gauges mix forces,
and their moments are forces times the radius of the sensor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_masses import MatrixCalibration
from inertial_estimation.calibration.offset_in_situ import LENGTH_SCALE

Array = NDArray[np.float64]

OF_WRENCHES = 3.0
"""Times newtons, or one over it, that forces of wrenches may come out as: pounds make it 2.2."""
UNLIKE = 0.3
"""Share by which they may mix. Gauges of 32 real sensors mix them by 1.9 and more."""
LEAST_MOMENTS = 0.2
"""Of forces, over `LENGTH_SCALE`, that moments of wrenches are: 0.03 of those gauges at most."""


class Change(NamedTuple):
    """How a matrix differs from the former one, moments over `LENGTH_SCALE`."""

    largest: float
    """Of the wrench along some direction, as a share of it, by either of the two."""
    forces: float
    """Times those of the former one, in the mean of three directions."""
    moments: float

    def in_words(self) -> str:
        """Return it for a sentence."""
        return (
            f'up to {self.largest:.2g} times that one along some direction (forces are '
            f'{self.forces:.3g} times, moments {self.moments:.3g} times as large)'
        )

    def as_dict(self) -> dict[str, float]:
        """Return it for a machine."""
        return self._asdict()


def change(
    found: MatrixCalibration, former: Array, matrix: Array | None = None, *, turned: bool = False
) -> Change:
    """
    Return how a matrix differs from the former one.

    former (6, 6); matrix (6, 6).
    """
    ratio = ratio_to(found, former, matrix, turned=turned)
    both = (ratio, np.linalg.inv(ratio))
    largest = max(float(np.linalg.norm(one - np.eye(6), 2)) for one in both)
    return Change(largest, _mean_gain(ratio[:3, :3]), _mean_gain(ratio[3:, 3:]))


def ratio_to(
    found: MatrixCalibration, former: Array, matrix: Array | None = None, *, turned: bool = False
) -> Array:
    """
    Return a matrix over the former one.

    Returns (6, 6).
    """
    seen = found.matrix if matrix is None else matrix
    scale = np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)
    ratio: Array = scale[:, None] * (seen @ np.linalg.inv(former)) / scale
    if turned or not found.in_sensor_axes:
        # In the axes of an accelerometer that is turned in a way that nobody told.
        U, _, Vt = np.linalg.svd(ratio[:3, :3])
        # A rotation, so that the other side shows as the other sign.
        R = np.sign(np.linalg.det(U @ Vt)) * U @ Vt
        ratio = np.kron(np.eye(2), R.T) @ ratio
    return ratio


def prior_matrix(found: MatrixCalibration, former: Array | None = None) -> Array | None:
    """
    Return what a matrix is to be held against.

    former (6, 6); returns (6, 6).
    """
    if former is not None:
        return former
    return np.eye(6) if _are_wrenches(found) else None


def _are_wrenches(found: MatrixCalibration) -> bool:
    """Tell whether readings are wrenches, by what a matrix does with them."""
    ratio = ratio_to(found, np.eye(6))
    size = _mean_gain(ratio[:3, :3])
    if not 1.0 / OF_WRENCHES < size < OF_WRENCHES:
        return False
    plain = np.eye(3, 6)
    # With the other sign they are the wrench of the other side.
    mixed = min(float(np.linalg.norm(ratio[:3] / size - one, 2)) for one in (plain, -plain))
    moments = np.linalg.svd(ratio[3:, 3:], compute_uv=False) / size
    return bool(mixed < UNLIKE and moments.min() > LEAST_MOMENTS)


def _mean_gain(block: Array) -> float:
    """Return the geometric mean of the singular values."""
    values = np.maximum(np.linalg.svd(block, compute_uv=False), np.finfo(float).tiny)
    return float(np.exp(np.log(values).mean()))
