# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of inertial parameters along the manifold of bodies [M 20]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.principal_bodies import PAIRS, PrincipalBodies

Array = NDArray[np.float64]


def bending(bodies: PrincipalBodies, gradient: Array, free: NDArray[np.bool_]) -> Array:
    """
    Return what the curvature of the manifold adds to the Hessian.

    gradient (n_links, 10); free (n_links, 10); returns (n_links, 10, 10).
    """
    by_second = _by_second_moments(gradient)
    bend = np.zeros((len(gradient), 10, 10))
    mixed = gradient[:, 1:4] + 2.0 * np.einsum('lij,lj->li', by_second, bodies.center)
    bend[:, 0, 1:4] = bend[:, 1:4, 0] = mixed
    bend[:, 1:4, 1:4] = 2.0 * bodies.mass[:, None, None] * by_second
    pulls = np.einsum('lji,ljk,lki->li', bodies.axes, by_second, bodies.axes)
    for column, (i, j) in enumerate(PAIRS, 7):
        for here, other in ((i, j), (j, i)):
            gap = bodies.moments[:, other] - bodies.moments[:, here]
            turns = ~free[:, 4 + here] & (gap > 0.0)
            bend[turns, column, column] += 2.0 * pulls[turns, here] / gap[turns]
    return bend


def _by_second_moments(gradient: Array) -> Array:
    """Return the gradient by second moments of mass about the link's origin, (n_links, 3, 3)."""
    xx, xy, yy, xz, yz, zz = gradient[:, 4:].T
    rows = [[yy + zz, -xy / 2, -xz / 2], [-xy / 2, xx + zz, -yz / 2], [-xz / 2, -yz / 2, xx + yy]]
    return np.moveaxis(np.array(rows), (0, 1), (1, 2))
