# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A primal-dual Newton method for rows, the prior of bodies, and bounds.

    minimise  1/2 |F u - t|^2 + weight (sum of tr S - log det (1 + S) + 1/2 sum of drawn e^2)
    subject to  A u >= b

The bodies ``Z = 1 + S`` and the slacks of the bounds have multipliers: at the solution
``Z Y = weight`` and ``s y = 0``. Newton's method on these products, symmetrised as by [Helmberg,
Rendl, Vanderbei, Wolkowicz 1996], stays fast where it is slow on the logarithms themselves: with
a weak prior, next to bodies that cannot exist. While steps are short the products are aimed at
a larger value than in the end [Mehrotra 1992], and what bounds are missed by is left for later:
made up at once, it would push bodies to the edge of their cones, where steps stay short. Without
bounds products that are too small for that grow while steps are short. Where
the prior rules, the first step and the last ones are Newton's on the objective, which over the
weight is self-concordant: there its decrement bounds the distance to the minimum [Nesterov,
Nemirovskii 1994]. Every iterate is strictly consistent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.deviations import Curvature, solve_root
from inertial_estimation.identification.solvers.divergence import (
    components,
    edge,
    entropic_gradient,
    symmetric,
)
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]

IDENTITY: Array = np.eye(4)
"""The prior in whitened coordinates."""
OPTIMAL = 1e-9
"""Gap to the least objective, over the objective plus the weight, of an optimal answer."""
RESOLUTION = 1e-15
"""Such a gap is what round-off leaves."""
LAST = 5e-3
"""Newton decrement, over the root of the weight, from which one more step is enough."""
CERTAIN = 0.5
"""Newton decrement, over the root of the weight, up to which it bounds the gap."""
INSIDE = 0.95
"""Share of the way to the edge of the cone that a step goes at most."""
AIM = 0.02
"""Share of their mean that products are aimed at when steps are long."""
REACH = 1.1
"""Multiple of the first step that is to be inside; products start larger until it is."""
SHORT = 0.1
"""Share of a step that is inside below which the products are too small, without bounds."""
LARGER = 4.0
"""Times their mean that products are aimed at then, so that bodies leave the edge of the cone."""
CENTERED = 0.1
"""Aims above this share of the products are at their centre before they are at the bounds."""
ROOM = 0.1
"""Least slack that a bound starts with, as a share of the size of the prior."""
VIOLATED = 1e-7
"""A bound that is missed by more than this share of the size of the prior is not kept."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the iterations ended."""

    u: Array
    gap: float
    """Over the objective plus the weight."""
    grade: Grade
    iterations: int
    missed: NDArray[np.intp]
    """Indices of bounds that are not kept."""
    curvature: Curvature
    """Without the bounds."""


@dataclass(frozen=True, eq=False)
class _State:
    """Coordinates, multipliers of the bodies, slacks and multipliers of the bounds."""

    u: Array
    Y: Array
    s: Array
    y: Array


class _Aims(NamedTuple):
    """Where a step heads for."""

    bodies: float
    """Their products."""
    slacks: float
    """Theirs."""
    reached: float
    """Share of what slacks are off the coordinates by that the step makes up for."""


