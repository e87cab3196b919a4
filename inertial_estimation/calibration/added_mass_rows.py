# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The equations of the matrix from added masses [T 5.11]: their rank, solution and covariance.

Data set j gives ``C H_j - M_b = M_j``, three columns for six rows, with H_j the slopes of the raw
readings by gravity. Columns are weighed by the root L_j of the sum of squares of its gravity, rows
by a 6 x 6 matrix W; raw channels are whitened by their noise S = F F':

    (W C F) (F^-1 H_j L_j) - W M_b L_j = W M_j L_j

The unknowns are scaled so that noise adds numbers of size 1 to the coefficients of the first
bracket and nothing to the others. So the rank counts singular values that noise does not make,
whatever the units of the raw channels are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.raw_slopes import RawSlopes
from inertial_estimation.calibration.weighing import FIRST_MOMENTS, Weighed, weight_matrix

Array = NDArray[np.float64]

UNKNOWNS = 40
OF_MATRIX = 36
ROUNDS = 4
"""Of weighing the rows by the noise that the matrix of the round before makes of that of raw."""
BEYOND_NOISE = 3.0
"""
Singular values up to so many times what noise makes count as zero: the largest one of a random
matrix exceeds its expected bound by a third of that once in 10^5.
"""

LEAST_VARIANCE = 1e-3
"""Of the largest: 40 blocks of a data set do not tell which of many directions has less."""
ROUND_OFF = 1e-9
"""Less of a data set's equations than that is not left over."""


