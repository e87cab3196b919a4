# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Physical consistency of links as linear matrix inequalities [S 16-28; W].

The parameters of a link belong to a body of some mass distribution if and only if its 4x4
pseudo-inertia is positive semidefinite.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.solvers.conic import Block, Kind, matrix, vector
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia, spatial_inertia

ZERO_ENTRY = 1e-13
"""Smaller entries of whitened matrices, over the largest, are round-off."""


class Consistency(str, Enum):
    """Consistency that is asked of the parameters of a link."""

    PHYSICAL = 'physical'
    """Positive mass and positive inertia about the centre of mass: the 6x6 cone [S 17]."""
    FULL = 'full'
    """The triangle inequality as well: the 4x4 cone [W; T Definition 6.2]."""

    def matrix(self, parameters: Array) -> Array:
        """Return the matrices, (..., k, k), that must be positive semidefinite."""
        return (
            pseudo_inertia(parameters) if self is Consistency.FULL else spatial_inertia(parameters)
        )

    def margins(self, parameters: Array) -> Array:
        """Return their smallest eigenvalues, (...)."""
        return np.asarray(np.linalg.eigvalsh(self.matrix(parameters))[..., 0], dtype=np.float64)

    def rows(self, congruence: Array) -> Array:
        """Return the map of parameters to their matrix C M C' as a vector; C (..., k, k)."""
        C = congruence[..., None, :, :]
        return np.swapaxes(vector(C @ self.matrix(np.eye(10)) @ np.swapaxes(C, -1, -2)), -1, -2)


def body_block(
    unknowns: Unknowns, prior: Array, maps: Array, n: int, consistency: Consistency, margin: float
) -> Block:
    """Return the matrix inequalities of all links; prior (n_links, 10); maps (n_links, 10, 10)."""
    from scipy.sparse import csc_array

    # About one at the prior, whatever its size and place.
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(prior)))
    dense = consistency.rows(whiten) @ maps
    largest = np.abs(dense).max(axis=(1, 2), keepdims=True)
    dense[np.abs(dense) < ZERO_ENTRY * largest] = 0.0
    unit = (1.0 - margin) * vector(np.eye(whiten.shape[-1]))
    dense /= largest
    k, m, _ = dense.shape
    link, row, column = places = np.nonzero(dense)
    G = csc_array((dense[places], (m * link + row, 10 * link + column)), (k * m, n))
    return Block(unknowns.links, Kind.SEMIDEFINITE, G, (unit / largest[:, 0]).reshape(-1))


def drawn_inside(bodies: Block, x: Array) -> Array:
    """Move links that are outside of their cones toward the prior; x (n,); returns (n,)."""
    n_links = len(bodies.labels)
    changes = matrix((bodies.G @ x).reshape(n_links, -1))
    least = np.linalg.eigvalsh(changes)[:, 0]
    room = matrix(bodies.h.reshape(n_links, -1))[:, 0, 0]
    shares = np.where(least < -room, room / np.maximum(-least, room), 1.0)
    drawn = x.copy()
    drawn[: 10 * n_links] *= np.repeat(shares, 10)
    return drawn
