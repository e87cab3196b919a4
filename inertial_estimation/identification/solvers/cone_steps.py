# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How far steps in cones go, and the matrix of their products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.divergence import components, symmetric

Array = NDArray[np.float64]


def product_hessian(V: Array, Y: Array) -> Array:
    """
    Return the matrix of ``B -> V B Y``, symmetrised, by the components of B.

    V, Y (n, 4, 4); returns (n, 10, 10).
    """
    basis = symmetric(np.eye(10))
    images = V[:, None] @ basis @ Y[:, None]
    return components((images + np.swapaxes(images, -1, -2)) / 2)


def has_root(matrices: Array) -> bool:
    """
    Return whether symmetric matrices have a Cholesky factor in spite of round-off.

    matrices (n, m, m).
    """
    if not np.isfinite(matrices).all():
        return False
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return True


def edge(bodies: Array, change: Array) -> float:
    """
    Return the step at which the first of some matrices stops being positive definite.

    bodies (n, 4, 4); change (n, 4, 4).
    """
    root = np.linalg.cholesky(bodies)
    half = np.linalg.solve(root, change)
    rates = np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, -1, -2)))
    least = float(rates.min())
    return -1.0 / least if least < 0.0 else np.inf


def edge_of_line(values: Array, change: Array) -> float:
    """
    Return the step at which the first of some positive numbers stops being positive.

    values (n,); change (n,).
    """
    least = float((change / values).min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf


def solve_root(root: Array, vector: Array) -> Array:
    """
    Return the inverse of U'U times a vector.

    root (n, n); vector (n,); returns (n,).
    """
    from scipy.linalg.blas import dtrsv

    return np.asarray(dtrsv(root, dtrsv(root, vector, trans=1)))