@dataclass(frozen=True, eq=False)
class AddedMassRows:
    """Reduced data sets."""

    slopes: tuple[Array, ...]
    """H_j, of raw readings by gravity in the frame of the wrenches, shape (6, 3)."""
    roots: tuple[Array, ...]
    """L_j, with ``L_j L_j'`` the sum of squares of gravity about its mean, shape (3, 3)."""
    covariances: tuple[Array, ...]
    """Of H_j L_j by columns, shape (18, 18)."""
    known: tuple[Array, ...]
    """M_j of what was added, shape (6, 3)."""
    noise: Array
    """F, with ``F F'`` the covariance of the raw readings, shape (6, 6)."""

    @classmethod
    def of(
        cls, found: Sequence[RawSlopes], known: Sequence[Weighed], R: Array, direction: int
    ) -> AddedMassRows:
        """
        Reduce data sets.

        R (3, 3).
        """
        roots = tuple(np.asarray(np.linalg.cholesky(R @ one.gram @ R.T), float) for one in found)
        covariances = []
        for one, L in zip(found, roots, strict=True):
            move = np.kron((R.T @ L).T, np.eye(6))
            covariances.append(move @ one.covariance[:18, :18] @ move.T)
        total = sum(one.n_samples for one in found)
        noise = np.sum([one.noise * one.n_samples for one in found], axis=0) / total
        return cls(
            # Gravity is the opposite of what an accelerometer reads.
            tuple(-direction * one.slopes @ R.T for one in found),
            roots,
            tuple(covariances),
            tuple(weight_matrix(one.mass, one.first_moment) for one in known),
            np.asarray(np.linalg.cholesky(noise), dtype=np.float64),
        )

    def rank(self, weight: Array) -> tuple[int, Array]:
        """
        Return how many unknowns the data sets tell.

        weight (6, 6); returns (40,).
        """
        sigma = np.linalg.svd(self._scaled(weight)[0], compute_uv=False)
        sigma = np.concatenate([sigma, np.zeros(UNKNOWNS - len(sigma))])
        of_noise = np.sqrt(3.0 * len(self.slopes)) + np.sqrt(6.0)
        return int((sigma > BEYOND_NOISE * of_noise).sum()), sigma / of_noise

    def solve(self, weight: Array) -> tuple[Array, Weighed]:
        """
        Solve the equations by least squares.

        weight (6, 6); returns (6, 6).
        """
        coefficients, unscale = self._scaled(weight)
        right = np.concatenate([
            (weight @ M @ L).reshape(-1, order='F')
            for M, L in zip(self.known, self.roots, strict=True)
        ])  # fmt: skip
        x = unscale @ np.linalg.lstsq(coefficients, right, rcond=None)[0]
        return x[:OF_MATRIX].reshape(6, 6, order='F'), Weighed(float(x[36]), x[37:])

    def solve_weighed(self, length_scale: float) -> tuple[Array, Array, Weighed]:
        """
        Solve the equations, each weighed by the noise that the solution makes of that of raw.

        length_scale [m]; returns (6, 6).
        """
        weight = np.diag(np.repeat([1.0, 1.0 / length_scale], 3))
        matrix, body = self.solve(weight)
        for _ in range(ROUNDS):
            weight = self.weight(matrix)
            matrix, body = self.solve(weight)
        return weight, matrix, body

    def with_loads(self, order: Sequence[int]) -> AddedMassRows:
        """Return the data sets with what was added in another order."""
        return replace(self, known=tuple(self.known[k] for k in order))

    def weight(self, matrix: Array) -> Array:
        """
        Return the W that makes the noise of all rows 1.

        matrix (6, 6); returns (6, 6).
        """
        return np.asarray(np.linalg.inv(matrix @ self.noise))

    def covariance(self, weight: Array, matrix: Array) -> Array:
        """
        Return the covariance of the unknowns.

        weight (6, 6); matrix (6, 6); returns (40, 40).
        """
        coefficients, unscale = self._scaled(weight)
        gain = unscale @ np.linalg.pinv(coefficients)
        move = np.kron(np.eye(3), weight @ matrix)
        total = np.zeros((UNKNOWNS, UNKNOWNS))
        for j, covariance in enumerate(self.covariances):
            part = gain[:, 18 * j : 18 * (j + 1)] @ move
            total += part @ covariance @ part.T
        return total

    def residuals(self, weight: Array, matrix: Array, body: Weighed) -> Array:
        """
        Return what the equations leave, over what the noise of the readings leaves of them.

        weight (6, 6); returns (n_sets,).
        """
        U = np.linalg.svd(self._scaled(weight)[0], full_matrices=False)[0]
        freedom = 1.0 - (U.reshape(len(self.slopes), -1, UNKNOWNS) ** 2).sum(axis=2).mean(axis=1)
        M_b = weight_matrix(body.mass, body.first_moment)
        left = [
            weight @ (matrix @ H - M_b - M) @ L
            for H, M, L in zip(self.slopes, self.known, self.roots, strict=True)
        ]
        squares = np.array([(one**2).mean() for one in left])
        tells = freedom > ROUND_OFF
        return np.asarray(
            np.sqrt(np.where(tells, squares, np.nan) / np.where(tells, freedom, 1.0))
        )

    def over_lasting(self, weight: Array, matrix: Array, body: Weighed) -> float:
        """
        Return what the equations leave, over what errors of the slopes that last leave of them.

        weight (6, 6).
        """
        free = np.linalg.svd(self._scaled(weight)[0])[0][:, UNKNOWNS:]
        M_b = weight_matrix(body.mass, body.first_moment)
        left, spread = np.zeros(free.shape[1]), np.zeros((free.shape[1],) * 2)
        move = np.kron(np.eye(3), weight @ matrix)
        for j, (H, M, L) in enumerate(zip(self.slopes, self.known, self.roots, strict=True)):
            part = free[18 * j : 18 * (j + 1)]
            left += part.T @ (weight @ (matrix @ H - M_b - M) @ L).reshape(-1, order='F')
            spread += part.T @ move @ self.covariances[j] @ move.T @ part
        squares, axes = np.linalg.eigh(spread)
        squares = np.maximum(squares, LEAST_VARIANCE * squares.max())
        return float(np.sqrt(((axes.T @ left) ** 2 / squares).mean()))

    def share_left(self, matrix: Array, body: Weighed, length_scale: float) -> float:
        """
        Return what the equations leave, over the slopes of what was added.

        length_scale [m].
        """
        scale = np.repeat([1.0, 1.0 / length_scale], 3)[:, None]
        M_b = weight_matrix(body.mass, body.first_moment)
        left = [
            scale * (matrix @ H - M_b - M) for H, M in zip(self.slopes, self.known, strict=True)
        ]
        added = float(np.linalg.norm([scale * M for M in self.known]))
        equations = 18.0 * len(left)
        seen = max(1.0 - UNKNOWNS / equations, ROUND_OFF)
        return float(np.linalg.norm(left)) / np.sqrt(seen) / added if added else 0.0

    def _scaled(self, weight: Array) -> tuple[Array, Array]:
        """Return coefficients of scaled unknowns, (18 n, 40), and what takes these to unknowns."""
        whitened = [
            np.linalg.solve(self.noise, H @ L)
            for H, L in zip(self.slopes, self.roots, strict=True)
        ]
        size = np.linalg.norm(np.hstack(whitened), 2)
        of_body = np.hstack([_body_columns(weight, L) for L in self.roots])
        lengths = np.linalg.norm(of_body, axis=1) / size
        coefficients = np.vstack([np.kron(one.T, np.eye(6)) for one in whitened])
        unscale = np.zeros((UNKNOWNS, UNKNOWNS))
        unscale[:36, :36] = np.kron(np.linalg.inv(self.noise).T, np.linalg.inv(weight))
        unscale[36:, 36:] = np.diag(1.0 / lengths)
        return np.hstack([coefficients, -(of_body / lengths[:, None]).T]), unscale


def _body_columns(weight: Array, L: Array) -> Array:
    """Return W M L of a unit of mass, and of each first moment, by columns, shape (4, 18)."""
    units = [np.vstack([np.eye(3), np.zeros((3, 3))])]
    units += [np.vstack([np.zeros((3, 3)), one]) for one in FIRST_MOMENTS]
    return np.array([(weight @ one @ L).reshape(-1, order='F') for one in units])
