# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identification on the manifold of consistent parameters [M 20-24].

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

over a triangle B of each link, ``1 + S = B B'`` in the metric of the prior (`divergence`): all
triangles are consistent. Steps are damped Newton's with exact second derivatives, from the prior
on, so that the answer is usable whenever the steps end. They go along a line of parameters, in
which the equations are linear, or of triangles, whichever is better. The weight decreases to the
stated one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.problem import Grade, Problem
from inertial_estimation.identification.solvers.answer import Answer, Method
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    ENTROPIC,
    components,
    entropic_gradient,
    entropic_hessian,
    symmetric,
)

OPTIMAL, ROUND_OFF = 1e-9, 1e-15
"""Decrease that Newton's step predicts, over the objective: of an optimal answer, and no more."""
DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-4, 1e-10, 1e12
"""Of steps, over the diagonal of the Hessian: least after one that failed, least, and greatest."""
MIN_CURVATURE = 1e-9
"""Least element of that diagonal, over its mean."""
FIRST_WEIGHT = 1e-2
"""Over the objective at the prior."""
NEXT_WEIGHT = 0.1
"""Predicted decrease over the weight from which the next one is a tenth."""
MAX_EDGE_SHARE = 0.9
"""Share of the way to the edge of the cone that a step may go."""
MIN_SHARE = 2e-6
"""Eigenvalue over the prior of a link at the edge of consistency."""
MAX_STEPS = 200
_ROW, _COLUMN = np.tril_indices(4)
_UNIT = np.zeros((10, 4, 4))
_UNIT[range(10), _ROW, _COLUMN] = 1.0
_SAME_COLUMN = _COLUMN[:, None] == _COLUMN


def _manifold(problem: Problem, weight: float) -> Answer:
    objective = ManifoldObjective(Coordinates.of(problem), weight)
    best, used, stuck = _descend(objective)
    at, u, decrease = objective.at, objective.coordinates(best.y), _newton(best, MIN_DAMPING)[1]
    shapes = at.shapes(u)
    shares = 1.0 + np.linalg.eigvalsh(shapes)[:, 0]
    at_edge = ', '.join(np.array(problem.unknowns.links)[shares < MIN_SHARE])
    optimality = decrease / best.value if best.value else 0.0
    grade = Grade.INACCURATE if stuck else Grade.STOPPED
    grade = Grade.OPTIMAL if optimality <= OPTIMAL else grade
    return Answer(
        at.unknowns(u), optimality, grade, used,
        (f'at the edge of consistency: {at_edge}',) if at_edge else (),
        coordinates=at, prior_rows=lambda: at.prior_rows(weight, shapes),
    )  # fmt: skip


solve_manifold = Method('manifold', _manifold, ENTROPIC, bounded=False)


class Place(NamedTuple):
    """Variables y (n,) with the objective and its derivatives."""

    y: Array
    value: float
    gradient: Array
    """Shape (n,)."""
    hessian: Array
    """Shape (n, n); may be indefinite."""
    convex: Array
    """The same without the curvature of the manifold [Gauss-Newton]; never indefinite."""


