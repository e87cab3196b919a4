# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Priors from a robot description: what solvers ask for is a body with volume for every link.

Descriptions hold links without mass, points and sticks. These are widened to small bodies that
say next to nothing beside rows; a description that holds the impossible is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

Array = NDArray[np.float64]

SMALLEST_MASS = 1e-3
"""Mass that a link without one gets [kg]."""
SMALLEST_RADIUS = 5e-3
"""Radius of the ball that a point or stick is widened by [m]; a link without mass becomes it."""
SINGULAR = 1e-9
"""Eigenvalues of the pseudo-inertia within this share of the largest count as zero."""


def widened(names: Sequence[str], parameters: Array) -> tuple[Array, tuple[str, ...]]:
    """
    Return a prior that is strictly fully physically consistent.

    Parameters
    ----------
    names : sequence of str
        Of the links.
    parameters : ndarray, shape (n_links, 10)
        As in `model.inertia`, say of a robot description.

    Returns
    -------
    parameters : ndarray, shape (n_links, 10)
        The same but for points, sticks and links without mass.
    changed : tuple of str
        Names of those.

    Raises
    ------
    ShapeError
        If there are not ten parameters for each name.
    ModelError
        If the inertia of a link is impossible: negative, or NaN.

    """
    if parameters.shape != (len(names), 10):
        raise ShapeError('parameters', (len(names), 10), parameters.shape)
    if not np.isfinite(parameters).all():
        bad = [n for n, row in zip(names, parameters, strict=True) if not np.isfinite(row).all()]
        raise ModelError(f'the prior of {", ".join(bad)} holds NaN or infinity')
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(parameters))
    limits = SINGULAR * np.abs(eigenvalues).max(axis=-1)
    smallest = eigenvalues[:, 0]
    impossible = [
        f'{name} ({value:.2g})'
        for name, value, limit in zip(names, smallest, limits, strict=True)
        if value < -limit
    ]
    if impossible:
        raise ModelError(
            'no body has the prior of these links (smallest eigenvalue of the pseudo-inertia): '
            f'{", ".join(impossible)}; mend their inertials in the robot description'
        )
    thin = smallest <= limits
    found = np.where(thin[:, None], parameters + _ball(parameters[:, 0]), parameters)
    assert (consistency_margin(found) > 0).all()
    return found, tuple(name for name, is_thin in zip(names, thin, strict=True) if is_thin)


def _ball(masses: Array) -> Array:
    """Return what widens bodies of some masses: the inertia of a ball, and a mass if none."""
    added = np.zeros((len(masses), 10))
    added[:, 0] = np.where(masses > 0, 0.0, SMALLEST_MASS)
    total = np.maximum(masses, SMALLEST_MASS)
    for diagonal in (4, 6, 9):
        added[:, diagonal] = 0.4 * total * SMALLEST_RADIUS**2
    return added
