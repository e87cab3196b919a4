# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows that are worked into a triangle by orthogonal transforms, with LAPACK.

What rows of an equation say about its unknowns, in a size that does not grow with their number.

Rows ``Y x = y`` are kept as the triangle of [Y y], which is all that any least squares of them
needs: ``|Y x - y|^2 = |R x - rho|^2 + energy``. Triangles are made by orthogonal transforms and
never by Y' Y, which would square the condition number [S 64-73; Golub & Van Loan 5.2]. Rows are
worked into the triangle that is there, which costs less than to reduce both anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ShapeError
from inertial_estimation.identification.arguments import require_array, require_number

Array = NDArray[np.float64]

REFLECTED_COLUMNS = 32
"""Columns that LAPACK reflects together."""


def absorb(triangle: Array, rows: Array, triangular: bool = False) -> Array:
    """
    Return the triangle of a triangle and rows below it.

    triangle (n, n); rows (m, n); returns (n, n).
    """
    from scipy.linalg.lapack import dtpqrt

    if not len(rows):
        return triangle
    height = len(rows) if triangular else 0
    reduced, _, _, status = dtpqrt(
        height,
        min(REFLECTED_COLUMNS, len(triangle)),
        triangle,
        np.asfortranarray(rows),
        overwrite_a=1,
        overwrite_b=1,
    )
    if status:
        raise InertialEstimationError(f'LAPACK refuses to reduce the rows (dtpqrt: {status})')
    return np.asarray(reduced)


