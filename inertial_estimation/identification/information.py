# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What rows of an equation say about its unknowns, in a size that does not grow with their number.

Rows ``Y x = y`` are kept as the triangle of [Y y], which is all that any least squares of them
needs: ``|Y x - y|^2 = |R x - rho|^2 + energy``. Triangles are made by orthogonal transforms and
never by Y' Y, which would square the condition number [S 64-73; Golub & Van Loan 5.2].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ShapeError

Array = NDArray[np.float64]

ROWS_AT_ONCE = 2048
"""Rows that are reduced together: enough to be fast, few enough to stay small in memory."""


@dataclass(frozen=True, eq=False)
class Information:
    """Rows of one kind, reduced; immutable."""

    R: Array
    """Upper triangle, shape (n, n)."""
    rho: Array
    """Transformed right-hand sides, shape (n,)."""
    energy: float
    """Sum of squares that no unknowns can explain."""
    count: float
    """Rows that went in, after forgetting the weight of what is left of them."""

    @classmethod
    def empty(cls, n: int) -> Information:
        """
        Return what is known before the first row.

        Parameters
        ----------
        n : int
            Unknowns.

        Returns
        -------
        Information

        """
        return cls(np.zeros((n, n)), np.zeros(n), 0.0, 0.0)

    @classmethod
    def of(cls, Y: Array, y: Array) -> Information:
        """
        Reduce rows.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Rows of the regressor.
        y : ndarray, shape (m,)
            What they should give.

        Returns
        -------
        Information

        Raises
        ------
        ShapeError
            If the shapes do not belong together.
        InertialEstimationError
            If a number is not finite.

        """
        return cls.empty(np.shape(Y)[-1]).add(Y, y)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.rho)

    def add(self, Y: Array, y: Array) -> Information:
        """
        Return this together with further rows.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Rows of the regressor.
        y : ndarray, shape (m,)
            What they should give.

        Returns
        -------
        Information

        Raises
        ------
        ShapeError
            If the shapes do not belong together.
        InertialEstimationError
            If a number is not finite: one NaN would spoil all that is known.

        """
        if Y.ndim != 2 or Y.shape[1] != self.n:
            raise ShapeError('Y', ('m', self.n), Y.shape, 'one column for each unknown')
        if y.shape != (len(Y),):
            raise ShapeError('y', (len(Y),), y.shape, 'one value for each row of Y')
        if not (np.isfinite(Y).all() and np.isfinite(y).all()):
            raise InertialEstimationError('rows hold NaN or infinity: leave these rows out')
        triangle, energy = self._stacked(), self.energy
        for start in range(0, len(Y), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            triangle, excess = _reduce([triangle, np.column_stack([Y[rows], y[rows]])], self.n)
            energy += excess
        return Information(
            triangle[:, :-1], triangle[:, -1].copy(), energy, self.count + float(len(Y))
        )

    def merge(self, *others: Information) -> Information:
        """
        Return this together with others; the order does not matter but for round-off.

        Parameters
        ----------
        *others : Information
            Of the same unknowns.

        Returns
        -------
        Information

        Raises
        ------
        ShapeError
            If the number of unknowns differs.

        """
        for other in others:
            if other.n != self.n:
                raise ShapeError('R', (self.n, self.n), other.R.shape, 'the same unknowns')
        everyone = (self, *others)
        triangle, excess = _reduce([one._stacked() for one in everyone], self.n)
        return Information(
            triangle[:, :-1],
            triangle[:, -1].copy(),
            excess + sum(one.energy for one in everyone),
            sum(one.count for one in everyone),
        )

    def scaled(self, weight: float) -> Information:
        """
        Return the information of rows that were all multiplied by a weight.

        The number of rows stays: a weight says how exact they are, not how many.

        Parameters
        ----------
        weight : float
            Say one over the standard deviation of their noise.

        Returns
        -------
        Information

        """
        return replace(
            self, R=weight * self.R, rho=weight * self.rho, energy=weight**2 * self.energy
        )

    def squared_residual(self, x: Array) -> float:
        """
        Return the sum of squared residuals of all rows.

        Parameters
        ----------
        x : ndarray, shape (n,)
            Unknowns.

        Returns
        -------
        float

        """
        return float(np.sum((self.R @ x - self.rho) ** 2) + self.energy)

    def _stacked(self) -> Array:
        """Return [R rho], shape (n, n + 1)."""
        return np.column_stack([self.R, self.rho])


def weighted_sum(parts: Iterable[Information], weights: Iterable[float]) -> Information:
    """
    Merge information of several kinds of rows, each with the weight of its rows.

    Parameters
    ----------
    parts : iterable of Information
        At least one.
    weights : iterable of float
        One for each.

    Returns
    -------
    Information

    """
    first, *others = (part.scaled(weight) for part, weight in zip(parts, weights, strict=True))
    return first.merge(*others)


def _reduce(blocks: list[Array], n: int) -> tuple[Array, float]:
    """Return the first n rows of the triangle of stacked rows, and what is left as energy."""
    from scipy.linalg import get_lapack_funcs

    stacked = np.asfortranarray(np.vstack(blocks))
    (geqrf,) = get_lapack_funcs(('geqrf',), (stacked,))
    triangle, _, _, _ = geqrf(stacked, overwrite_a=True)
    excess = float(triangle[n, n] ** 2) if len(triangle) > n else 0.0
    top = np.zeros((n, n + 1))
    rows = min(n, len(triangle))
    top[:rows] = np.triu(triangle[:rows])
    return top, excess
