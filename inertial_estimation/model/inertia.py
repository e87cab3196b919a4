# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters of a body and whether any body could have them [T Definition 6.2; W]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.arguments import numbers, stacked

Array = NDArray[np.float64]


def pseudo_inertia(parameters: Array) -> Array:
    """
    Return the pseudo-inertia J = [[Sigma, h], [h', m]] with Sigma = tr(I) / 2 1 - I [W].

    Parameters
    ----------
    parameters : ndarray, shape (..., 10)
        m, mc_x, mc_y, mc_z, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin in its axes
        [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 4, 4)

    """
    m, hx, hy, hz, ixx, ixy, iyy, ixz, iyz, izz = np.moveaxis(
        stacked('parameters', parameters, 10), -1, 0
    )
    half_trace = (ixx + iyy + izz) / 2
    rows = [
        [half_trace - ixx, -ixy, -ixz, hx],
        [-ixy, half_trace - iyy, -iyz, hy],
        [-ixz, -iyz, half_trace - izz, hz],
        [hx, hy, hz, m],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def consistency_margin(parameters: Array) -> Array:
    """
    Return the smallest eigenvalue of the pseudo-inertia: positive for a body with volume.

    Parameters
    ----------
    parameters : ndarray, shape (..., 10)
        As in `pseudo_inertia`.

    Returns
    -------
    ndarray, shape (...)
        Positive if and only if the parameters are strictly fully physically consistent.

    """
    return np.asarray(np.linalg.eigvalsh(pseudo_inertia(parameters))[..., 0], dtype=np.float64)


def inertia_complaint(parameters: Array) -> str:
    """
    Return what is wrong with the inertial parameters of one link, or an empty string.

    Parameters
    ----------
    parameters : ndarray, shape (10,)
        As in `pseudo_inertia`.

    Returns
    -------
    str

    """
    parameters = numbers('parameters', parameters, (10,), finite=False)
    mass = parameters[0]
    if not np.isfinite(parameters).all():
        return 'holds NaN or infinity'
    if not parameters.any():
        return 'has no mass and no inertia'
    if mass <= 0:
        return f'has a mass of {mass:g} kg'
    margin = float(consistency_margin(parameters))
    if margin <= 0:
        return f'is not fully physically consistent (pseudo-inertia eigenvalue {margin:.2g})'
    return ''
