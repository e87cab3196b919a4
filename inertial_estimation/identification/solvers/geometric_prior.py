# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the box of a link tells of its parameters: bounds, a middle, and how far off it may be.

About the box, in its axes, parameters of a body inside are bounded [A 17-21]. The lower bound of
the mass is ``max(0, m - dm)``; the variance is the square of the larger distance to a bound, and
its inverse is the weight [A 19, 22, 28 corrected].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.point_grids import PointGrid
from inertial_estimation.model.geometry import Box
from inertial_estimation.model.rigid_body import (
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.spatial import inverse_pose

Array = NDArray[np.float64]

MASS_SHARE, LEAST_MASS_ERROR = 0.5, 2.0
"""A mass may be wrong by this share, and by so many kilograms at least [A section V]."""


def mass_errors(masses: Array) -> Array:
    """
    Return by how much masses may be wrong, dm [A section V corrected].

    masses (n_links,) [kg]; returns (n_links,) [kg].
    """
    return np.maximum(MASS_SHARE * masses, LEAST_MASS_ERROR)


def middle_bodies(grids: Sequence[PointGrid], masses: Array, errors: Array | None = None) -> Array:
    """
    Return the prior of links of which only box and mass are known: the middle of the bounds.

    masses (n_links,) [kg]; errors (n_links,) [kg]; returns (n_links, 10).
    """
    widths = mass_errors(masses) if errors is None else errors
    found = []
    for grid, mass, error in zip(grids, masses, widths, strict=True):
        low, high = _bounds(grid.box, float(mass), float(error))
        found.append(np.linalg.solve(to_box(grid.box), (low + high) / 2))
    return np.array(found)


def prior_roots(
    grids: Sequence[PointGrid], prior: Array, errors: Array | None = None
) -> list[Array]:
    """
    Return the roots of the weights of a prior, W' W = W_phi [A 22, 27, 28 corrected].

    prior (n_links, 10); errors (n_links,) [kg]; returns (10, 10).
    """
    widths = mass_errors(prior[:, 0]) if errors is None else errors
    found = []
    for grid, parameters, error in zip(grids, prior, widths, strict=True):
        into = to_box(grid.box)
        low, high = _bounds(grid.box, float(parameters[0]), float(error))
        reference = into @ parameters
        deviation = np.maximum(high - reference, reference - low)
        found.append(into / deviation[:, None])
    return found


def to_box(box: Box) -> Array:
    """
    Return the map of a link's parameters to those about its box, in its axes [A 18].

    Returns (10, 10).
    """
    each = inertia_seen_from(spatial_inertia(np.eye(10)), inverse_pose(box.L_H_S))
    return parameters_of(each).T


def _bounds(box: Box, mass: float, error: float) -> tuple[Array, Array]:
    """Return the least and greatest parameters of a body about its box [A 19-21]."""
    x, y, z = box.half_lengths
    most = mass + error
    high = most * np.array(
        [1, x, y, z, y * y + z * z, x * y, x * x + z * z, x * z, y * z, x * x + y * y]
    )
    low = -high
    low[0] = max(0.0, mass - error)
    low[[4, 6, 9]] = 0.0
    return low, high
