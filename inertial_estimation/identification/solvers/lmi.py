# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares under the 4 x 4 LMI of consistent links [W 36-38] and bounds: primal-dual Newton.

    minimise  1/2 (|F u - t|^2 + rest)  +  weight * sum of tr S - log det (1 + S)
    subject to  1 + S >= margin of each link,  A u >= b

The weight may be zero. The matrices ``Z = 1 + S - margin`` of links and the slacks of bounds have
multipliers: at the solution ``Z Y = weight`` and ``s y = 0``. Newton's method on these products,
symmetrised as by [Helmberg, Rendl, Vanderbei, Wolkowicz 1996], stays fast where it is slow on the
logarithms themselves: with a weak prior, near the edge of the cone. While steps are short the
products are aimed at a larger value than in the end [Mehrotra 1992]. Where the prior rules, the
first step and the last ones are Newton's on the objective, which over the weight is
self-concordant: there its decrement bounds the distance to the minimum [Nesterov, Nemirovskii
1994]. Every iterate is strictly consistent and within the bounds; where the prior violates some,
a first program widens them all by one more variable, which it makes as small as it can. Bounds
that it leaves no room inside are equations, in whose null space steps are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import null_space

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Grade, LinearBounds, Problem
from inertial_estimation.identification.solvers.coordinates import Coordinates, solve_root
from inertial_estimation.identification.solvers.divergence import (
    components,
    edge,
    entropic_gradient,
    entropic_roots,
    symmetric,
)
from inertial_estimation.model.inertia import consistency_margin

OPTIMAL, TOLERANCE = 1e-9, 1e-12
"""
Gap to the least objective, over the objective plus what is round-off: of an optimal answer, and
that ends iterations at the edge of the cone or of bounds.
"""
LAST_DECREMENT = 5e-3
"""Newton decrement, over the root of the weight, from which one more step is enough."""
CERTAIN_DECREMENT = 0.5
"""Newton decrement, over the root of the weight, up to which it bounds the gap."""
MAX_EDGE_SHARE = 0.95
"""Share of the way to the edge of the cone that a step may go."""
LONG_STEP_AIM = 0.02
"""Share of their mean that products are aimed at when steps are long."""
FIRST_PRODUCT = 1e-3
"""Products at the start without a divergence, over the objective."""
FIRST_STEP = 1.1
"""Multiple of the first step that must be inside; products start larger until it is."""
SHORT_STEP, SHORT_STEP_AIM = 0.1, 4.0
"""Share of a step that is inside below which products are too small, and aim over their mean."""
MIN_SLACK = 1e-2
"""Slack of bounds at a start, over the size of the prior, if they leave so much room."""
WIDENING_COST = 1e8
"""Of bounds, over the divergence to the prior: more than their multipliers sum up to."""
MIN_ROOM = 1e-7
"""
Room inside of bounds, over the size of the prior; with less they are equations: products of rows
over the squares of their slacks would leave no digits of the others.
"""
DEPENDENT = 1e-9
"""Singular value over the largest of equations of which one follows from others."""
MAX_ITERATIONS = 200
MIN_MULTIPLIER = 1e-4
"""Multiplier over the largest of a bound that belongs to a contradiction."""


class Minimum(NamedTuple):
    """Answer of the iterations."""

    u: Array
    gap: float
    """To the least objective, over the objective plus what is round-off."""
    grade: Grade
    iterations: int
    multipliers: Array
    """Of the bounds."""


class _Shapes(NamedTuple):
    """Matrices of the links at some coordinates."""

    Z: Array
    root: Array
    """Cholesky factors of Z."""
    unroot: Array
    """Their inverses."""

    @property
    def inverse(self) -> Array:
        """Inverses of Z, which round-off leaves symmetric."""
        return np.swapaxes(self.unroot, -1, -2) @ self.unroot


class _State(NamedTuple):
    """Coordinates and their shapes, multipliers, slacks and multipliers of the bounds."""

    u: Array
    shapes: _Shapes
    Y: Array
    Y_root: Array
    s: Array
    y: Array

    @property
    def product(self) -> float:
        """Sum of the eigenvalues of ``Z Y``, from roots: round-off leaves it positive."""
        return float(np.sum((np.swapaxes(self.shapes.root, -1, -2) @ self.Y_root) ** 2))


