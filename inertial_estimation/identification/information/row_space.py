# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which combinations of unknowns rows determine, by singular values.

Columns are scaled to a length of one first, so that the answer does not depend on their units:
the mass of a link and an inertia of its finger tip differ by a factor of a million.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-10
"""
Singular values below this share of the largest are zero. Reductions of exact rows leave 1e-14,
and rows of condition 1e7 must keep their rank.
"""
ROUND_OFF = 1e-12
"""
Columns shorter than this share of the longest are zero. Angles of a description are printed with
six digits, so what a joint does not move is seldom exactly zero; scaled up it would look seen.
"""
DOUBTFUL = 1e-6
"""Pivots below this share of the first may belong to singular values that count as zero."""
DETERMINED = 1e-6
"""An unknown is determined if no more than this of its unit vector lies outside the rows."""


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Singular value decomposition of rows whose columns were scaled."""

    scales: Array
    """Length of each column, one where it is zero, shape (n,)."""
    left: Array
    """Shape (r, rank)."""
    strengths: Array
    """Singular values above the tolerance, decreasing, shape (rank,)."""
    directions: Array
    """Scaled combinations that rows determine, orthonormal, shape (n, rank)."""
    missing: Array
    """Scaled combinations that they do not determine, orthonormal, shape (n, n - rank)."""

    @classmethod
    def of(cls, factor: Array, tolerance: float = RANK_TOLERANCE) -> RowSpace:
        """
        Decompose rows.

        factor (r, n).
        """
        scales = _scales(np.linalg.norm(factor, axis=0))
        left, strengths, directions = np.linalg.svd(factor / scales, full_matrices=True)
        rank = int(np.count_nonzero(strengths > tolerance * strengths.max(initial=0.0)))
        return cls(
            scales, left[:, :rank], strengths[:rank], directions[:rank].T, directions[rank:].T
        )

    @property
    def rank(self) -> int:
        """Combinations that the rows determine."""
        return len(self.strengths)

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Which unknowns are determined each by itself, shape (n,)."""
        return np.asarray(np.linalg.norm(self.missing, axis=1) <= DETERMINED, dtype=np.bool_)

    def solve(self, target: Array) -> Array:
        """
        Return the least squares of least scaled norm.

        target (r,); returns (n,).
        """
        shares = (self.left.T @ target) / self.strengths
        return np.asarray(self.directions @ shares / self.scales)

    def invisible(self) -> Array:
        """Return an orthonormal basis of what rows do not see, unscaled, shape (n, n - rank)."""
        basis, _ = np.linalg.qr(self.missing / self.scales[:, None])
        return np.asarray(basis)

    def variances(self) -> Array:
        """Return the diagonal of the inverse of factor' factor, infinite if undetermined."""
        spread = np.sum((self.directions / self.strengths) ** 2, axis=1) / self.scales**2
        return np.where(self.determined, spread, np.inf)


def numerical_rank(gram: Array) -> int:
    """
    Return how many combinations rows determine, faster and coarser than `RowSpace`.

    gram (n, n).
    """
    from scipy.linalg.lapack import dpstrf

    scales = _scales(np.sqrt(np.maximum(np.diag(gram), 0.0)))
    _, _, rank, _ = dpstrf(gram / scales / scales[:, None])
    return int(rank)


def column_basis(factor: Array) -> Array:
    """
    Return an orthonormal basis of what columns span: that of `RowSpace`, faster where it can be.

    factor (r, n); returns (r, rank).
    """
    from scipy.linalg.lapack import dgeqp3, dorgqr

    if not factor.size:
        return np.zeros((len(factor), 0))
    reduced, _, factors, _, _ = dgeqp3(factor / _scales(np.linalg.norm(factor, axis=0)))
    pivots = np.abs(np.diag(reduced))
    rank = int(np.count_nonzero(pivots > DOUBTFUL * pivots[0]))
    if np.count_nonzero(pivots > np.finfo(float).eps * pivots[0]) > rank:
        return RowSpace.of(factor).left
    basis, _, _ = dorgqr(reduced[:, :rank], factors[:rank])
    return np.asarray(basis)


def _scales(lengths: Array) -> Array:
    """Return what columns are divided by: their length, but for those that are round-off."""
    longest = lengths.max(initial=0.0) or 1.0
    return np.where(lengths > ROUND_OFF * longest, lengths, longest)
