# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which bounds hold, as the support of a non-negative least squares [Lawson and Hanson, LDP].

With ``z = R v - c`` of the triangle of all rows, bounded least squares ask for the shortest z with
``W' z >= s``. Its dual is ``min |A u - e|`` over u >= 0, A = [W; s'], e the last unit vector; u is
not zero for the bounds that hold. Columns of that support are independent, so that bounds that
repeat or fix each other (a least and a greatest total mass that are equal) do no harm, and the
search ends after finitely many exchanges. It costs more than `active_set` from a good guess, and
needs none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.bounded_problem import BoundedProblem, Flags

Array = NDArray[np.float64]

EXCHANGES = 10
"""Of bounds in the support, over their number, at most; less than one is common."""


class Support(NamedTuple):
    """Which bounds hold."""

    pressed: Flags
    """Variables at their floor, shape (k,)."""
    active: Flags
    """Rows C at their limit, shape (m,)."""


def find_support(problem: BoundedProblem) -> Support | None:
    """Return which bounds hold at the minimum."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    k = len(problem.d)
    floored = np.flatnonzero(np.isfinite(problem.floor))
    root = np.sqrt(problem.d)
    rows = np.vstack([problem.M, np.diag(root)])
    right = np.append(problem.b, root * problem.v0)
    triangle = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode='r'))
    G = np.vstack([np.eye(k)[floored], problem.C])
    W = solve_triangular(triangle[:k, :k], G.T, trans='T')
    short = np.append(problem.floor[floored], problem.limits) - W.T @ triangle[:k, k]
    # Neither the length of a bound's row nor the unit of the distance matters.
    lengths = np.linalg.norm(W, axis=0)
    lengths[lengths == 0.0] = 1.0
    short /= lengths
    A = np.vstack([W / lengths, short / (np.abs(short).max(initial=0.0) or 1.0)])
    try:
        prices, _ = nnls(A, np.eye(k + 1)[k], maxiter=EXCHANGES * len(short))
    except RuntimeError:
        return None
    pressed = np.zeros(k, dtype=np.bool_)
    pressed[floored] = prices[: len(floored)] > 0.0
    return Support(pressed, prices[len(floored) :] > 0.0)