def minimise_within(problem: Problem, at: Coordinates, weight: float, **options: Any) -> Minimum:
    """Return the minimum within the bounds of a problem."""
    bounds = LinearBounds.of(problem.bounds, problem.unknowns)
    none = np.zeros((0, len(at.drawn))), np.zeros(0)
    found = ConeNewton(at, weight, none, **options).minimise(np.zeros(len(at.drawn)))
    if (bounds.slack(at.unknowns(found.u)) >= 0.0).all():
        return found
    within = minimise_inside(bounds.names, at, scaled(bounds, at), weight, **options)
    return within._replace(iterations=found.iterations + within.iterations)


def scaled(bounds: LinearBounds, at: Coordinates) -> tuple[Array, Array]:
    """Return rows A, (k, n_u), of length one and limits b, (k,), of bounds on coordinates."""
    A = at.rows(bounds.rows)
    lengths = np.linalg.norm(A, axis=1)
    lengths[lengths == 0.0] = 1.0
    return A / lengths[:, None], -bounds.slack(at.origin) / lengths


def minimise_inside(
    names: Sequence[str],
    at: Coordinates,
    rows: tuple[Array, Array],
    weight: float,
    **options: Any,
) -> Minimum:
    """
    Return the minimum within rows, of which the first have names.

    The start is near the prior, within bounds that are narrowed as far as they can be. Those that
    cannot be are equations.
    """
    A, b = rows
    n, u, equal = len(at.drawn), np.zeros(len(at.drawn)), np.zeros(len(b), dtype=np.bool_)
    # Minimise the divergence and the cost of the widening beyond -MIN_SLACK, the last variable.
    F, t = np.eye(n + 1)[at.n_inertial :], np.zeros(n + 1 - at.n_inertial)
    F[-1] *= np.sqrt(WIDENING_COST / MIN_SLACK)
    t[-1] = -np.sqrt(WIDENING_COST * MIN_SLACK)
    extras = np.pad(at.extras, ((0, 0), (0, 1)))
    wider = replace(at, factor=F, target=t, rest=0.0, extras=extras)
    while not equal.all():
        less = np.column_stack([A, ~equal])
        first = np.append(u, max(float((b - A @ u).max()), 0.0) + 1.0)
        search = ConeNewton(
            wider, 1.0, (less, b), equal=equal, small=1.0, margin=options.get('margin', 0.0)
        )
        found = search.minimise(first)
        u, room = found.u[:-1], -found.u[-1]
        tight = found.multipliers > MIN_MULTIPLIER * found.multipliers.max()
        if room > MIN_ROOM:
            break
        if room < -MIN_ROOM:
            wrong = np.array(names)[tight[: len(names)]]
            raise ModelError(f'no consistent parameters keep these bounds: {", ".join(wrong)}')
        equal |= tight
        u -= np.linalg.lstsq(A[equal], (A @ u - b)[equal], rcond=DEPENDENT)[0]
    return ConeNewton(at, weight, rows, equal=equal, **options).minimise(u)


