# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Least squares of many variables, most of them non-negative: OSQP, then an exact finish.

    minimise  1/2 |A x - b|^2 + 1/2 sum d (v - v0)^2,   x = X v,   v >= floor,  C x >= limits

OSQP finds out which bounds matter. To more than a few digits it needs thousands of iterations
here. From its answer a few rounds of an active set method, each of which solves for the variables
that no bound holds, get to round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.linear_bounds import LinearBounds

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROUNDS = 60
"""Of the active set method; five are common."""
FEASIBLE = 1e-11
"""By how much a bound may be missed in round-off, in units of the scaled variables."""
TOLERANCE = 1e-4
"""Of OSQP, absolute and relative."""
GIVEN_WAY = 1e-7
"""Scaled bounds that miss each other by less are taken to be met: tolerance of the check."""


@dataclass(frozen=True, eq=False)
class BoundedFit:
    """What is to be minimised."""

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

    def gradient(self, v: Array) -> Array:
        """
        Return the gradient.

        Parameters
        ----------
        v : ndarray, shape (k,)
            Variables.

        Returns
        -------
        ndarray, shape (k,)

        """
        rows = self.A.T @ (self.A @ (self.X @ v) - self.b)
        return np.asarray(self.X.T @ rows + self.d * (v - self.v0))


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was found."""

    v: Array
    """Variables, none below its floor, shape (k,)."""
    optimality: float
    """
    What is left of the gradient when multipliers of active bounds are taken out, and by how much
    bounds are missed: the largest of all, as a share of the gradient at zero.
    """
    iterations: int
    """Of OSQP and of the active set method."""
    stopped: bool
    """Whether the budget ran out before the end."""


def fit_bounded(problem: BoundedFit, max_iterations: int, time_limit: float) -> Fitted:
    """
    Minimise.

    Parameters
    ----------
    problem : BoundedFit
        Strictly convex.
    max_iterations : int
        Of OSQP.
    time_limit : float
        Of everything [s]; may be infinite.

    Returns
    -------
    Fitted

    Raises
    ------
    ModelError
        If no variables meet all bounds; with the bounds that contradict each other.

    """
    deadline = perf_counter() + time_limit
    C = problem.bounds.rows @ problem.X
    sizes = np.abs(C).max(axis=1, initial=0.0)
    sizes[sizes == 0.0] = 1.0
    rows = _Rows(C / sizes[:, None], problem.bounds.limits / sizes)
    _require_feasible(problem, rows)
    v, pressed, active, iterations, ended = _osqp(problem, rows, max_iterations, time_limit)
    best, settled = _Candidate(v, np.zeros(len(active))), False
    while not settled and iterations < max_iterations + ROUNDS and perf_counter() < deadline:
        iterations += 1
        best = _solve(problem, rows, pressed, active)
        now = _next(problem, rows, best, pressed, active)
        settled = bool((now[0] == pressed).all() and (now[1] == active).all())
        pressed, active = now
    kept = np.maximum(best.v, problem.floor)
    stopped = not settled and (not ended or perf_counter() >= deadline)
    return Fitted(kept, _optimality(problem, rows, kept, best.y), iterations, stopped)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Bounds as rows of the variables, each scaled to a largest entry of one."""

    C: Array
    limits: Array


@dataclass(frozen=True, eq=False)
class _Candidate:
    """Variables and the multipliers of rows."""

    v: Array
    y: Array
    """Not negative at an optimum."""


def _osqp(
    problem: BoundedFit, rows: _Rows, max_iterations: int, time_limit: float
) -> tuple[Array, Flags, Flags, int, bool]:
    """Return variables, which are at their floor, which rows at a bound, iterations, whether."""
    import scipy.sparse as sp

    k, n = len(problem.d), problem.A.shape[1]
    H = problem.A.T @ problem.A
    sizes = np.sqrt(np.diag(H))
    scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    quadratic = sp.block_diag([sp.csc_matrix(H * scale * scale[:, None]), sp.diags(problem.d)])
    linear = np.concatenate([-scale * (problem.A.T @ problem.b), -problem.d * problem.v0])
    bounded = np.flatnonzero(np.isfinite(problem.floor))
    pick = sp.csc_matrix(
        (np.ones(len(bounded)), (range(len(bounded)), bounded)), (len(bounded), k)
    )
    constraints = sp.vstack(
        [
            sp.hstack([-sp.identity(n), sp.csc_matrix(problem.X / scale[:, None])]),
            sp.hstack([sp.csc_matrix((len(bounded), n)), pick]),
            sp.hstack([sp.csc_matrix((len(rows.C), n)), sp.csc_matrix(rows.C)]),
        ]
    )
    low = np.concatenate([np.zeros(n), problem.floor[bounded], rows.limits])
    high = np.append(np.zeros(n), np.full(len(low) - n, np.inf))
    solver = _library().OSQP()
    options = {} if np.isinf(time_limit) else {'time_limit': time_limit}
    solver.setup(
        sp.triu(quadratic, format='csc'), linear, sp.csc_matrix(constraints), low, high,
        verbose=False, eps_abs=TOLERANCE, eps_rel=TOLERANCE, max_iter=max_iterations, **options,
    )  # fmt: skip
    found = solver.solve(raise_error=False)
    v, y = np.array(found.x[n:]), np.array(found.y)
    pressed = np.zeros(k, dtype=np.bool_)
    floored = y[n : n + len(bounded)]
    pressed[bounded] = -floored > v[bounded] - problem.floor[bounded]
    active = y[n + len(bounded) :] < -TOLERANCE
    ended = found.info.status in ('solved', 'solved inaccurate')
    return v, pressed, active, int(found.info.iter), ended


