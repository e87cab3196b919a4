# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares of many variables with floors, and rows that bound their unknowns.

    minimise  1/2 |A x - b|^2 + 1/2 sum d (v - v0)^2,   x = X v,   v >= floor,  C v >= limits
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.linear_bounds import LinearBounds

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

AT_FLOOR = 1e-11
"""By how much a bound may be missed in round-off, in units of the scaled variables."""
REFINEMENTS = 2
"""Of solutions of linear equations."""


@dataclass(frozen=True, eq=False)
class BoundedProblem:
    """What is to be minimised; strictly convex."""

    A: Array
    """Shape (r, n)."""
    b: Array
    """Shape (r,)."""
    X: Array
    """Unknowns from variables, shape (n, k)."""
    d: Array
    """Positive, shape (k,)."""
    v0: Array
    """Shape (k,)."""
    floor: Array
    """Least value of each variable, minus infinity if there is none, shape (k,)."""
    bounds: LinearBounds
    """Of the unknowns x."""

    @cached_property
    def M(self) -> Array:
        """Rows of the variables, shape (r, k)."""
        return np.asarray(self.A @ self.X)

    @cached_property
    def _sizes(self) -> Array:
        """Largest entry of each bound's row, shape (m,)."""
        sizes = np.abs(self.bounds.rows @ self.X).max(axis=1, initial=0.0)
        return np.where(sizes > 0.0, sizes, 1.0)

    @cached_property
    def C(self) -> Array:
        """Bounds as rows of the variables, each scaled to a largest entry of one, (m, k)."""
        return np.asarray(self.bounds.rows @ self.X / self._sizes[:, None])

    @cached_property
    def limits(self) -> Array:
        """Of the rows C, shape (m,)."""
        return np.asarray(self.bounds.limits / self._sizes)

    def gradient(self, v: Array) -> Array:
        """V (k,); returns (k,)."""
        return np.asarray(self.M.T @ (self.M @ v - self.b) + self.d * (v - self.v0))

    def violation(self, v: Array, y: Array) -> float:
        """
        Return by how much variables miss the conditions of optimality.

        v (k,); y (m,).
        """
        size = float(np.abs(self.gradient(np.zeros(len(v)))).max()) or 1.0
        gradient = (self.gradient(v) - self.C.T @ y) / size
        left = np.minimum(gradient, v - self.floor)
        slack = self.C @ v - self.limits
        apart = np.minimum(np.abs(y) / size, np.abs(slack))
        wrong = np.abs(left).max(), (-slack).max(initial=0.0), apart.max(initial=0.0)
        return float(max(*wrong, (-y / size).max(initial=0.0)))


def inverse(rows: Array, diagonal: Array) -> Callable[[Array], Array]:
    """
    Return the map by the inverse of ``rows' rows + diagonal`` [Woodbury], with refinement.

    rows (r, k); diagonal (k,).
    """
    from scipy.linalg import cho_factor, cho_solve

    root = np.sqrt(diagonal)[:, None]
    W = rows / root.T
    S = np.eye(len(W)) + W @ W.T
    sizes = np.sqrt(np.diag(S))[:, None]
    factor = cho_factor(S / sizes / sizes.T)

    def once(scaled: Array) -> Array:
        return np.asarray(scaled - W.T @ (cho_solve(factor, (W @ scaled) / sizes) / sizes))

    def refined(right: Array) -> Array:
        scaled = right / root
        found = once(scaled)
        left = scaled - found - W.T @ (W @ found)
        for _ in range(REFINEMENTS):
            better = found + once(left)
            now = scaled - better - W.T @ (W @ better)
            if not np.linalg.norm(now) < np.linalg.norm(left):
                break
            found, left = better, now
        return np.asarray(found / root)

    return refined
