# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Linear equations in a size that does not grow with their number.

Equations ``Y x = y`` are kept as the triangle of [Y y], which is all that any least squares of
them needs: ``|Y x - y|^2 = |R x - rho|^2 + energy``. Triangles are made by orthogonal transforms
and never by Y' Y, which would square the condition number [S 64-73; Golub & Van Loan 5.2].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import InertialEstimationError, ModelError, ShapeError

EQUATIONS_AT_ONCE = 2048
"""Equations that are reduced together: fast, and small in memory."""
REFLECTED_COLUMNS = 16
"""Columns that LAPACK reflects together."""


def require_array(name: str, value: object, shape: tuple[int, ...] | None = None) -> None:
    """Raise unless a value is an array of real numbers, of some shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'fiu':
        raise ModelError(f"'{name}' must be a numpy array of real numbers")
    if shape is not None and value.shape != shape:
        raise ShapeError(name, shape, value.shape)


@dataclass(frozen=True, eq=False)
class Information:
    """
    Reduced equations; immutable.

    Attributes
    ----------
    R : ndarray, shape (n, n)
        Upper triangle.
    rho : ndarray, shape (n,)
        Transformed right-hand sides.
    energy : float
        Sum of squares that no unknowns can explain.
    count : float
        Number of equations, less what was forgotten.

    """

    R: Array
    rho: Array
    energy: float
    count: float

    @classmethod
    def empty(cls, n: int) -> Information:
        """Return the information of no equations of n unknowns."""
        return cls(np.zeros((n, n)), np.zeros(n), 0.0, 0.0)

    @classmethod
    def of(cls, Y: Array, y: Array) -> Information:
        """Reduce equations, as `add` does."""
        require_array('Y', Y)
        return cls.empty(Y.shape[-1] if Y.ndim else 0).add(Y, y)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.rho)

    @property
    def system(self) -> Array:
        """[R rho] with the root of the energy below, of which all products are those of [Y y]."""
        triangle = self._triangle()
        triangle[-1, -1] = np.sqrt(self.energy)
        return triangle

    def add(self, Y: Array, y: Array) -> Information:
        """
        Return this together with further equations.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Regressor.
        y : ndarray, shape (m,)
            Right-hand sides.

        Returns
        -------
        Information

        Raises
        ------
        ShapeError
            If the shapes do not match.
        InertialEstimationError
            If a number is not finite.

        """
        require_array('Y', Y)
        require_array('y', y)
        if Y.ndim != 2 or Y.shape[1] != self.n:
            raise ShapeError('Y', ('m', self.n), Y.shape, 'one column for each unknown')
        if y.shape != (len(Y),):
            raise ShapeError('y', (len(Y),), y.shape, 'one value for each equation')
        if not (np.isfinite(Y).all() and np.isfinite(y).all()):
            raise InertialEstimationError('equations hold NaN or infinity')
        triangle = self._triangle()
        for start in range(0, len(Y), EQUATIONS_AT_ONCE):
            some = slice(start, start + EQUATIONS_AT_ONCE)
            # In LAPACK's order from the start: it makes no copy.
            block = np.empty((len(y[some]), self.n + 1), order='F')
            block[:, :-1], block[:, -1] = Y[some], y[some]
            triangle = absorb(triangle, block)
        return _of_triangle(triangle, self.energy, self.count + len(Y))

    def merge(self, *others: Information) -> Information:
        """Return this together with others; the order does not matter but for round-off."""
        triangle, energy, count = self._triangle(), self.energy, self.count
        for other in others:
            if other.n != self.n:
                raise ShapeError('R', (self.n, self.n), other.R.shape, 'the same unknowns')
            # The corner is kept apart: energies add up without a root and a square.
            triangle = absorb(triangle, other._triangle()[:-1], triangular=True)
            energy += other.energy
            count += other.count
        return _of_triangle(triangle, energy, count)

    def placed(self, columns: Indices, n: int) -> Information:
        """Return the same equations of n unknowns, of which these are some columns."""
        Y, rho = np.zeros((n, n)), np.zeros(n)
        Y[np.ix_(columns, columns)], rho[columns] = self.R, self.rho
        if (np.diff(columns) > 0).all():
            return replace(self, R=Y, rho=rho)
        found = Information.of(Y, rho)
        return replace(found, energy=self.energy + found.energy, count=self.count)

    def forget(self, factor: float) -> Information:
        """Return R'R times a forgetting factor in (0, 1], such as ``0.5 ** (dt / half_life)``."""
        if not 0.0 < factor <= 1.0:
            raise ModelError(f'the forgetting factor is {factor:g}, expected more than 0, up to 1')
        return replace(self.scaled(float(np.sqrt(factor))), count=factor * self.count)

    def scaled(self, weight: float) -> Information:
        """Return all equations times a weight, such as one over the deviation of their noise."""
        return replace(
            self, R=weight * self.R, rho=weight * self.rho, energy=weight**2 * self.energy
        )

    def squared_residual(self, x: Array) -> float:
        """Return the sum of squared residuals of some unknowns, (n,)."""
        return float(np.sum((self.R @ x - self.rho) ** 2) + self.energy)

    def _triangle(self) -> Array:
        """Return [[R, rho], [0, 0]] in LAPACK's order, shape (n + 1, n + 1)."""
        triangle = np.zeros((self.n + 1, self.n + 1), order='F')
        triangle[:-1, :-1], triangle[:-1, -1] = self.R, self.rho
        return triangle


def _of_triangle(triangle: Array, energy: float, count: float) -> Information:
    """Return the information of a triangle, whose corner is a residual."""
    R, rho = np.ascontiguousarray(triangle[:-1, :-1]), triangle[:-1, -1]
    return Information(R, rho, energy + float(triangle[-1, -1]) ** 2, count)


def weighted_sum(parts: Iterable[Information], weights: Iterable[float]) -> Information:
    """Merge information of several kinds of equations, each multiplied by a weight."""
    first, *others = (part.scaled(factor) for part, factor in zip(parts, weights, strict=True))
    return first.merge(*others)


def absorb(triangle: Array, rows: Array, triangular: bool = False) -> Array:
    """Return the triangle, (n, n), of a triangle and rows below it, (m, n)."""
    from scipy.linalg.lapack import dtpqrt

    if not len(rows):
        return triangle
    height = len(rows) if triangular else 0
    columns = min(REFLECTED_COLUMNS, len(triangle))
    reduced, _, _, status = dtpqrt(
        height, columns, triangle, np.asfortranarray(rows), overwrite_a=1, overwrite_b=1
    )
    if status:
        raise InertialEstimationError(f'LAPACK dtpqrt failed with status {status}')
    return np.asarray(reduced)