class ConeNewton:
    """One problem; A (k, n_u); b (k,)."""

    def __init__(self, coordinates: Coordinates, weight: float, A: Array, b: Array) -> None:
        self.coordinates, self.weight = coordinates, weight
        self.A, self.b = A, b
        self.size = coordinates.n_inertial
        self.gram = coordinates.factor.T @ coordinates.factor
        self.drawn = coordinates.drawn[self.size :]
        self._links = np.arange(self.size).reshape(-1, 10)
        self._others = np.arange(self.size, len(self.gram))

    def minimise(self, first: Array, max_iterations: int, room: float = ROOM) -> Minimum:
        """Return the minimum; first (n_u,)."""
        value, gradient = self.gradient(first)
        state, root = self._start(first, gradient, room)
        step, last, steps = 0.0, False, 0
        while not last:
            if steps:
                root = self._root(state)
            force = gradient - state.y @ self.A
            squared = max(0.0, float(force @ solve_root(root, force)))
            gap = (0.5 * squared + float(state.s @ state.y)) / (value + self.weight)
            aims = self._aims(state, step, value)
            end = OPTIMAL if len(self.b) else RESOLUTION
            final = (
                aims.bodies == self.weight and self._missing(state).max(initial=0.0) <= VIOLATED
            )
            if (final and gap <= end) or steps >= max_iterations:
                break
            following, step = self._step(state, gradient, root, aims)
            if not has_root(following.Y):
                # Round-off in large multipliers; those of bodies at the centre are as good.
                following = replace(following, Y=aims.bodies * self._inverse(following.u))
            if not self._sound(following):
                break
            last = final and not len(self.b) and squared <= LAST**2 * self.weight
            state, steps = following, steps + 1
            value, gradient = self.gradient(state.u)
        return self._answer(state, value, gradient, steps, steps >= max_iterations)

    def gradient(self, u: Array) -> tuple[float, Array]:
        """Return objective and gradient, without the bounds; u (n_u,); returns gradient (n_u,)."""
        rows, S, extras = self.coordinates, self._shapes(u), u[self.size :]
        residual = rows.factor @ u - rows.target
        shares = np.linalg.eigvalsh(S)
        distance = np.sum(shares - np.log1p(shares)) + 0.5 * np.sum(self.drawn * extras**2)
        value = 0.5 * (residual @ residual + rows.rest) + self.weight * distance
        pull = np.concatenate([entropic_gradient(S).reshape(-1), self.drawn * extras])
        return float(value), rows.factor.T @ residual + self.weight * pull

    def inside(self, u: Array) -> bool:
        """
        Return whether all bodies are strictly consistent, in the numbers that are given.

        u (n_u,).
        """
        inertial, shapes = self.coordinates.unknowns(u)[: self.size], self._shapes(u)
        # Round-off may take either away first: steps need the root, the objective eigenvalues.
        within = has_root(IDENTITY + shapes) and np.linalg.eigvalsh(shapes).min() > -1.0
        return bool(within and consistency_margin(inertial.reshape(-1, 10)).min() > 0.0)

    def is_start(self, u: Array) -> bool:
        """
        Return whether bodies are inside, and so are their multipliers at the start.

        u (n_u,).
        """
        return self.inside(u) and has_root(self._inverse(u))

    def _sound(self, state: _State) -> bool:
        """Return whether iterates are inside, in spite of round-off."""
        return has_root(state.Y) and self.inside(state.u)

    def _shapes(self, u: Array) -> Array:
        """Return the matrix S of each link."""
        return symmetric(u[: self.size].reshape(-1, 10))

    def _inverse(self, u: Array) -> Array:
        """Return the inverse of each link's body Z."""
        return np.asarray(np.linalg.inv(IDENTITY + self._shapes(u)), dtype=np.float64)

    def _missing(self, state: _State) -> Array:
        """Return by how much slacks are not those of the coordinates."""
        return np.asarray(np.abs(self.A @ state.u - self.b - state.s))

    def _start(self, u: Array, gradient: Array, room: float) -> tuple[_State, Array]:
        """Return first iterates with a step that goes somewhere, and the root of their H."""
        bodies, inverse = IDENTITY + self._shapes(u), self._inverse(u)
        slack = np.maximum(self.A @ u - self.b, room)
        product = self.weight
        while True:
            state = _State(u, product * inverse, slack, product / slack)
            root = self._root(state)
            reach = edge(bodies, self._shapes(-solve_root(root, gradient)))
            if reach >= REACH:
                return state, root
            product *= max(3.0, 1.0 / reach)

    def _aims(self, state: _State, step: float, value: float) -> _Aims:
        """Return what is aimed at next."""
        share = max(AIM, (1.0 - step) ** 2)
        mean = self._mean_product(state)
        bodies = max(self.weight, share * mean)
        if not len(self.b):
            if 0.0 < step < SHORT:
                bodies = max(self.weight, LARGER * mean)
            return _Aims(bodies, 0.0, 1.0)
        least = 0.1 * OPTIMAL * (value + self.weight) / len(self.b)
        slacks = max(least, share * float(state.s @ state.y) / len(self.b))
        return _Aims(bodies, slacks, 1.0 - share if share > CENTERED else 1.0)

    def _mean_product(self, state: _State) -> float:
        """Return the mean of the eigenvalues of ``Z Y`` of all bodies."""
        bodies = IDENTITY + self._shapes(state.u)
        return float(np.sum(bodies * state.Y)) / (4 * len(state.Y))

    def _root(self, state: _State) -> Array:
        """Return the upper triangle U with U'U the matrix of the step."""
        from scipy.linalg.lapack import dpotrf

        H = self.gram.copy()
        shapes = self._shapes(state.u)
        blocks = product_hessian(self._inverse(state.u), state.Y)
        H[self._links[:, :, None], self._links[:, None, :]] += blocks
        H[self._others, self._others] += self.weight * self.drawn
        if len(self.b):
            H += (self.A.T * (state.y / state.s)) @ self.A
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            # Of the rows themselves, which have twice the digits of their product.
            mean = self._mean_product(state)
            return Curvature.of(self.coordinates, self.gram, shapes, mean).root
        return np.asarray(root)

    def _step(
        self, state: _State, gradient: Array, root: Array, aims: _Aims
    ) -> tuple[_State, float]:
        """Return the next iterates and the shorter of both steps."""
        bodies, inverse = IDENTITY + self._shapes(state.u), self._inverse(state.u)
        missing = aims.reached * (self.A @ state.u - self.b - state.s)
        force = gradient.copy()
        force[: self.size] -= (aims.bodies - self.weight) * components(inverse).reshape(-1)
        force -= (aims.slacks / state.s - state.y / state.s * missing) @ self.A
        du = -solve_root(root, force)
        change = self._shapes(du)
        product = inverse @ change @ state.Y
        dY = aims.bodies * inverse - state.Y - (product + np.swapaxes(product, -1, -2)) / 2
        ds = self.A @ du + missing
        dy = aims.slacks / state.s - state.y - state.y / state.s * ds
        primal = min(1.0, INSIDE * edge(bodies, change), INSIDE * edge_of_line(state.s, ds))
        dual = min(1.0, INSIDE * edge(state.Y, dY), INSIDE * edge_of_line(state.y, dy))
        following = _State(
            state.u + primal * du, state.Y + dual * dY, state.s + primal * ds, state.y + dual * dy
        )
        return following, min(primal, dual)

    def _answer(
        self, state: _State, value: float, gradient: Array, steps: int, exhausted: bool
    ) -> Minimum:
        """Return how the iterations ended."""
        shapes = self._shapes(state.u)
        curvature = Curvature.of(self.coordinates, self.gram, shapes, self.weight)
        force = gradient - state.y @ self.A
        squared = max(0.0, float(force @ curvature.solve(force)))
        gap = 0.5 * squared + float(state.s @ state.y)
        if squared > CERTAIN**2 * self.weight:
            # Too far for the decrement to bound the gap: take the duality gap.
            gap += float(np.sum((IDENTITY + shapes) * state.Y))
        gap /= value + self.weight
        missed = self.A @ state.u - self.b < -VIOLATED
        grade = Grade.STOPPED if exhausted else Grade.INACCURATE
        if gap <= OPTIMAL and not missed.any():
            grade = Grade.OPTIMAL
        return Minimum(state.u, gap, grade, steps, np.flatnonzero(missed), curvature)


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


def edge_of_line(values: Array, change: Array) -> float:
    """
    Return the step at which the first of some positive numbers stops being positive.

    values (n,); change (n,).
    """
    least = float((change / values).min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf
