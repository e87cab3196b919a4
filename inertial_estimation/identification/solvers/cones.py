# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which inertial parameters a body can have, as linear matrix inequalities.

Either cone is the set of parameters pi for which a symmetric matrix, linear in pi, is positive
semidefinite: the pseudo-inertia for bodies with mass anywhere [W], the spatial inertia for those
that only have positive kinetic energy [S 17]. The second one is larger: it lacks the triangle
inequality of the principal moments.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]


class Consistency(str, Enum):
    """What is asked of the parameters of a link."""

    PHYSICAL = 'physical'
    """Positive mass and positive inertia about the centre of mass: the 6x6 cone [S 17]."""
    FULL = 'full'
    """The triangle inequality as well: the 4x4 cone [W; T Definition 6.2]."""

    def matrix(self, parameters: Array) -> Array:
        """
        Return the matrix that has to be positive semidefinite.

        parameters (..., 10); returns (..., 4, 4).
        """
        return pseudo_inertia(parameters) if self is Consistency.FULL else spatial(parameters)

    def margins(self, parameters: Array) -> Array:
        """
        Return the smallest eigenvalue of that matrix.

        parameters (..., 10); returns (...).
        """
        return np.asarray(np.linalg.eigvalsh(self.matrix(parameters))[..., 0], dtype=np.float64)

    def rows(self, congruence: Array | None = None) -> Array:
        """
        Return the map of the parameters of a link to its matrix as a vector.

        congruence (..., k, k); returns (..., k (k + 1).
        """
        matrices = self.matrix(np.eye(10))
        if congruence is not None:
            C = congruence[..., None, :, :]
            matrices = C @ matrices @ np.swapaxes(C, -1, -2)
        return np.swapaxes(vector(matrices), -1, -2)


def spatial(parameters: Array) -> Array:
    """
    Return the spatial inertia of links, [angular; linear] [S 17].

    parameters (..., 10); returns (..., 6, 6).
    """
    m, _, _, _, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(parameters), -1, 0)
    inertia = np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), (0, 1), (-2, -1))
    moment = hat(np.asarray(parameters)[..., 1:4])
    mass = m[..., None, None] * np.eye(3)
    return np.concatenate(
        [
            np.concatenate([inertia, -moment], axis=-1),
            np.concatenate([moment, mass], axis=-1),
        ],
        axis=-2,
    )


def vector(matrices: Array) -> Array:
    """
    Return symmetric matrices as vectors of the same inner product.

    matrices (..., k, k); returns (..., k (k + 1).
    """
    rows, columns, factors = _triangle(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns] * factors)


def matrix(vectors: Array) -> Array:
    """
    Undo `vector`.

    vectors (..., k (k + 1); returns (..., k, k).
    """
    size = int(np.sqrt(2 * vectors.shape[-1]))
    rows, columns, factors = _triangle(size)
    full = np.zeros((*vectors.shape[:-1], size, size))
    full[..., rows, columns] = full[..., columns, rows] = vectors / factors
    return full


@cache
def _triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return rows, columns and factors of the upper triangle, column by column."""
    columns, rows = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))
