# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A wrench split among contacts, also those that only push.

The least squares x0 of `split_wrench` may break the limits ``G x >= 0`` of the contacts. Then

    minimise  |A (x - x0)|^2 + FREEDOM^2 |x - x0|^2   subject to  G x >= 0

with the whitened unit wrenches A: the residual of the sensors, and beside it the distance to the
shortest solution. Without limits that is x0, so that x depends continuously on the readings.
"""

from __future__ import annotations

import signal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import ModelError

FREEDOM = 0.03
"""
Noise over the forces that sensors do not distinguish, both in newtons: errors of 3 N, of sensors
and models, beside 100 N. To keep a limit by 100 N of such forces leaves 0.1 N in the residual.
"""
MAX_VIOLATION = 1e-4
"""Up to which a limit counts as kept [N]: a thousandth of the noise of an FT sensor."""
HOLDS = 2e-5
"""Up to which a limit counts as one that holds, over the largest violation before."""
SETTINGS = {'eps_abs': 1e-6, 'eps_rel': 1e-6, 'max_iter': 2000, 'polishing': True}
"""Of OSQP; a cycle of 1000 iterations takes a millisecond."""
ROUND_OFF = 1e-9
"""Of singular values, relative: limits that others imply."""
SOLVED, INTERRUPTED, POLISHED = 1, 10, 1
"""`osqp.SolverStatus`, the last of the polish."""
ACTIVE = 1e-6
"""Multiplier over the largest, of a limit that holds."""

NEARLY = 1e-12
"""Determined is what holds less than the root of this of any undetermined combination."""
MIN_SHOWN = 1e-12
"""A combination that shows by less than this part of the one that shows best shows not at all."""


class Solution(NamedTuple):
    """Unknowns that explain a wrench."""

    rank: NDArray[np.int64]
    """Number of combinations of the unknowns that the wrench determines, shape (...)."""
    determined: NDArray[np.bool_]
    """Unknowns that it determines one by one, shape (..., n)."""
    left_out: NDArray[np.bool_]
    """
    True if some combination was left at zero although it shows a little, shape (...). Its part of
    the wrench is missing then, also where the single unknowns do not matter.
    """
    unknowns: Array
    """In newtons, shape (..., n)."""
    axes: Array
    """Combinations of the unknowns, as columns, shape (..., n, min(n, 6))."""
    shown: Array
    """Change of the sensors by one newton of each, over their noise, (..., min(n, 6))."""


def split_wrench(total: Array, columns: Array, noise: Array, rank_tolerance: float) -> Solution:
    """
    Find the shortest unknowns that explain a wrench best.

    total (..., 6) [N, Nm]; columns (..., n, 6); noise (..., m, 6).
    """
    if noise.ndim == 1:
        white_columns, white_total = columns / noise, total / noise
    else:
        # The Gram matrix of the rows would lose half of their digits, far levers all of them.
        whiten = np.linalg.inv(np.linalg.qr(noise, mode='r'))
        white_columns = columns @ whiten
        white_total = (total[..., None, :] @ whiten)[..., 0, :]
    u, s, vt = np.linalg.svd(white_columns, full_matrices=False)
    shown = s > MIN_SHOWN * s[..., :1]
    kept = shown & (s > rank_tolerance)
    left_out = np.asarray((shown & ~kept).any(axis=-1))
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    image = (vt @ white_total[..., None])[..., 0]
    determined = (u * u * kept[..., None, :]).sum(axis=-1)
    unknowns = (u @ (inverse * image)[..., None])[..., 0]
    return Solution(kept.sum(axis=-1), determined > 1.0 - NEARLY, left_out, unknowns, u, s)


def hessian(axes: Array, shown: Array) -> Array:
    """
    Return ``A'A + FREEDOM^2``, shape (n, n).

    axes (n, k), shown (k,): left singular vectors and singular values of the rows A' (n, 6).
    """
    return np.asarray((axes * shown**2) @ axes.T + FREEDOM**2 * np.eye(len(axes)))


class ContactLimits:
    """
    Limits of the contacts of some submodels with as many unknowns.

    rows (n_submodels, n_limits, n_unknowns): factors of the unknowns in sums of 0 or more.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._solvers = [_solver(own) for own in rows if len(own)]
        """They begin with what held the time before."""
        # Column by column, the upper triangle.
        self._upper = np.tril_indices(rows.shape[2])[::-1]

    def broken(self, unknowns: Array) -> list[tuple[int, ...]]:
        """Return the indices of instants and submodels whose unknowns (..., n) break limits."""
        if not self._solvers:
            return []
        sums = (self.rows @ unknowns[..., None])[..., 0]
        return list(map(tuple, np.argwhere(sums.min(axis=-1) < -MAX_VIOLATION).tolist()))

    def keep(
        self, submodel: int, unknowns: Array, axes: Array, shown: Array
    ) -> tuple[Array, Mask] | None:
        """
        Return the unknowns (n,) within the limits, and the limits that hold; None: not found.

        unknowns (n,): they break some; axes, shown as in `hessian`.
        """
        rows, solver = self.rows[submodel], self._solvers[submodel]
        lower = rows @ -unknowns
        size = lower.max()
        solver.update(Px=hessian(axes, shown)[self._upper], l=lower / size)
        found = solver.solve(raise_error=False)
        if found.info.status_val == INTERRUPTED:
            # While it runs, OSQP keeps the signal from those who wait for it.
            signal.raise_signal(signal.SIGINT)
        if found.info.status_val != SOLVED:
            return None
        within = unknowns + size * found.x
        holds = rows @ within <= max(MAX_VIOLATION, HOLDS * size)
        if found.info.status_polish == POLISHED:
            return within, holds
        # Without OSQP's last step the answer is near; the multipliers show which limits hold.
        active = found.y < -ACTIVE * np.abs(found.y).max()
        inverse = np.asarray(np.linalg.inv(hessian(axes, shown)))
        exact = holding(rows[active], inverse) @ unknowns
        return (exact if (rows @ exact).min() > -MAX_VIOLATION else within), holds


def holding(rows: Array, inverse: Array) -> Array:
    """
    Return K in ``x = K x0``, the nearest x with ``rows x = 0``, shape (n, n).

    rows (n_held, n); inverse (n, n): of the Hessian of the distance.
    """
    pull = inverse @ rows.T
    shown = np.linalg.pinv(rows @ pull, ROUND_OFF, hermitian=True)
    return np.asarray(np.eye(len(inverse)) - pull @ shown @ rows)


def _solver(rows: Array) -> Any:
    try:
        from osqp import OSQP
    except ImportError as error:
        raise ModelError(
            f"contacts that only push need the package 'osqp' ({error}): pip install osqp"
        ) from error
    from scipy.sparse import csc_matrix

    m, n = rows.shape
    solver = OSQP()
    solver.setup(
        csc_matrix(np.triu(np.ones((n, n)))), np.zeros(n), csc_matrix(rows),
        np.zeros(m), np.full(m, np.inf), scaling=0, verbose=False, **SETTINGS,
    )  # fmt: skip
    return solver
