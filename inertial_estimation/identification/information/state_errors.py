# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Information without what errors of the state added to it.

Rows are Y = Y0 + E with errors E of the measured motion [errors in variables]. Their products

    Y'Y = Y0'Y0 + N,    Y'(y - Y x0) = Y0'(y0 - Y0 x0) - N x0 + n,    N = E'E, n = E'e

hold N and n, e being what the same errors do to y: without them a body that hardly turns becomes
lighter, as errors count as motion that weighed nothing. N and n are known on the average of many
rows (`rows.state_errors`), so they are taken out: n - N x0 about a description x0, so that an
exact one stays exact, and N where it is the smaller part of what rows say. Where it is the larger
one rows say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.information import Information

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

LARGEST_SHARE = 0.25
"""
Of errors in what rows say of a direction that is still heard. After a few seconds N is known to a
tenth, which is a thirtieth of what is left then.
"""
NOTHING = 1e-12
"""Directions of which there is less than this, over the size of columns, are none."""
ROUND_OFF = 1e-8
"""Columns that are shorter than this, over the longest one, are none."""


class StateErrors(NamedTuple):
    """Products of what errors of the state add to rows in units of their noise."""

    gram: Array
    """N, shape (n, n)."""
    cross: Array
    """n, shape (n,)."""

    @classmethod
    def of(cls, parts: Iterable[Array], n: int) -> StateErrors:
        """
        Sum up errors of rows.

        parts (m, n + 1) [dY dy].
        """
        stacked = np.vstack([np.zeros((0, n + 1)), *parts])
        products = stacked.T @ stacked
        return cls(products[:n, :n], products[:n, n])

    def add(self, other: StateErrors, kept: float = 1.0) -> StateErrors:
        """Return this, faded, together with another one."""
        return StateErrors(kept * self.gram + other.gram, kept * self.cross + other.cross)

    def shifted(self, columns: Columns, change: Array) -> StateErrors:
        """
        Return the same of rows from whose right sides something known was taken.

        columns (k,); change (k,).
        """
        return StateErrors(self.gram, self.cross - self.gram[:, columns] @ change)

    def without(self, columns: Columns) -> StateErrors:
        """Return what is left once rows no longer tell of some unknowns."""
        gram, cross = self.gram.copy(), self.cross.copy()
        gram[columns], gram[:, columns], cross[columns] = 0.0, 0.0, 0.0
        return StateErrors(gram, cross)


def errors_of_wandered(
    errors: StateErrors, information: Information, columns: Columns, deviations: Array
) -> StateErrors:
    """Return what errors of the state add to what `elimination.wandered` leaves."""
    moved, n = columns[deviations > 0.0], information.n
    if not len(moved):
        return errors
    held = np.diag(1.0 / deviations[deviations > 0.0])
    right = np.zeros((n + len(moved), n + 1))
    right[:n, :n], right[:n, n] = -information.R, information.rho
    right[:, moved] = 0.0
    right[n:, moved] = held
    before = np.linalg.lstsq(np.vstack([information.R[:, moved], held]), right, rcond=None)[0]
    T, t = np.eye(n), np.zeros(n)
    T[moved], t[moved] = before[:, :n], before[:, n]
    return StateErrors(T.T @ errors.gram @ T, T.T @ (errors.cross - errors.gram @ t))


def without_state_errors(information: Information, errors: StateErrors, x0: Array) -> Information:
    """
    Return what rows tell beyond the errors of the state in them.

    x0 (n,).
    """
    if not errors.gram.any():
        return information
    R, left = information.R, information.rho - information.R @ x0
    H = R.T @ R
    # Of a column that rows do not have errors may be all there is, and those of round-off.
    squares = np.diag(H) + np.diag(errors.gram)
    sizes = np.sqrt(np.maximum(squares, ROUND_OFF**2 * squares.max()))
    scaled, N = (one / np.outer(sizes, sizes) for one in (H, errors.gram))
    # Over all that there is no share exceeds one: over rows alone those where they say nothing
    # would be so large that round-off of them is more than others.
    whole = _Factor.of(scaled + N)
    told, V = np.linalg.eigh(whole.shares(scaled))
    heard = told > 1.0 / (1.0 + LARGEST_SHARE)
    V = V[:, heard]
    # Of a share t the rows are 2 t - 1 without the errors, which are the other 1 - t.
    kept = np.sqrt(2.0 * told[heard] - 1.0)
    rows = kept[:, None] * (V.T @ whole.L.T) * sizes
    right = (R.T @ left + errors.gram @ x0 - errors.cross) / sizes
    right = V.T @ whole.solve(right) / kept
    found = Information.of(rows, right + rows @ x0)
    before = information.squared_residual(x0)
    energy = max(before - float(right @ right), 0.0)
    return Information(found.R, found.rho, energy, information.count)


class _Factor(NamedTuple):
    """L with L L' = W, of as many columns as W has directions."""

    L: Array
    """Shape (n, rank)."""
    first: Columns
    """Rows of L that are a triangle, shape (rank,)."""

    @classmethod
    def of(cls, W: Array) -> _Factor:
        """Factor a matrix whose largest entry is about one."""
        from scipy.linalg.lapack import dpstrf

        triangle, order, rank, _ = dpstrf(W, tol=NOTHING, lower=1)
        L = np.empty((len(W), rank))
        L[order - 1] = np.tril(triangle)[:, :rank]
        return cls(L, order[:rank] - 1)

    def solve(self, right: Array) -> Array:
        """Return y with L y = right, which has no part beyond the directions of W."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.L[self.first], right[self.first], lower=True))

    def shares(self, part: Array) -> Array:
        """Return M with L M L' = part, which has no part beyond the directions of W."""
        half = self.solve(part)
        return self.solve(half.T)
