# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows with the entropic prior: the default of refits while the robot works.

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

The divergence is regulariser and barrier in one [Lee, Wensing, Park 2020]: every iterate is a
strictly consistent body, the problem is smooth and strictly convex, and a damped Newton method
solves it in a few steps. Over the weight it is self-concordant, which gives steps that are
feasible and converge from everywhere, without a parameter to tune [Nesterov, Nemirovskii 1994].
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.coordinates import Coordinates, require_weight
from inertial_estimation.identification.curvature import Curvature, deviations
from inertial_estimation.identification.divergence import entropic_gradient, symmetric
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]

OPTIMAL = 1e-9
"""Gap to the least objective, over the objective, of an answer that is optimal."""
LAST = 1e-4
"""Newton decrement, over the root of the weight, from which one more full step is enough."""
FULL = 0.25
"""Newton decrement, over the root of the weight, below which full steps are feasible."""
INSIDE = 0.99
"""Share of the way to the edge of what a body can be that one step goes at most."""
SEARCH = 12
"""Steps of the search along a direction; three or four are common."""
RESOLUTION = 1e-15
"""Gap over the objective that round-off hides."""


def solve_entropic(
    problem: Problem,
    *,
    weight: float = 1e-2,
    start: Array | None = None,
    noise: float | None = None,
    with_deviations: bool = True,
    max_iterations: int = 60,
) -> Identification:
    """
    Return the best fit that stays near the prior in the entropic divergence.

    Bounds are not used.

    Parameters
    ----------
    problem : Problem
        Rows and prior.
    weight : float
        Of the prior, against the mean squared residual; above zero.
    start : ndarray, shape (n,), optional
        Unknowns to start from, say an earlier answer. Default: the prior.
    noise : float, optional
        Standard deviation of a row. Default: from the residual.
    with_deviations : bool
        Whether to say how sure the answer is, at the cost of about one iteration.
    max_iterations : int
        Newton steps after which the answer is given as it is.

    Returns
    -------
    Identification
        Its optimality residual is half the squared Newton decrement, which is the gap to the
        least objective, over the objective plus the weight.

    Raises
    ------
    ModelError
        If the prior or the start is no body that could exist, with the links' names.

    """
    began = perf_counter()
    require_weight(weight)
    coordinates = Coordinates.of(problem)
    objective = _Objective(coordinates, weight)
    first = np.zeros(len(coordinates.drawn))
    if start is not None:
        _require_consistent(problem, start)
        first = coordinates.coordinates(start)
    answer = _minimise(objective, first, max_iterations)
    x = coordinates.unknowns(answer.u)
    mean_square = problem.mean_square(x)
    stated = np.full(len(x), np.nan)
    if with_deviations:
        stated = deviations(coordinates, answer.curvature, mean_square, problem.count, noise)
    return Identification(
        method='entropic',
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=numerical_rank(problem.factor),
        mean_square=mean_square,
        optimality=answer.gap,
        grade=answer.grade,
        iterations=answer.iterations,
        solve_time=perf_counter() - began,
    )


@dataclass(frozen=True, eq=False)
class _Answer:
    """Where the iterations ended."""

    u: Array
    curvature: Curvature
    gap: float
    grade: Grade
    iterations: int


class _Objective:
    """Fit and prior in whitened coordinates."""

    def __init__(self, coordinates: Coordinates, weight: float) -> None:
        self.coordinates = coordinates
        self.weight = weight
        self.size = coordinates.n_inertial
        self.gram = coordinates.factor.T @ coordinates.factor

    def shapes(self, u: Array) -> Array:
        """Return the matrix S of each link."""
        return symmetric(u[: self.size].reshape(-1, 10))

    def gradient(self, u: Array) -> tuple[float, Array]:
        """Return value and gradient."""
        rows, drawn = self.coordinates, self.coordinates.drawn[self.size :]
        residual = rows.factor @ u - rows.target
        S, extras = self.shapes(u), u[self.size :]
        shares = np.linalg.eigvalsh(S)
        distance = np.sum(shares - np.log1p(shares)) + 0.5 * np.sum(drawn * extras**2)
        value = 0.5 * (residual @ residual + rows.rest) + self.weight * distance
        pull = entropic_gradient(S).reshape(-1)
        gradient = rows.factor.T @ residual
        gradient += self.weight * np.concatenate([pull, drawn * extras])
        return float(value), gradient

    def curvature(self, u: Array) -> Curvature:
        """Return the second derivative."""
        return Curvature.of(self.coordinates, self.gram, self.shapes(u), self.weight)

    def best_step(self, u: Array, direction: Array, slope: float) -> float:
        """
        Return the step to the least value along a direction, which stays strictly inside.

        With the eigenvalues e of the direction seen from the body where it starts, the prior is
        a sum of ``-log(1 + s e)`` along it: a function of one number, at almost no cost.
        """
        rows, drawn = self.coordinates, self.coordinates.drawn[self.size :]
        root = np.linalg.cholesky(np.eye(4) + self.shapes(u))
        half = np.linalg.solve(root, self.shapes(direction))
        rates = np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, -1, -2))).reshape(-1)
        bend = float(np.sum((rows.factor @ direction) ** 2))
        bend += self.weight * float(np.sum(drawn * direction[self.size :] ** 2))
        least = float(rates.min())
        edge = np.inf if least >= 0.0 else -1.0 / least
        return _root_of_slope(slope, bend, self.weight, rates, edge)


def _minimise(objective: _Objective, u: Array, max_iterations: int) -> _Answer:
    """Return the minimum from a strictly consistent start."""
    near, steps = False, 0
    while True:
        value, gradient = objective.gradient(u)
        if not near:
            curvature = objective.curvature(u)
        direction = -curvature.solve(gradient)
        squared = max(0.0, -float(gradient @ direction))
        gap = 0.5 * squared / (value + objective.weight)
        decrement = np.sqrt(squared / objective.weight)
        if near or gap <= RESOLUTION or steps >= max_iterations:
            return _Answer(u, curvature, gap, _grade(gap, steps >= max_iterations), steps)
        near = decrement <= LAST
        step = 1.0 if decrement < FULL else objective.best_step(u, direction, -squared)
        u = u + step * direction
        steps += 1


def _require_consistent(problem: Problem, start: Array) -> None:
    """Raise unless the links of a start are strictly inside the cone."""
    margins = consistency_margin(problem.unknowns.split(start)[0])
    links = problem.unknowns.links
    bad = [link for link, margin in zip(links, margins, strict=True) if not margin > 0.0]
    if bad:
        raise ModelError(
            f'start is not strictly fully physically consistent: {", ".join(bad)}; start from '
            'the answer of a method that keeps bodies consistent, or from the prior'
        )


def _grade(gap: float, exhausted: bool) -> Grade:
    """Return how the iterations ended."""
    if gap <= OPTIMAL:
        return Grade.OPTIMAL
    return Grade.STOPPED if exhausted else Grade.INACCURATE


def _root_of_slope(slope: float, bend: float, weight: float, rates: Array, edge: float) -> float:
    """
    Return where the derivative along a direction vanishes, before the edge of the cone.

    The derivative is ``slope + bend s + weight sum(e^2 s / (1 + s e))`` and grows with s.
    """
    squares = rates**2
    low, high = 0.0, INSIDE * edge
    # A damped Newton step is inside whatever the direction [Nesterov, Nemirovskii 1994].
    step = 1.0 / (1.0 + float(np.sqrt(squares.sum())))
    for _ in range(SEARCH):
        inside = 1.0 + step * rates
        rise = slope + bend * step + weight * float(np.sum(squares * step / inside))
        low, high = (step, high) if rise < 0.0 else (low, step)
        curve = bend + weight * float(np.sum(squares / inside**2))
        proposed = step - rise / curve
        if abs(proposed - step) <= 1e-3 * step:
            break
        if not low < proposed < high:
            proposed = (low + high) / 2 if np.isfinite(high) else 2.0 * step
        step = proposed
    return step
