# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Priors from a robot description: what solvers ask for is a body with volume for every link.

Descriptions hold links without mass, points and sticks, and inertias that break the triangle
inequality because somebody rounded or guessed them. Their second moments are raised to those of
a small ball, which says next to nothing beside rows; the impossible is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.usable_parameters import LARGEST_ARM

Array = NDArray[np.float64]

SMALLEST_MASS = 1e-3
"""Mass that a link without one gets [kg]."""
SMALLEST_RADIUS = 5e-3
"""Radius of the ball whose second moments every link has at least [m]."""
SMALLEST_INERTIA = 1e-7
"""
Norm of an inertia tensor that a link without mass may have, as some descriptions of frames say
[kg m^2]: some ten times that of the ball of `SMALLEST_MASS` that it becomes.
"""
ROUND_OFF = 1e-9
"""Negative moments of inertia within this share of those about the link's origin count as zero."""


def widened(names: Sequence[str], parameters: Array) -> tuple[Array, tuple[str, ...]]:
    """
    Return a prior that is strictly fully physically consistent.

    parameters (n_links, 10); returns parameters (n_links, 10).
    """
    if parameters.shape != (len(names), 10):
        raise ShapeError('parameters', (len(names), 10), parameters.shape)
    rows = [_widened(name, row) for name, row in zip(names, parameters, strict=True)]
    found = np.array(rows).reshape(len(names), 10)
    assert (consistency_margin(found) > 0).all()
    same = [np.array_equal(a, b) for a, b in zip(found, parameters, strict=True)]
    return found, tuple(name for name, is_same in zip(names, same, strict=True) if not is_same)


def _widened(name: str, parameters: Array) -> Array:
    """Return the parameters of one link, (10,); the same ones where nothing is too small."""
    if not np.isfinite(parameters).all():
        raise _impossible(name, 'holds NaN or infinity')
    mass, first = parameters[0], parameters[1:4]
    if mass < 0:
        raise _impossible(name, f'has a mass of {mass:g} kg')
    if not mass and first.any():
        raise _impossible(name, 'has a first moment but no mass')
    center = first / mass if mass else np.zeros(3)
    arm = float(np.linalg.norm(center))
    if arm > LARGEST_ARM:
        raise _impossible(
            name,
            f'has its centre of mass {arm:g} m off its origin, expected up to {LARGEST_ARM:g}',
        )
    about_origin = _tensor(parameters)
    if not mass and np.linalg.norm(about_origin) > SMALLEST_INERTIA:
        raise _impossible(name, 'has moments of inertia but no mass')
    inertia = about_origin - mass * _point(center)
    least = np.linalg.eigvalsh(inertia)[0]
    if least < -ROUND_OFF * np.linalg.norm(about_origin):
        raise _impossible(
            name, f'has a moment of inertia of {least:.3g} kg m^2 about its centre of mass'
        )
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    total = mass or SMALLEST_MASS
    floor = total * SMALLEST_RADIUS**2 / 5
    if mass and moments[0] >= floor:
        return parameters
    second = (axes * np.maximum(moments, floor)) @ axes.T
    inertia = np.trace(second) * np.eye(3) - second + total * _point(center)
    return np.array([total, *first, *inertia[np.tril_indices(3)]])


def _tensor(parameters: Array) -> Array:
    """Return the inertia tensor of parameters, (3, 3)."""
    xx, xy, yy, xz, yz, zz = parameters[4:]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _point(p: Array) -> Array:
    """Return the inertia tensor of one kilogram at a point, (3, 3)."""
    return float(p @ p) * np.eye(3) - np.outer(p, p)


def _impossible(name: str, why: str) -> ModelError:
    """Return what to say of a prior that nobody can mean."""
    return ModelError(
        f"the prior of '{name}' {why}, which no body of a robot has; mend its inertial in the "
        'robot description'
    )
