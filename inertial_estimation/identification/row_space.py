# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which combinations of unknowns rows determine, by singular values.

Columns are scaled to a length of one first, so that the answer does not depend on their units:
the mass of a link and an inertia of its finger tip differ by a factor of a million.

What rows say once some of their unknowns are gone, or have changed since.

Unknowns are eliminated by orthogonal transforms that take them first: the rows below them are
free of them, and say of the others all that the whole said [Bierman 1977, chapter 6].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ShapeError
from inertial_estimation.identification.information import Information

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


Columns = NDArray[np.intp]

DEPENDENT = 1e-12
"""Columns of length one that are this near to others are combinations of them."""


def eliminated(information: Information, columns: Columns) -> Information:
    """
    Return what is known of the others, whatever some unknowns are.

    columns (k,).
    """
    n = information.n
    others = np.setdiff1d(np.arange(n), columns)
    stacked = np.empty((n, n + 1))
    stacked[:, : len(columns)] = information.R[:, columns]
    stacked[:, len(columns) : -1] = information.R[:, others]
    stacked[:, -1] = information.rho
    return _below(stacked, len(columns), information)


def wandered(information: Information, columns: Columns, deviations: Array) -> Information:
    """
    Return what is still known after some unknowns have wandered off.

    columns (k,); deviations (k,).
    """
    if deviations.shape != columns.shape:
        raise ShapeError('deviations', columns.shape, deviations.shape, 'one for each column')
    if not (deviations >= 0.0).all():
        raise InertialEstimationError(f'a deviation must not be negative, not {deviations.min()}')
    moved = columns[deviations > 0.0]
    n, k = information.n, len(moved)
    if not k:
        return information
    stacked = np.zeros((n + k, k + n + 1))
    stacked[:n, k:-1], stacked[:n, -1] = information.R, information.rho
    stacked[:n, :k] = information.R[:, moved]
    stacked[:n, k + moved] = 0.0
    rows, size = np.arange(k), 1.0 / deviations[deviations > 0.0]
    stacked[n + rows, rows] = -size
    stacked[n + rows, k + moved] = size
    return _below(stacked, k, information)


def _below(stacked: Array, k: int, information: Information) -> Information:
    """Return what rows [R rho] say of the others, whatever the first k columns are."""
    rest = across(stacked[:, :k], stacked[:, k:])
    found = Information.empty(rest.shape[1] - 1).add(rest[:, :-1], rest[:, -1])
    return replace(found, energy=information.energy + found.energy, count=information.count)


def across(columns: Array, rest: Array) -> Array:
    """
    Return combinations of rows in which some of their columns do not appear.

    columns (m, k); rest (m, n); returns (m - rank, n).
    """
    from scipy.linalg.lapack import dgeqp3, dormqr

    if not columns.shape[1]:
        return rest
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0.0, lengths, 1.0)
    # What no row holds takes no row away: only independent columns do.
    reduced, _, factors, _, _ = dgeqp3(scaled)
    rank = int(np.sum(np.abs(np.diag(reduced)) > DEPENDENT))
    turned, _, _ = dormqr('L', 'T', reduced, factors, rest, 64 * rest.shape[1])
    return np.asarray(turned[rank:])
