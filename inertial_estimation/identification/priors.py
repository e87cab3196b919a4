# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Priors: strictly consistent parameters from a URDF, their weight, and their form as equations.

A URDF holds links without mass, points and sticks, and inertias that break the triangle inequality
by round-off. Their second moments are raised to those of a small ball; what no rigid body can have
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.solvers.divergence import entropic_rows, parameters_of
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import LARGEST_ARM, pseudo_inertia

SMALLEST_MASS = 1e-3
"""Mass that a link without one gets [kg]."""
SMALLEST_RADIUS = 5e-3
"""Radius of the ball whose second moments every link has at least [m]."""
MAX_MASSLESS_INERTIA = 1e-7
"""Norm of the inertia of a link without mass, as some URDFs have it for frames [kg m^2]."""
ROUND_OFF = 1e-9
"""Negative moments of inertia within this share of those about the link's origin count as zero."""
PRIOR_WEIGHT = 10.0
"""Independent equations that a URDF is worth that is nearly right."""


def widened(names: Sequence[str], parameters: Array) -> tuple[Array, tuple[str, ...]]:
    """Return strictly consistent parameters, (n_links, 10), and the links that were changed."""
    rows = [_widened(name, row) for name, row in zip(names, parameters, strict=True)]
    found = np.array(rows).reshape(len(names), 10)
    changed = (found != parameters).any(axis=1)
    return found, tuple(name for name, moved in zip(names, changed, strict=True) if moved)


def _widened(name: str, parameters: Array) -> Array:
    """Return the parameters of one link, (10,)."""
    if not np.isfinite(parameters).all():
        raise ModelError(f"prior of '{name}': NaN or infinity")
    mass, first = parameters[0], parameters[1:4]
    center = first / mass if mass else np.zeros(3)
    arm, size = float(np.linalg.norm(center)), float(np.linalg.norm(parameters[4:]))
    J = pseudo_inertia(parameters)
    moments, axes = np.linalg.eigh(J[:3, :3] - mass * np.outer(center, center))
    least = float(moments[0] + moments[1])
    for holds, what in (
        (mass >= 0, f'mass is {mass:g} kg'),
        (mass or not first.any(), 'first moment without mass'),
        (arm <= LARGEST_ARM, f'centre of mass {arm:g} m from the link, limit {LARGEST_ARM:g}'),
        (mass or size <= MAX_MASSLESS_INERTIA, 'inertia without mass'),
        (least >= -ROUND_OFF * size, f'moment of inertia is {least:.3g} kg m^2'),
    ):
        if not holds:
            raise ModelError(f"prior of '{name}': {what}")
    J[3, 3] = mass or SMALLEST_MASS
    floor = J[3, 3] * SMALLEST_RADIUS**2 / 5
    if mass and moments[0] >= floor:
        return parameters
    J[:3, :3] = (axes * np.maximum(moments, floor)) @ axes.T + mass * np.outer(center, center)
    return parameters_of(J)


def prior_model(
    rows: Callable[[Array, Array], tuple[Array, Array]],
    unknowns: Unknowns,
    prior: Array,
    near: Array,
    scales: Array | None,
    weight: float,
) -> Information:
    """
    Return equations whose half square is a weighted prior to second order.

    rows: of its `Distance`; near: parameters about which it is developed, (n_links, 10);
    scales: standard deviations of extras, (n_extras,).
    """
    n, n_inertial = len(unknowns), unknowns.n_inertial
    roots, targets = rows(near, prior)
    Y, y = np.zeros((n, n)), np.append(targets, np.zeros(n - n_inertial))
    Y[:n_inertial, :n_inertial] = block_diag(*roots)
    rest = np.arange(n_inertial, n)
    Y[rest, rest] = 0.0 if scales is None else 1.0 / scales
    size = np.sqrt(weight)
    return replace(Information.of(size * Y, size * y), count=0.0)


entropic_model = partial(prior_model, entropic_rows)
