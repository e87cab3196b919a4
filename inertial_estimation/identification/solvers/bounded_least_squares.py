# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounded least squares to round-off.

    minimise  1/2 |A x - b|^2 + 1/2 sum d (v - v0)^2,   x = X v,   v >= floor,  C v >= limits

Clarabel finds the active bounds, with which as equations the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.identification.solvers.conic import Block, Kind, minimise
from inertial_estimation.identification.solvers.linear_bounds import (
    LinearBounds,
    require_compatible,
)

ROUNDS = 5
"""Of active sets: the first or second is mostly right."""
ROUND_OFF = 1e-11
"""Of scaled variables at a bound."""
INTERIOR_POINT = 1e-12
"""Tolerance of Clarabel, for which multipliers and slacks are far apart."""
DEPENDENT = 1e-12
"""Singular values of active bounds below this share of the largest repeat each other."""


@dataclass(frozen=True, eq=False)
class BoundedProblem:
    """A strictly convex problem of n unknowns and k variables."""

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
    """Lower bound of each variable, or minus infinity, shape (k,)."""
    bounds: LinearBounds
    """Of the unknowns x."""

    @cached_property
    def M(self) -> Array:
        """Equations of the variables, shape (r, k)."""
        return np.asarray(self.A @ self.X)

    @cached_property
    def scales(self) -> Array:
        """Largest entry of each bound, shape (m,)."""
        sizes = np.abs(self.bounds.rows @ self.X).max(axis=1, initial=0.0)
        return np.where(sizes > 0.0, sizes, 1.0)

    @cached_property
    def C(self) -> Array:
        """Bounds of the variables, with a largest entry of one, shape (m, k)."""
        return np.asarray(self.bounds.rows @ self.X / self.scales[:, None])

    @cached_property
    def limits(self) -> Array:
        """Shape (m,)."""
        return np.asarray(self.bounds.limits / self.scales)

    def gradient(self, v: Array, y: Array) -> Array:
        """Return the gradient of the Lagrangian, (k,); multipliers y (m,)."""
        slope = self.M.T @ (self.M @ v - self.b) + self.d * (v - self.v0)
        return np.asarray(slope - self.C.T @ y)

    def rated(self, v: Array, y: Array, iterations: int = 0) -> Fitted:
        """Move variables to their floor and rate them; multipliers y (m,)."""
        v = np.maximum(v, self.floor)
        size = float(np.abs(self.gradient(np.zeros(len(v)), 0.0 * y)).max()) or 1.0
        left = np.minimum(self.gradient(v, y) / size, v - self.floor)
        slack = self.C @ v - self.limits
        apart = np.minimum(np.abs(y) / size, np.abs(slack))
        worst = float(np.concatenate([np.abs(left), -slack, apart, -y / size]).max())
        # Clarabel's numbers may be NaN where it fails.
        return Fitted(v, worst if np.isfinite(worst) else np.inf, iterations)


class Fitted(NamedTuple):
    """Variables at or above their floor."""

    v: Array
    """Shape (k,)."""
    optimality: float
    """Largest violation of the conditions of optimality."""
    iterations: int


def fit_bounded(problem: BoundedProblem) -> Fitted:
    """Minimise."""
    best, pressed, active = _interior_point(problem)
    used = best.iterations
    for _ in range(ROUNDS):
        used += 1
        v, y = _solve(problem, pressed, active)
        best = min(best, problem.rated(v, y), key=lambda fitted: fitted.optimality)
        at_floor = np.where(pressed, problem.gradient(v, y) > 0.0, v < problem.floor - ROUND_OFF)
        at_limit = np.where(active, y > 0.0, problem.C @ v < problem.limits - ROUND_OFF)
        if (at_floor == pressed).all() and (at_limit == active).all():
            break
        pressed, active = at_floor, at_limit
    return best._replace(iterations=used)


def _solve(problem: BoundedProblem, pressed: Mask, active: Mask) -> tuple[Array, Array]:
    """
    Return variables (k,) and multipliers (m,) with the active bounds as equations.

    Free variables s, in units of 1 / sqrt(d), minimise ``|W s - r|^2 + |s|^2`` with ``G s = g``,
    by QR of [W'; 1].
    """
    from scipy.linalg import solve_triangular

    free = ~pressed
    root = np.sqrt(problem.d[free])
    v = np.where(pressed, problem.floor, problem.v0)
    W, r = problem.M[:, free] / root, problem.b - problem.M @ v
    G, g = problem.C[active][:, free] / root, problem.limits[active] - problem.C[active] @ v
    left, sizes, axes = np.linalg.svd(G, full_matrices=False)
    rank = int(np.count_nonzero(sizes > DEPENDENT * sizes.max(initial=0.0)))
    left, sizes, axes = left[:, :rank], sizes[:rank], axes[:rank]
    fixed = (left.T @ g) / sizes
    s = fixed @ axes
    inside = W - (W @ axes.T) @ axes
    Q, R = np.linalg.qr(np.vstack([inside.T, np.eye(len(W))]))
    s = s + Q[: len(s)] @ solve_triangular(R, r - W @ s, trans='T')
    v[free] += (s + (fixed - axes @ s) @ axes) / root
    y = np.zeros(len(active))
    y[active] = left @ ((axes @ (problem.gradient(v, y)[free] / root)) / sizes)
    return v, y


def _interior_point(problem: BoundedProblem) -> tuple[Fitted, Mask, Mask]:
    """Return Clarabel's solution, with the floors and bounds that are active there."""
    from scipy.sparse import block_diag, csc_array, diags, hstack, identity

    n, k = problem.X.shape
    H = problem.A.T @ problem.A
    # With the unknowns beside the variables the program is sparse; second derivatives of one.
    sizes = np.sqrt(np.diag(H))
    scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    floored = np.flatnonzero(np.isfinite(problem.floor))
    P = csc_array(block_diag([np.triu(H * scale * scale[:, None]), diags(problem.d)]))
    q = np.concatenate([-scale * (problem.A.T @ problem.b), -problem.d * problem.v0])

    def of_variables(G: Array | csc_array) -> csc_array:
        return csc_array(hstack([csc_array((G.shape[0], n)), G]))

    points = csc_array(hstack([-identity(n), csc_array(problem.X / scale[:, None])]))
    floors = of_variables(csc_array(identity(k))[floored])
    blocks = [
        Block(('points',), Kind.ZERO, points, np.zeros(n)),
        Block(('floors',), Kind.NONNEGATIVE, floors, -problem.floor[floored]),
        Block(problem.bounds.names, Kind.NONNEGATIVE, of_variables(problem.C), -problem.limits),
    ]
    found = minimise(P, q, blocks, tolerance=INTERIOR_POINT)
    if not found.feasible:
        require_compatible(blocks[:2], blocks[2])
    pressed = np.zeros(k, dtype=np.bool_)
    pressed[floored] = found.multipliers[1] > found.slacks[1]
    active = found.multipliers[2] > found.slacks[2]
    y = np.maximum(found.multipliers[2], 0.0)
    return problem.rated(found.x[n:], y, found.iterations), pressed, active