def _library() -> ModuleType:
    """Import OSQP, or say how to get it."""
    try:
        return import_module('osqp')
    except ImportError as error:
        raise InertialEstimationError(
            f"masses at points need the package 'osqp' ({error}): pip install osqp"
        ) from error


def _require_feasible(problem: BoundedFit, rows: _Rows) -> None:
    """Raise if no variables meet all bounds; OSQP takes long to see it, and not always does."""
    from scipy.optimize import linprog

    n, k = rows.C.shape
    if not n:
        return
    # How much bounds must give way in all; those that matter have a price.
    least = linprog(
        np.append(np.zeros(k), np.ones(n)),
        A_ub=-np.hstack([rows.C, np.eye(n)]),
        b_ub=-rows.limits,
        bounds=[*((low, None) for low in problem.floor), *[(0.0, None)] * n],
    )
    if least.fun <= GIVEN_WAY * max(1.0, float(np.abs(rows.limits).max())):
        return
    prices = np.abs(least.ineqlin.marginals)
    blamed = [name for name, price in zip(problem.bounds.names, prices) if price > GIVEN_WAY]
    raise ModelError(
        f'no masses at the points meet these bounds together: {", ".join(blamed)}; widen the '
        'bounds or the boxes of the links'
    )


def _solve(problem: BoundedFit, rows: _Rows, pressed: Flags, active: Flags) -> _Candidate:
    """Return the minimum where some variables are at their floor and some rows at a bound."""
    v = np.where(pressed, problem.floor, 0.0)
    free = ~pressed
    inverse = _inverse(problem, free)
    y = np.zeros(len(active))
    step = inverse(-problem.gradient(v)[free][:, None])[:, 0]
    if active.any():
        G = rows.C[active][:, free]
        moved = inverse(G.T)
        missing = rows.limits[active] - G @ step - rows.C[active] @ v
        # Bounds may repeat each other: all masses and their total.
        y[active], *_ = np.linalg.lstsq(G @ moved, missing, rcond=1e-12)
        step = step + moved @ y[active]
    v[free] += step
    return _Candidate(v, y)


def _inverse(problem: BoundedFit, free: Flags) -> Callable[[Array], Array]:
    """Return a map by the inverse of the second derivative for free variables [Woodbury]."""
    from scipy.linalg import cho_factor, cho_solve

    root = np.sqrt(problem.d[free])[:, None]
    W = (problem.A @ problem.X[:, free]) / root.T
    factor = cho_factor(np.eye(len(W)) + W @ W.T)

    def once(right: Array) -> Array:
        scaled = right / root
        return np.asarray((scaled - W.T @ cho_solve(factor, W @ scaled)) / root)

    def refined(right: Array) -> Array:
        found = once(right)
        for _ in range(2):
            found = found + once(right - root * (root * found + W.T @ (W @ (root * found))))
        return found

    return refined


def _next(
    problem: BoundedFit, rows: _Rows, found: _Candidate, pressed: Flags, active: Flags
) -> tuple[Flags, Flags]:
    """Return which bounds hold next: those that are missed, without those that pull."""
    gradient = problem.gradient(found.v) - rows.C.T @ found.y
    held = np.where(pressed, gradient > 0.0, found.v < problem.floor - FEASIBLE)
    missed = rows.C @ found.v < rows.limits - FEASIBLE
    return held, np.where(active, found.y > 0.0, missed)


def _optimality(problem: BoundedFit, rows: _Rows, v: Array, y: Array) -> float:
    """Return the largest violation of the conditions of optimality."""
    size = float(np.abs(problem.gradient(np.zeros(len(v)))).max()) or 1.0
    gradient = (problem.gradient(v) - rows.C.T @ y) / size
    at_floor = v <= problem.floor + FEASIBLE
    left = np.where(at_floor, np.minimum(gradient, 0.0), gradient)
    missed = rows.limits - rows.C @ v
    return float(max(np.abs(left).max(), missed.max(initial=0.0)))