@dataclass(frozen=True, eq=False)
class ManifoldObjective:
    """Objective with its first two derivatives by B of each link and the other coordinates."""

    at: Coordinates
    weight: float
    """Of the divergence to the prior."""

    @property
    def start(self) -> Array:
        """The prior, shape (n,)."""
        y = np.zeros(len(self.at.drawn))
        y[: self.at.n_inertial].reshape(-1, 10)[:, _ROW == _COLUMN] = 1.0
        return y

    def triangles(self, y: Array) -> Array:
        """Return B of each link, (n_links, 4, 4)."""
        B = np.zeros((len(self.at.links), 4, 4))
        B[:, _ROW, _COLUMN] = y[: self.at.n_inertial].reshape(-1, 10)
        return B

    def coordinates(self, y: Array) -> Array:
        """Return coordinates about the prior, (n,)."""
        B = self.triangles(y)
        z = components(B @ np.swapaxes(B, 1, 2) - np.eye(4))
        return np.append(z, y[self.at.n_inertial :])

    def moves(self, y: Array, step: Array) -> list[Array]:
        """Return where a step may lead: inside the cone along a line, and to other triangles."""
        B = self.triangles(y)
        change = np.linalg.solve(B, self.triangles(step))
        change = change + np.swapaxes(change, 1, 2)
        least = float(np.linalg.eigvalsh(change).min())
        length = min(1.0, MAX_EDGE_SHARE / -least) if least < 0.0 else 1.0
        line = y + length * step
        B = B @ np.linalg.cholesky(np.eye(4) + length * change)
        line[: self.at.n_inertial] = B[:, _ROW, _COLUMN].reshape(-1)
        return [line] if length == 1.0 else [line, y + step]

    def value(self, y: Array) -> float:
        """Return the objective."""
        at, u = self.at, self.coordinates(y)
        left, extras = at.factor @ u - at.target, u[at.n_inertial :]
        B = self.triangles(y)
        with np.errstate(divide='ignore'):
            logarithms = 2.0 * float(np.log(np.abs(B[:, range(4), range(4)])).sum())
        distance = float(np.sum(B**2)) - 4 * len(B) - logarithms
        distance += float(at.drawn[at.n_inertial :] @ extras**2) / 2
        return (float(left @ left) + at.rest) / 2 + self.weight * distance

    def place(self, y: Array) -> Place:
        """Return the objective and its derivatives."""
        at, n, u = self.at, self.at.n_inertial, self.coordinates(y)
        slope = at.factor.T @ (at.factor @ u - at.target)
        convex = at.factor.T @ at.factor
        columns, others = np.arange(n).reshape(-1, 10), np.arange(n, len(y))
        blocks = columns[:, :, None], columns[:, None, :]
        S, extras = at.shapes(u), at.drawn[n:]
        slope[:n] += self.weight * entropic_gradient(S).reshape(-1)
        slope[n:] += self.weight * extras * u[n:]
        convex[blocks] += self.weight * entropic_hessian(S)
        convex[others, others] += self.weight * extras
        # Derivatives of B B' by the elements of B, then products with them on both sides.
        half = _UNIT @ np.swapaxes(self.triangles(y), 1, 2)[:, None]
        T = np.swapaxes(components(half + np.swapaxes(half, -1, -2)), 1, 2)
        for _ in range(2):
            by_link = np.swapaxes(T, 1, 2) @ convex[:n].reshape(-1, 10, len(y))
            convex[:n] = by_link.reshape(n, len(y))
            convex = np.ascontiguousarray(convex.T)
        gradient = slope.copy()
        by_link = np.einsum('lki,lk->li', T, slope[:n].reshape(-1, 10))
        gradient[:n] = by_link.reshape(-1)
        hessian = convex.copy()
        G = symmetric(slope[:n].reshape(-1, 10))
        hessian[blocks] += 2.0 * _SAME_COLUMN * G[:, _ROW[:, None], _ROW]
        return Place(y, self.value(y), gradient, hessian, convex)


def _newton(place: Place, damping: float) -> tuple[Array, float]:
    """Return a damped step, (n,), and the decrease that it predicts."""
    from scipy.linalg.lapack import dposv

    sizes = np.diag(place.convex)
    sizes = np.maximum(sizes, MIN_CURVATURE * sizes.mean())
    for matrix in (place.hessian, place.convex):
        _, step, failed = dposv(matrix + np.diag(damping * sizes), -place.gradient)
        if not failed:
            return step, -float(place.gradient @ step) / 2
    return np.zeros_like(place.y), np.inf


def _descend(aim: ManifoldObjective) -> tuple[Place, int, bool]:
    """Return the best place, the steps to it, and whether no step from there was better."""
    best, least = aim.start, aim.value(aim.start)
    now = max(aim.weight, FIRST_WEIGHT * least)
    objective = replace(aim, weight=now)
    place, damping = objective.place(best), MIN_DAMPING
    for used in range(MAX_STEPS):
        step, expected = _newton(place, damping)
        if expected <= NEXT_WEIGHT * now and now > aim.weight:
            now = max(now / 10.0, aim.weight)
            objective = replace(aim, weight=now)
            place = objective.place(place.y)
            continue
        if expected <= ROUND_OFF * place.value:
            return aim.place(best), used, False
        moves = objective.moves(place.y, step)
        values = list(map(objective.value, moves))
        y, gain = moves[int(np.argmin(values))], (place.value - min(values)) / expected
        if gain > 0.0:
            place = objective.place(y)
            if (value := aim.value(y)) < least:
                best, least = y, value
            if gain > 0.25:
                damping = max(damping / 10.0, MIN_DAMPING)
        else:
            damping = max(10.0 * damping, DAMPING)
            if damping > MAX_DAMPING:
                return aim.place(best), used, True
    return aim.place(best), MAX_STEPS, False
