# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Condition numbers, and smooth bounds of them that have a gradient.

Where singular values meet, a condition number has a kink. With P growing,

    log ||W||_P + log ||W^+||_P      P-norms of singular values

comes down to the logarithm of the condition number of W.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class ConditionBound(NamedTuple):
    """A smooth bound of the condition number of rows, and its gradient."""

    bound: float
    """Its logarithm."""
    condition: float
    """The condition number itself."""
    slopes: Array
    """Gradient of `bound` over the rows, shape (n, n_rows, n_columns)."""


def condition_number(W: Array) -> float:
    """Return the largest singular value over the least; W (m, n)."""
    values = np.linalg.svd(np.linalg.qr(W, mode='r'), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0.0 else float('inf')


def condition_bound(Y: Array, P: float) -> ConditionBound:
    """Return a smooth bound of the condition number; Y (n, n_rows, n_columns)."""
    n, _, columns = Y.shape
    W = Y.reshape(-1, columns) / np.sqrt(n)
    _, values, right = np.linalg.svd(np.linalg.qr(W, mode='r'))
    values = np.maximum(values, np.finfo(float).tiny)
    bound, of_values = _of_values(values, P)
    # Of W = U S V' the slopes are U diag(..) V', and U = W V / S.
    of_W = W @ ((right.T * (of_values / values)) @ right)
    slopes = of_W.reshape(Y.shape) / np.sqrt(n)
    return ConditionBound(bound, float(values[0] / values[-1]), slopes)


def worst_bound(bounds: Sequence[float], P: float) -> tuple[float, Array]:
    """
    Return the logarithm of the P-norm of what has these logarithms.

    bounds (k,); returns shares (k,).
    """
    found = np.array(bounds)
    worst = float(found.max())
    weights = np.exp(P * (found - worst))
    total = float(weights.sum())
    return worst + float(np.log(total)) / P, weights / total


def _of_values(values: Array, P: float) -> tuple[float, Array]:
    """Return the logarithm of the bound from singular values, largest first, and slopes."""
    up, down = (values / values[0]) ** P, (values[-1] / values) ** P
    bound = np.log(values[0] / values[-1]) + np.log(up.sum() * down.sum()) / P
    return float(bound), (up / up.sum() - down / down.sum()) / values