ROWS_AT_ONCE = 2048
"""Rows that are reduced together: enough to be fast, few enough to stay small in memory."""
EXCITED = 1e-6
"""
Share of the strongest direction of new rows from which a weaker one counts as excited by them.
"""


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
        if not isinstance(n, Integral) or n < 0:
            raise InertialEstimationError(f'there cannot be {n!r} unknowns')
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
        require_array('Y', Y)
        return cls.empty(Y.shape[-1] if Y.ndim else 0).add(Y, y)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.rho)

    def add(self, Y: Array, y: Array, weights: Array | None = None) -> Information:
        """
        Return this together with further rows.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Rows of the regressor.
        y : ndarray, shape (m,)
            What they should give.
        weights : ndarray, shape (m,), optional
            How much each row counts, from 0 to 1; its square is multiplied by it, as in
            `reweighting.robust_weights`. Default: 1.

        Returns
        -------
        Information

        Raises
        ------
        ShapeError
            If the shapes do not belong together.
        InertialEstimationError
            If a number is not finite: one NaN would spoil all that is known; or a weight is
            out of range.

        """
        require_array('Y', Y)
        require_array('y', y)
        if Y.ndim != 2 or Y.shape[1] != self.n:
            raise ShapeError('Y', ('m', self.n), Y.shape, 'one column for each unknown')
        if y.shape != (len(Y),):
            raise ShapeError('y', (len(Y),), y.shape, 'one value for each row of Y')
        if not (np.isfinite(Y).all() and np.isfinite(y).all()):
            raise InertialEstimationError('rows hold NaN or infinity: leave these rows out')
        roots = None if weights is None else _roots(weights, len(Y))
        triangle, energy = self._triangle(), self.energy
        for start in range(0, len(Y), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            # In the order of LAPACK from the start: no copy is made of it.
            block = np.empty((len(y[rows]), self.n + 1), order='F')
            block[:, :-1], block[:, -1] = Y[rows], y[rows]
            if roots is not None:
                block *= roots[rows, None]
            triangle = absorb(triangle, block)
        counted = float(len(Y) if weights is None else weights.sum())
        return self._of_triangle(triangle, energy, self.count + counted)

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
        triangle, energy, count = self._triangle(), self.energy, self.count
        for other in others:
            # The corner is kept apart: energies add up without a root and a square.
            triangle = absorb(triangle, other._triangle()[:-1], triangular=True)
            energy += other.energy
            count += other.count
        return self._of_triangle(triangle, energy, count)

    def forget(self, factor: float, toward: Information | None = None) -> Information:
        """
        Return what is left when all rows fade alike: R'R is multiplied by the factor.

        Parameters
        ----------
        factor : float
            Forgetting factor, above 0 and up to 1: ``0.5 ** (dt / half_life)``.
        toward : Information, optional
            What is known beforehand and does not fade: ``(1 - factor)`` of it comes in, so
            that it is all that is left in directions that rows no longer excite. Default: none,
            and these directions fade to nothing.

        Returns
        -------
        Information

        Raises
        ------
        InertialEstimationError
            If the factor is out of range.
        ShapeError
            If the number of unknowns differs.

        """
        _require_factor(factor)
        left = self.scaled(float(np.sqrt(factor)))
        left = replace(left, count=factor * self.count)
        if toward is None:
            return left
        share = 1.0 - factor
        coming = toward.scaled(float(np.sqrt(share)))
        return left.merge(replace(coming, count=share * toward.count))

    def forget_along(self, Y: Array, factor: float, excited: float = EXCITED) -> Information:
        """
        Return what is left when only that fades which new rows tell anew.

        With the orthonormal V of the directions that the rows excite, ``R'R`` loses
        ``(1 - factor) R'R V (V'R'R V)^-1 V'R'R``: the most that can fade along V while nothing
        is lost of what was known across it [Cao & Schwartz 2000]. The solution stays where it
        is. A standing robot does not forget what it learned while it moved.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Rows that are about to be added, in the units of those that are here.
        factor : float
            Forgetting factor along their directions, above 0 and up to 1.
        excited : float
            Singular values of Y below this share of the largest do not count as excitation.

        Returns
        -------
        Information
            Energy and count fade by the share of directions that did.

        Raises
        ------
        ShapeError
            If Y has another number of columns.
        InertialEstimationError
            If a number is not finite or the factor is out of range.

        """
        if Y.ndim != 2 or Y.shape[1] != self.n:
            raise ShapeError('Y', ('m', self.n), Y.shape, 'one column for each unknown')
        if not np.isfinite(Y).all():
            raise InertialEstimationError('rows hold NaN or infinity: leave these rows out')
        _require_factor(factor)
        along = self._along(Y, excited)
        lost = 1.0 - float(np.sqrt(factor))
        faded = self._triangle()[:-1]
        faded -= lost * along @ (along.T @ faded)
        known = int(np.count_nonzero(np.abs(np.diag(self.R)) > self._negligible()))
        share = 1.0 - (1.0 - factor) * along.shape[1] / max(known, 1)
        fresh = np.zeros((self.n + 1, self.n + 1), order='F')
        triangle = absorb(fresh, faded)
        return self._of_triangle(triangle, share * self.energy, share * self.count)

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

    def _triangle(self) -> Array:
        """Return [[R, rho], [0, 0]] in the order of LAPACK, shape (n + 1, n + 1)."""
        triangle = np.zeros((self.n + 1, self.n + 1), order='F')
        triangle[:-1, :-1], triangle[:-1, -1] = self.R, self.rho
        return triangle

    def _of_triangle(self, triangle: Array, energy: float, count: float) -> Information:
        """Return the information of a triangle, whose corner is a residual."""
        R, rho = np.triu(triangle[:-1, :-1]), triangle[:-1, -1]
        # One sign for each row, so that the same rows give the same triangle in any order.
        signs = np.where(np.diag(R) < 0.0, -1.0, 1.0)
        energy += float(triangle[-1, -1]) ** 2
        return Information(signs[:, None] * R, signs * rho, energy, count)

    def _along(self, Y: Array, excited: float) -> Array:
        """Return an orthonormal basis of R V, shape (n, k), where V are the rows' directions."""
        _, strengths, directions = np.linalg.svd(Y, full_matrices=False)
        strong = strengths > excited * max(strengths.max(initial=0.0), np.finfo(float).tiny)
        image = self.R @ directions[strong].T
        basis, sizes, _ = np.linalg.svd(image, full_matrices=False)
        return np.asarray(basis[:, sizes > self._negligible()], dtype=np.float64)

    def _negligible(self) -> float:
        """Return what round-off leaves where nothing is known."""
        return float(self.n * np.finfo(float).eps * np.linalg.norm(self.R))


def weighted_sum(parts: Iterable[Information], weights: Iterable[float]) -> Information:
    """Merge information of several kinds of rows, each with the weight of its rows."""
    kinds, factors = list(parts), list(weights)
    if not kinds or len(kinds) != len(factors):
        raise InertialEstimationError(
            f'{len(kinds)} kinds of rows and {len(factors)} weights: there has to be at least one '
            'kind, and a weight for each'
        )
    for factor in factors:
        require_number('weight', factor, least=0.0)
    first, *others = (part.scaled(factor) for part, factor in zip(kinds, factors, strict=True))
    return first.merge(*others)


def _roots(weights: Array, rows: int) -> Array:
    """Return the square roots of weights."""
    if weights.shape != (rows,):
        raise ShapeError('weights', (rows,), weights.shape, 'one for each row of Y')
    if not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise InertialEstimationError('the weight of a row must be between 0 and 1')
    return np.sqrt(weights)


def _require_factor(factor: float) -> None:
    """Raise unless a forgetting factor is one."""
    if not 0.0 < factor <= 1.0:
        raise InertialEstimationError(
            f'a forgetting factor must be above 0 and at most 1, not {factor:g}'
        )
