# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which columns of a regressor are kept, and which are combinations of those [S 13, 29-39].

Columns that are kept first decide how well base parameters are conditioned; columns that hardly
take part in a combination are not solved for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError

Array = NDArray[np.float64]

INDEPENDENT = 1e-8
"""A column that takes part in vanishing combinations by less than this is independent of them."""
BARELY = 1e-4
"""
Columns that take part by less than this come after all others, whatever their order: to solve for
one of them blows round-off up, as where a description has angles of 1e-6 rad in place of zero.
"""
EXCITED = 1e-8
"""Singular values of measured rows below this share of the largest say nothing."""
_INERTIA_THEN_MOMENT_THEN_MASS = (4, 5, 7, 6, 8, 9, 1, 2, 3, 0)


def conditioning_order(n_links: int, n_extras: int = 0) -> NDArray[np.intp]:
    """
    Return the order of columns that conditions well [S 13].

    Returns (10 n_links + n_extras,).
    """
    of_one = np.array(_INERTIA_THEN_MOMENT_THEN_MASS)
    links = (10 * np.arange(n_links)[:, None] + of_one).reshape(-1)
    return np.concatenate([links, 10 * n_links + np.arange(n_extras)]).astype(np.intp)


def checked_order(order: Sequence[int] | NDArray[np.intp] | None, n: int) -> NDArray[np.intp]:
    """
    Return an order that holds each column once.

    order (n,); returns (n,).
    """
    if order is None:
        return conditioning_order(n // 10, n % 10)
    chosen = np.asarray(order, dtype=np.intp)
    if sorted(chosen.tolist()) != list(range(n)):
        raise ShapeError('order', (n,), chosen.shape, 'each column once')
    return chosen


def last_independent_rows(directions: Array, order: NDArray[np.intp]) -> list[int]:
    """
    Return the rows of vanishing combinations that can be solved for, the last of an order first.

    directions (n, k); order (n,).
    """
    found: list[int] = []
    taken = np.zeros((0, directions.shape[1]))
    for least in (BARELY, INDEPENDENT):
        for k in order[::-1]:
            if len(found) == directions.shape[1] or k in found:
                continue
            rest = directions[k]
            # Twice is enough: what is left of the first pass is orthogonal only to round-off.
            for _ in range(2):
                rest = rest - (taken @ rest) @ taken
            length = float(np.linalg.norm(rest))
            if length > least:
                found.append(int(k))
                taken = np.vstack([taken, rest / length])
    return found


def unexcited_directions(Y: Array, tolerance: float = EXCITED) -> Array:
    """
    Return the directions that measured rows say nothing of.

    Y (m, n); returns (n, n - rank).
    """
    if Y.ndim != 2:
        raise ShapeError('Y', ('m', 'n'), Y.shape)
    scales = np.linalg.norm(Y, axis=0)
    largest = scales.max(initial=0.0) or 1.0
    scales[scales < np.finfo(float).eps * largest] = largest
    triangle = np.linalg.qr(Y / scales, mode='r')
    _, values, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int(np.sum(values > tolerance * values.max(initial=0.0)))
    return np.asarray(np.linalg.qr(right[rank:].T / scales[:, None])[0])
