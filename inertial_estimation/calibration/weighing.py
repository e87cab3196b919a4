# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a calibrated sensor says of the body beyond it: mass, centre of mass, roundness of its force.

A matrix that is right makes the weight of one body as long in every orientation, so that forces
lie on a sphere [T section 5.4].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]

FIRST_MOMENTS = np.array(hat(np.eye(3)))
"""Slopes of ``first moment x`` by each of its coordinates, shape (3, 3, 3)."""


class Weighed(NamedTuple):
    """Mass and first moment of a body."""

    mass: float
    """[kg]"""
    first_moment: Array
    """In the frame of the wrenches, shape (3,) [kg m]."""

    @property
    def centre(self) -> Array:
        """Centre of mass, shape (3,) [m]; NaN without mass."""
        return self.first_moment / self.mass if self.mass else np.full(3, np.nan)

    def less(self, other: Weighed) -> Weighed:
        """Return what a body has more than another one."""
        return Weighed(self.mass - other.mass, self.first_moment - other.first_moment)


def weight_matrix(mass: float, first_moment: Array) -> Array:
    """
    Return M, which takes gravity to the weight of a body [T 5.2b].

    mass [kg]; first_moment (3,) [kg m]; returns (6, 3).
    """
    return np.vstack([mass * np.eye(3), hat(np.asarray(first_moment, dtype=np.float64))])


def weigh(wrench_slopes: Array, gram: Array) -> Weighed:
    """
    Return the body whose weight comes closest to what a sensor reads.

    wrench_slopes (6, 3) [N, Nm per m/s^2]; gram (3, 3).
    """
    forces, moments = wrench_slopes[:3], wrench_slopes[3:]
    mass = float(np.trace(forces @ gram) / np.trace(gram))
    factor = np.linalg.cholesky(gram)
    columns = (FIRST_MOMENTS @ factor).reshape(3, 9).T
    first_moment = np.linalg.lstsq(columns, (moments @ factor).reshape(-1), rcond=None)[0]
    return Weighed(mass, first_moment)


def semiaxes(wrench_slopes: Array, gravity: float) -> Array:
    """
    Return the semi-axes of the ellipsoid of forces, which is a sphere if the matrix is right.

    wrench_slopes (6, 3); gravity [m/s^2]; returns (3,) [N].
    """
    return np.asarray(gravity * np.linalg.svd(wrench_slopes[:3], compute_uv=False))
