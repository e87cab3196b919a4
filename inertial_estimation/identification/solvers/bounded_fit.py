# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounded least squares to round-off: OSQP, then an exact finish.

OSQP finds out which bounds matter. To more than a few digits it needs thousands of iterations
here. From its answer a few rounds of `active_set` get to round-off. Where these go in circles, as
they may with many bounds that compete, `least_distance` finds out without a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.solvers.active_set import settle
from inertial_estimation.identification.solvers.bounded_problem import BoundedProblem, Flags
from inertial_estimation.identification.solvers.least_distance import Support, find_support

Array = NDArray[np.float64]

ROUNDS = 30
"""Of the active set method; five are common."""
TOLERANCE = 1e-4
"""Of OSQP, absolute and relative."""
SETTLED = 1e-8
"""Violation of the conditions of optimality that needs no other way."""
NO_TIME = 1e-9
"""Least time limit of OSQP [s]."""
GIVEN_WAY = 1e-7
"""Scaled bounds that miss each other by less are taken to be met: tolerance of the check."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was found."""

    v: Array
    """Variables, none below its floor, shape (k,)."""
    optimality: float
    """As from `BoundedProblem.violation`."""
    iterations: int
    """Of all methods."""
    stopped: bool
    """Whether the budget ran out before the end."""


class _Guess(NamedTuple):
    """What one method thinks."""

    v: Array
    y: Array
    """Multipliers of the rows C."""
    pressed: Flags
    """Variables at their floor."""
    active: Flags
    """Rows at their limit."""
    iterations: int


def fit_bounded(problem: BoundedProblem, max_iterations: int, time_limit: float) -> Fitted:
    """
    Minimise.

    time_limit [s].
    """
    deadline = perf_counter() + time_limit
    _require_feasible(problem)
    guess = _osqp(problem, max_iterations, time_limit)
    best = _rated(problem, guess.v, guess.y, guess.iterations)
    support: Support | None = Support(guess.pressed, guess.active)
    for again in (False, True):
        if perf_counter() >= deadline:
            return replace(best, stopped=True)
        if again:
            support = find_support(problem)
        if support is None:
            break
        try:
            found = settle(problem, support.pressed, support.active, ROUNDS)
        except np.linalg.LinAlgError:
            # Rows that weigh 1e16 times as much as the regularization.
            continue
        rated = _rated(problem, found.v, found.y, best.iterations + found.rounds)
        best = min(rated, best, key=_how_bad)
        # Bounds that repeat each other may settle where one of them is missed.
        if best.optimality <= SETTLED:
            break
    return best


def _how_bad(fitted: Fitted) -> float:
    """Return by what to choose."""
    return fitted.optimality


def _rated(problem: BoundedProblem, v: Array, y: Array, iterations: int) -> Fitted:
    """Return variables, moved to their floors, with how good they are."""
    kept = np.maximum(v, problem.floor)
    return Fitted(kept, problem.violation(kept, y), iterations, stopped=False)


def _osqp(problem: BoundedProblem, max_iterations: int, time_limit: float) -> _Guess:
    """Return what OSQP thinks."""
    k, n = len(problem.d), problem.A.shape[1]
    floored = np.flatnonzero(np.isfinite(problem.floor))
    # OSQP knows no budget of nothing.
    options = {} if np.isinf(time_limit) else {'time_limit': max(time_limit, NO_TIME)}
    solver = _library().OSQP()
    solver.setup(
        *_sparse(problem, floored), verbose=False, eps_abs=TOLERANCE, eps_rel=TOLERANCE,
        max_iter=max(max_iterations, 1), **options,
    )  # fmt: skip
    found = solver.solve(raise_error=False)
    x, y = np.nan_to_num(np.array(found.x)), np.nan_to_num(np.array(found.y))
    v, prices = x[n:], -y[n:]
    pressed = np.zeros(k, dtype=np.bool_)
    pressed[floored] = prices[: len(floored)] > v[floored] - problem.floor[floored]
    rows = np.maximum(prices[len(floored) :], 0.0)
    return _Guess(v, rows, pressed, rows > TOLERANCE, int(found.info.iter))


def _sparse(problem: BoundedProblem, floored: NDArray[np.intp]) -> tuple[object, ...]:
    """
    Return the problem in OSQP's form, over unknowns and variables.

    With the unknowns as variables too, the Hessian is as small as their number and the points
    enter sparsely [A section V]; unknowns are scaled to a second derivative of one.
    """
    import scipy.sparse as sp

    k, n = len(problem.d), problem.A.shape[1]
    H = problem.A.T @ problem.A
    sizes = np.sqrt(np.diag(H))
    scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    quadratic = sp.block_diag([sp.csc_matrix(H * scale * scale[:, None]), sp.diags(problem.d)])
    linear = np.concatenate([-scale * (problem.A.T @ problem.b), -problem.d * problem.v0])
    ones = np.ones(len(floored))
    pick = sp.csc_matrix((ones, (range(len(floored)), floored)), (len(floored), k))
    bounds = sp.vstack([pick, sp.csc_matrix(problem.C)])
    constraints = sp.vstack(
        [
            sp.hstack([-sp.identity(n), sp.csc_matrix(problem.X / scale[:, None])]),
            sp.hstack([sp.csc_matrix((bounds.shape[0], n)), bounds]),
        ]
    )
    low = np.concatenate([np.zeros(n), problem.floor[floored], problem.limits])
    high = np.append(np.zeros(n), np.full(len(low) - n, np.inf))
    upper = sp.triu(quadratic, format='csc')
    return upper, linear, sp.csc_matrix(constraints), low, high


def _library() -> ModuleType:
    """Import OSQP, or say how to get it."""
    try:
        return import_module('osqp')
    except ImportError as error:
        raise InertialEstimationError(
            f"masses at points need the package 'osqp' ({error}): pip install osqp"
        ) from error


def _require_feasible(problem: BoundedProblem) -> None:
    """Raise if no variables meet all bounds; OSQP takes long to see it, and not always does."""
    from scipy.optimize import linprog

    n, k = problem.C.shape
    if not n:
        return
    # How much bounds must give way in all; those that matter have a price.
    least = linprog(
        np.append(np.zeros(k), np.ones(n)),
        A_ub=-np.hstack([problem.C, np.eye(n)]),
        b_ub=-problem.limits,
        bounds=[*((low, None) for low in problem.floor), *[(0.0, None)] * n],
    )
    if least.fun <= GIVEN_WAY * max(1.0, float(np.abs(problem.limits).max())):
        return
    prices = np.abs(least.ineqlin.marginals)
    blamed = [name for name, price in zip(problem.bounds.names, prices) if price > GIVEN_WAY]
    raise ModelError(
        f'no masses at the points meet these bounds together: {", ".join(blamed)}; widen the '
        'bounds or the boxes of the links'
    )
