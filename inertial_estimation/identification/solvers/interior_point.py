# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounded least squares by a primal-dual interior point method [Mehrotra 1992].

Some tens of linear equations, whatever the bounds are; each costs a round of `active_set`.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.bounded_problem import BoundedProblem, inverse

Array = NDArray[np.float64]

GAP = 1e-12
"""What is left of gap, gradient and slack that is as good as nothing, in scaled units."""
LOST = 1e4
"""A point so many times worse than the best one is round-off: it ends there."""
BACK_OFF = 0.995
"""Share of the way to the next bound that a step goes."""


class Interior(NamedTuple):
    """A point inside, with slack of all bounds and their multipliers."""

    v: Array
    """Variables, shape (k,)."""
    slack: Array
    """Of floors and then of rows, shape (k_floored + m,)."""
    price: Array
    """Their multipliers."""


class _System(NamedTuple):
    """All bounds as ``G v - slack = h``, floors first."""

    problem: BoundedProblem
    floored: NDArray[np.intp]
    h: Array

    def G(self, v: Array) -> Array:
        """Return what bounds are about."""
        return np.concatenate([v[self.floored], self.problem.C @ v])

    def G_transposed(self, price: Array) -> Array:
        """Return what multipliers add to the gradient."""
        n = len(self.floored)
        found = self.problem.C.T @ price[n:]
        found[self.floored] += price[:n]
        return np.asarray(found)


def go_inside(
    problem: BoundedProblem, start: Array, max_iterations: int, deadline: float
) -> tuple[Interior, int]:
    """
    Minimise.

    Parameters
    ----------
    problem : BoundedProblem
        What is minimised.
    start : ndarray, shape (k,)
        Variables, anywhere.
    max_iterations : int
        At most.
    deadline : float
        Of `time.perf_counter` [s].

    Returns
    -------
    Interior
        At the end.
    int
        Iterations.

    """
    floored = np.flatnonzero(np.isfinite(problem.floor))
    system = _System(problem, floored, np.concatenate([problem.floor[floored], problem.limits]))
    size = float(np.abs(problem.gradient(np.zeros(len(start)))).max()) or 1.0
    far = np.maximum(system.G(start) - system.h, 0.1)
    here = Interior(start, far, np.full(len(far), 0.1 * size))
    best, least, number = here, _merit(system, here, size), 0
    while least > GAP and number < max_iterations and perf_counter() < deadline:
        number += 1
        after = _step(system, here)
        if after is None:
            break
        here, merit = after, _merit(system, after, size)
        if merit < least:
            best, least = here, merit
        elif merit > LOST * least:
            break
    return best, number


def _merit(system: _System, here: Interior, size: float) -> float:
    """Return how far a point is from the end: by its gap, its gradient and its slack."""
    gradient = system.problem.gradient(here.v) - system.G_transposed(here.price)
    left = system.G(here.v) - here.slack - system.h
    gap = float(here.slack @ here.price) / len(here.slack)
    return max(gap / size, float(np.abs(gradient).max()) / size, float(np.abs(left).max()))


def _step(system: _System, here: Interior) -> Interior | None:
    """Return the next point, by a predictor and a corrector; None at the end of precision."""
    problem, n = system.problem, len(system.floored)
    ratio = here.price / here.slack
    diagonal = problem.d.copy()
    diagonal[system.floored] += ratio[:n]
    rows = np.vstack([problem.M, np.sqrt(ratio[n:])[:, None] * problem.C])
    try:
        back = inverse(rows, diagonal)
    except (np.linalg.LinAlgError, ValueError):
        return None
    gradient = problem.gradient(here.v) - system.G_transposed(here.price)
    missing = system.G(here.v) - here.slack - system.h

    def towards(products: Array) -> Interior:
        """Return the change to where slack times price changes by so much."""
        wanted = (products - here.price * missing) / here.slack
        dv = back((system.G_transposed(wanted) - gradient)[:, None])[:, 0]
        ds = system.G(dv) + missing
        return Interior(dv, ds, (products - here.price * ds) / here.slack)

    gap = here.slack @ here.price / len(here.slack)
    predicted = towards(-here.slack * here.price)
    if not all(np.isfinite(part).all() for part in predicted):
        return None
    reach = _reach(here, predicted)
    then = (here.slack + reach * predicted.slack) @ (here.price + reach * predicted.price)
    center = (then / len(here.slack) / gap) ** 3 * gap
    change = towards(center - here.slack * here.price - predicted.slack * predicted.price)
    if not all(np.isfinite(part).all() for part in change):
        return None
    length = BACK_OFF * _reach(here, change)
    return Interior(*(old + length * new for old, new in zip(here, change, strict=True)))


def _reach(here: Interior, change: Interior) -> float:
    """Return how far one can go, at most all the way, without a slack or price below zero."""
    shares = [1.0]
    for now, new in ((here.slack, change.slack), (here.price, change.price)):
        down = new < 0.0
        shares.append(float((-now[down] / new[down]).min(initial=np.inf)))
    return min(shares)