class ConeNewton:
    """
    Method for one problem.

    at: has F and t; rows: A (k, n_u) and b (k,); small: objective that is round-off;
    margin: share of the prior's pseudo-inertia; optimal: gap of an optimal answer.
    """

    def __init__(
        self,
        at: Coordinates,
        weight: float,
        rows: tuple[Array, Array],
        *,
        small: float,
        equal: Mask | None = None,
        margin: float = 0.0,
        optimal: float = OPTIMAL,
    ) -> None:
        self.at, self.weight, self.small, self.optimal = at, weight, small, optimal
        self.equal = np.zeros(len(rows[1]), dtype=np.bool_) if equal is None else equal
        self.A, self.b = (part[~self.equal] for part in rows)
        self.free: Array | None = None
        if self.equal.any():
            self.free = null_space(rows[0][self.equal], rcond=DEPENDENT)
        self.unit = (1.0 - margin) * np.eye(4)
        self.links = np.arange(at.n_inertial).reshape(-1, 10)
        self.smooth = weight > 0.0 and not len(self.b)

    def minimise(self, first: Array) -> Minimum:
        """Return the minimum, from strictly consistent coordinates within bounds, (n_u,)."""
        shapes = self._shapes(first)
        value, gradient = self.objective(first)
        state, root = self._start(first, shapes, value, gradient)
        least, best, step, last = np.inf, state, 0.0, False
        for steps in range(MAX_ITERATIONS + 1):
            if steps:
                root = self._root(state)
            squared, gap = self._gap(state, value, gradient, root)
            aim, slack_aim = self._aims(state, step, value)
            final = not self.weight or aim == self.weight
            # Gaps decrease at every step until round-off is all that is left of them.
            stalled = least <= OPTIMAL and gap >= least
            reached = stalled or (gap <= TOLERANCE and not self.smooth)
            if (self.smooth and not stalled) or (final and gap < least):
                least, best = gap, state
            if last or (final and reached):
                break
            last = final and self.smooth and squared <= LAST_DECREMENT**2 * self.weight
            try:
                state, step = self._step(state, gradient, root, aim, slack_aim)
            except np.linalg.LinAlgError:
                break
            value, gradient = self.objective(state.u)
        grade = Grade.STOPPED if steps == MAX_ITERATIONS else Grade.INACCURATE
        grade = Grade.OPTIMAL if least <= self.optimal else grade
        multipliers = np.zeros(len(self.equal))
        multipliers[~self.equal] = best.y
        return Minimum(best.u, least, grade, steps, multipliers)

    def _shapes(self, u: Array) -> _Shapes:
        """Return the shapes at some coordinates; raise where round-off leaves one outside."""
        S = self.at.shapes(u)
        Z = self.unit + S
        root = np.asarray(np.linalg.cholesky(Z), dtype=np.float64)
        inertial = self.at.unknowns(u)[: self.links.size].reshape(-1, 10)
        # Round-off may take either away first: steps need the root, the objective eigenvalues.
        least = [consistency_margin(inertial), 1.0 + np.linalg.eigvalsh(S)[:, 0]]
        if not np.min(least, initial=np.inf) > 0.0:
            raise np.linalg.LinAlgError
        return _Shapes(Z, root, np.asarray(np.linalg.inv(root)))

    def objective(self, u: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, (n_u,)."""
        at, S = self.at, self.at.shapes(u)
        shares = np.linalg.eigvalsh(S)
        residual = at.factor @ u - at.target
        gradient = at.factor.T @ residual
        gradient[: self.links.size] += self.weight * entropic_gradient(S).reshape(-1)
        distance = self.weight * float(np.sum(shares - np.log1p(shares)))
        return 0.5 * (float(residual @ residual) + at.rest) + distance, gradient

    def _gap(
        self, state: _State, value: float, gradient: Array, root: Array
    ) -> tuple[float, float]:
        """Return the squared decrement, and the gap to the least objective, relative."""
        force = gradient - state.y @ self.A
        if not self.weight:
            force[: self.links.size] -= components(state.Y).reshape(-1)
        squared = max(0.0, float(force @ self._solved(root, force)))
        gap = 0.5 * squared + float(state.s @ state.y)
        if squared > CERTAIN_DECREMENT**2 * self.weight:
            # Too far for the decrement to bound the gap: take the duality gap.
            gap += state.product
        return squared, gap / (value + self.small)

    def _start(
        self, u: Array, shapes: _Shapes, value: float, gradient: Array
    ) -> tuple[_State, Array]:
        """Return first iterates with a step that goes somewhere, and the root of their H."""
        slack = self.A @ u - self.b
        root_of_inverse = np.swapaxes(shapes.unroot, -1, -2)
        product = self.weight or FIRST_PRODUCT * (value + self.small)
        while True:
            Y, Y_root = product * shapes.inverse, np.sqrt(product) * root_of_inverse
            state = _State(u, shapes, Y, Y_root, slack, product / slack)
            root = self._root(state)
            du = -self._solved(root, gradient)
            reach = min(edge(shapes.root, self.at.shapes(du)), _edge_of_line(slack, self.A @ du))
            if reach >= FIRST_STEP:
                return state, root
            product *= max(3.0, 1.0 / reach)

    def _aims(self, state: _State, step: float, value: float) -> tuple[float, float]:
        """Return aims of the products of matrices, and of slacks."""
        share, n, k = max(LONG_STEP_AIM, (1.0 - step) ** 2), 4 * len(state.Y), len(self.b)
        least = 0.1 * TOLERANCE * (value + self.small) / (n + k)
        if 0.0 < step < SHORT_STEP and not (k and self.weight):
            share = SHORT_STEP_AIM
        slacks = max(least, share * float(state.s @ state.y) / max(k, 1))
        return max(self.weight or least, share * state.product / max(n, 1)), slacks

    def _root(self, state: _State) -> Array:
        """Return the upper triangle U with U'U the matrix of the step."""
        from scipy.linalg import block_diag
        from scipy.linalg.lapack import dpotrf

        H, n = self.at.gram.copy(), self.links.size
        # The matrix of B -> V B Y, symmetrised, by the components of B.
        images = state.shapes.inverse[:, None] @ symmetric(np.eye(10)) @ state.Y[:, None]
        blocks = components((images + np.swapaxes(images, -1, -2)) / 2)
        H[self.links[:, :, None], self.links[:, None, :]] += blocks
        weights = state.y / state.s
        if len(weights):
            H += (self.A.T * weights) @ self.A
        if self.free is not None:
            H = self.free.T @ H @ self.free
        root, failed = dpotrf(H.T, lower=0, overwrite_a=1)
        if failed:
            # Of the equations themselves, which have twice the digits of their product.
            roots = entropic_roots(state.shapes.Z - np.eye(4))
            product = state.product / max(4 * len(roots), 1)
            held = np.zeros((n, self.at.factor.shape[1]))
            held[:, :n] = np.sqrt(product) * block_diag(np.zeros((0, 0)), *roots)
            rows = np.vstack([self.at.factor, held, np.sqrt(weights)[:, None] * self.A])
            root = np.linalg.qr(rows if self.free is None else rows @ self.free, mode='r')
        return np.asarray(root)

    def _solved(self, root: Array, force: Array) -> Array:
        """Return the inverse of U'U times a force, (n_u,), along which equations stay true."""
        if self.free is None:
            return solve_root(root, force)
        return np.asarray(self.free @ solve_root(root, self.free.T @ force))

    def _step(
        self,
        state: _State,
        gradient: Array,
        root: Array,
        aim: float,
        slack_aim: float,
    ) -> tuple[_State, float]:
        """Return the next iterates and the shorter step; raise if round-off spoils them."""
        u, shapes, Y, Y_root, s, y = state
        force = gradient.copy()
        force[: self.links.size] -= (aim - self.weight) * components(shapes.inverse).reshape(-1)
        force -= (slack_aim / s) @ self.A
        du = -self._solved(root, force)
        change = self.at.shapes(du)
        product = shapes.inverse @ change @ Y
        dY = aim * shapes.inverse - Y - (product + np.swapaxes(product, -1, -2)) / 2
        ds = self.A @ du
        dy = slack_aim / s - y - y / s * ds
        primal = min(1.0, MAX_EDGE_SHARE * min(edge(shapes.root, change), _edge_of_line(s, ds)))
        if not np.isfinite(dy).all():
            raise np.linalg.LinAlgError
        dual = min(1.0, MAX_EDGE_SHARE * min(edge(Y_root, dY), _edge_of_line(y, dy)))
        u, Y, y = u + primal * du, Y + dual * dY, y + dual * dy
        s = np.maximum(self.A @ u - self.b, (1.0 - MAX_EDGE_SHARE) / 2 * s)
        there = self._shapes(u)
        try:
            Y_root = np.asarray(np.linalg.cholesky(Y))
        except np.linalg.LinAlgError:
            # Round-off in large multipliers; those of shapes at the centre are as good.
            Y = aim * there.inverse
            Y_root = np.asarray(np.sqrt(aim) * np.swapaxes(there.unroot, -1, -2))
        return _State(u, there, Y, Y_root, s, y), min(primal, dual)


def _edge_of_line(values: Array, change: Array) -> float:
    """Return the step at which the first of some positive numbers, (n,), becomes zero."""
    least = float((change / values).min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf
