# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Primal-dual Newton method for equations with the entropic prior, and bounds.

    minimise  1/2 |F u - t|^2 + weight (sum of tr S - log det (1 + S) + 1/2 sum of drawn e^2)
    subject to  A u >= b

The matrices ``Z = 1 + S`` of links and the slacks of bounds have multipliers: at the solution
``Z Y = weight`` and ``s y = 0``. Newton's method on these products, symmetrised as by [Helmberg,
Rendl, Vanderbei, Wolkowicz 1996], stays fast where it is slow on the logarithms themselves: with
a weak prior, near the edge of the cone. While steps are short the products are aimed at a larger
value than in the end [Mehrotra 1992], and violated bounds are reached later: reached at once, they
would push links to the edge, where steps stay short. Where the prior rules, the first step and
the last ones are Newton's on the objective, which over the weight is self-concordant: there its
decrement bounds the distance to the minimum [Nesterov, Nemirovskii 1994]. Every iterate is
strictly consistent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.problem import Grade
from inertial_estimation.identification.solvers.coordinates import Coordinates, solve_root
from inertial_estimation.identification.solvers.divergence import (
    components,
    edge,
    entropic_gradient,
    symmetric,
)
from inertial_estimation.model.inertia import consistency_margin

OPTIMAL = 1e-9
"""Gap to the least objective, over the objective plus the weight, of an optimal answer."""
RESOLUTION = 1e-15
"""Such a gap is what round-off leaves."""
LAST_DECREMENT = 5e-3
"""Newton decrement, over the root of the weight, from which one more step is enough."""
CERTAIN_DECREMENT = 0.5
"""Newton decrement, over the root of the weight, up to which it bounds the gap."""
MAX_EDGE_SHARE = 0.95
"""Share of the way to the edge of the cone that a step may go."""
LONG_STEP_AIM = 0.02
"""Share of their mean that products are aimed at when steps are long."""
FIRST_STEP = 1.1
"""Multiple of the first step that must be inside; products start larger until it is."""
SHORT_STEP, SHORT_STEP_AIM = 0.1, 4.0
"""Share of a step that is inside below which products are too small, and aim over their mean."""
CENTERED = 0.1
"""Aims above this share of the products are at their centre before they are at the bounds."""
MIN_SLACK = 0.1
"""Slack that a bound starts with, over the size of the prior."""
VIOLATED = 1e-7
"""Violation of a bound that is not kept, over the size of the prior."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Answer of the iterations."""

    u: Array
    gap: float
    """To the least objective, over the objective plus the weight."""
    grade: Grade
    iterations: int
    missed: Indices
    """Indices of bounds that are not kept."""


class _Bodies(NamedTuple):
    """Matrices of the links at some coordinates."""

    S: Array
    shares: Array
    """Eigenvalues of S, shape (n_links, 4)."""
    root: Array
    """Cholesky factors of Z = 1 + S."""
    inverse: Array
    """Of Z."""


class _State(NamedTuple):
    """Coordinates and their bodies, multipliers, slacks and multipliers of the bounds."""

    u: Array
    bodies: _Bodies
    Y: Array
    Y_root: Array
    s: Array
    y: Array

    @property
    def mean_product(self) -> float:
        """Mean eigenvalue of ``Z Y``, from roots: round-off leaves it positive."""
        halves = np.swapaxes(self.bodies.root, -1, -2) @ self.Y_root
        return float(np.sum(halves**2)) / (4 * len(self.Y))


class ConeNewton:
    """Method for one problem; A (k, n_u); b (k,)."""

    def __init__(self, coordinates: Coordinates, weight: float, A: Array, b: Array) -> None:
        self.coordinates, self.weight = coordinates, weight
        self.A, self.b = A, b
        self.size = coordinates.n_inertial
        self.gram = coordinates.factor.T @ coordinates.factor
        self.drawn = coordinates.drawn[self.size :]
        self._links = np.arange(self.size).reshape(-1, 10)
        self._others = np.arange(self.size, len(self.gram))

    def minimise(self, first: Array, max_iterations: int, min_slack: float = MIN_SLACK) -> Minimum:
        """Return the minimum, from strictly consistent coordinates, (n_u,)."""
        # Round-off may leave a start outside, but never the prior, which is zero.
        starts = ((u, self._bodies(u)) for u in (first, np.zeros_like(first)))
        first, bodies = next((u, bodies) for u, bodies in starts if bodies is not None)
        value, gradient = self._objective(first, bodies)
        state, root = self._start(first, bodies, gradient, min_slack)
        step, last, steps = 0.0, False, 0
        while not last:
            if steps:
                root = self._root(state)
            force = gradient - state.y @ self.A
            squared = max(0.0, float(force @ solve_root(root, force)))
            gap = (0.5 * squared + float(state.s @ state.y)) / (value + self.weight)
            aim, slack_aim, reached = self._aims(state, step, value)
            missing = np.abs(self.A @ state.u - self.b - state.s).max(initial=0.0)
            final = aim == self.weight and missing <= VIOLATED
            end = OPTIMAL if len(self.b) else RESOLUTION
            if (final and gap <= end) or steps >= max_iterations:
                break
            following, step = self._step(state, gradient, root, aim, slack_aim, reached)
            if following is None:
                break
            last = final and not len(self.b) and squared <= LAST_DECREMENT**2 * self.weight
            state, steps = following, steps + 1
            value, gradient = self._objective(state.u, state.bodies)
        return self._answer(state, value, gradient, steps, steps >= max_iterations)

    def is_start(self, u: Array) -> bool:
        """Return true if bodies are inside, and so are their multipliers at the start."""
        bodies = self._bodies(u)
        return bodies is not None and cholesky(bodies.inverse) is not None

    def _bodies(self, u: Array) -> _Bodies | None:
        """Return the bodies at some coordinates, None where round-off leaves one outside."""
        S = self.coordinates.shapes(u)
        root = cholesky(np.eye(4) + S)
        inertial = self.coordinates.unknowns(u)[: self.size].reshape(-1, 10)
        # Round-off may take either away first: steps need the root, the objective eigenvalues.
        if root is None or not consistency_margin(inertial).min() > 0.0:
            return None
        shares = np.asarray(np.linalg.eigvalsh(S))
        if not shares.min() > -1.0:
            return None
        return _Bodies(S, shares, root, np.asarray(np.linalg.inv(np.eye(4) + S)))

    def _objective(self, u: Array, bodies: _Bodies) -> tuple[float, Array]:
        """Return objective and gradient, (n_u,), without the bounds."""
        rows, extras, shares = self.coordinates, u[self.size :], bodies.shares
        residual = rows.factor @ u - rows.target
        distance = np.sum(shares - np.log1p(shares)) + 0.5 * np.sum(self.drawn * extras**2)
        value = 0.5 * (residual @ residual + rows.rest) + self.weight * distance
        pull = np.concatenate([entropic_gradient(bodies.S).reshape(-1), self.drawn * extras])
        return float(value), rows.factor.T @ residual + self.weight * pull

    def _start(
        self, u: Array, bodies: _Bodies, gradient: Array, min_slack: float
    ) -> tuple[_State, Array]:
        """Return first iterates with a step that goes somewhere, and the root of their H."""
        slack = np.maximum(self.A @ u - self.b, min_slack)
        root_of_inverse = np.linalg.cholesky(bodies.inverse)
        product = self.weight
        while True:
            Y, Y_root = product * bodies.inverse, np.sqrt(product) * root_of_inverse
            state = _State(u, bodies, Y, Y_root, slack, product / slack)
            root = self._root(state)
            reach = edge(bodies.root, self.coordinates.shapes(-solve_root(root, gradient)))
            if reach >= FIRST_STEP:
                return state, root
            product *= max(3.0, 1.0 / reach)

    def _aims(self, state: _State, step: float, value: float) -> tuple[float, float, float]:
        """Return aims of both products, and the share of violated bounds to make up for."""
        share, mean = max(LONG_STEP_AIM, (1.0 - step) ** 2), state.mean_product
        if not len(self.b):
            short = 0.0 < step < SHORT_STEP
            return max(self.weight, (SHORT_STEP_AIM if short else share) * mean), 0.0, 1.0
        least = 0.1 * OPTIMAL * (value + self.weight) / len(self.b)
        slacks = max(least, share * float(state.s @ state.y) / len(self.b))
        return max(self.weight, share * mean), slacks, 1.0 - share if share > CENTERED else 1.0

    def _root(self, state: _State) -> Array:
        """Return the upper triangle U with U'U the matrix of the step."""
        from scipy.linalg.lapack import dpotrf

        H, basis = self.gram.copy(), symmetric(np.eye(10))
        # The matrix of B -> V B Y, symmetrised, by the components of B.
        images = state.bodies.inverse[:, None] @ basis @ state.Y[:, None]
        blocks = components((images + np.swapaxes(images, -1, -2)) / 2)
        H[self._links[:, :, None], self._links[:, None, :]] += blocks
        H[self._others, self._others] += self.weight * self.drawn
        if len(self.b):
            H += (self.A.T * (state.y / state.s)) @ self.A
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            S, mean = state.bodies.S, state.mean_product
            return self.coordinates.curvature_root(self.gram, S, mean)
        return np.asarray(root)

    def _step(
        self,
        state: _State,
        gradient: Array,
        root: Array,
        aim: float,
        slack_aim: float,
        reached: float,
    ) -> tuple[_State | None, float]:
        """Return the next iterates, None if round-off spoils them, and the shorter step."""
        u, bodies, Y, Y_root, s, y = state
        missing = reached * (self.A @ u - self.b - s)
        force = gradient.copy()
        force[: self.size] -= (aim - self.weight) * components(bodies.inverse).reshape(-1)
        force -= (slack_aim / s - y / s * missing) @ self.A
        du = -solve_root(root, force)
        change = self.coordinates.shapes(du)
        product = bodies.inverse @ change @ Y
        dY = aim * bodies.inverse - Y - (product + np.swapaxes(product, -1, -2)) / 2
        ds = self.A @ du + missing
        dy = slack_aim / s - y - y / s * ds
        primal = min(1.0, MAX_EDGE_SHARE * min(edge(bodies.root, change), _edge_of_line(s, ds)))
        dual = min(1.0, MAX_EDGE_SHARE * min(edge(Y_root, dY), _edge_of_line(y, dy)))
        u, Y, s, y = u + primal * du, Y + dual * dY, s + primal * ds, y + dual * dy
        there, Y_root_there, step = self._bodies(u), cholesky(Y), min(primal, dual)
        if there is None:
            return None, step
        if Y_root_there is None:
            # Round-off in large multipliers; those of bodies at the centre are as good.
            Y = aim * there.inverse
            Y_root_there = cholesky(Y)
        if Y_root_there is None:
            return None, step
        return _State(u, there, Y, Y_root_there, s, y), step

    def _answer(
        self, state: _State, value: float, gradient: Array, steps: int, exhausted: bool
    ) -> Minimum:
        """Return the answer with its grade."""
        root = self.coordinates.curvature_root(self.gram, state.bodies.S, self.weight)
        force = gradient - state.y @ self.A
        squared = max(0.0, float(force @ solve_root(root, force)))
        gap = 0.5 * squared + float(state.s @ state.y)
        if squared > CERTAIN_DECREMENT**2 * self.weight:
            # Too far for the decrement to bound the gap: take the duality gap.
            gap += 4 * len(state.Y) * state.mean_product
        gap /= value + self.weight
        missed = self.A @ state.u - self.b < -VIOLATED
        grade = Grade.STOPPED if exhausted else Grade.INACCURATE
        if gap <= OPTIMAL and not missed.any():
            grade = Grade.OPTIMAL
        return Minimum(state.u, gap, grade, steps, np.flatnonzero(missed))


def cholesky(matrices: Array) -> Array | None:
    """Return the Cholesky factors of symmetric matrices, None where round-off leaves none."""
    if not np.isfinite(matrices).all():
        return None
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        return None


def _edge_of_line(values: Array, change: Array) -> float:
    """Return the step at which the first of some positive numbers, (n,), becomes zero."""
    least = float((change / values).min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf
