# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Combinations of unknowns that equations determine, and elimination of unknowns.

Columns are scaled to length one before ranks are decided: the mass of a link and an inertia of its
finger tip differ by a factor of a million. Unknowns are eliminated by orthogonal transforms that
take them first: the rows below are free of them, and hold all information about the others
[Bierman 1977, chapter 6].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns

RANK_TOLERANCE = 1e-10
"""Singular value over the largest that is zero: reductions leave 1e-14, some logs need 1e-7."""
ZERO_COLUMN = 1e-12
"""Share of the longest column below which others are zero: angles of a URDF have six digits."""
DETERMINED = 1e-6
"""Part of the unit vector of a determined unknown that may be outside the row space."""
DEPENDENT = 1e-12
"""Length of the independent part below which a column of length one is dependent."""


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Singular value decomposition of equations with scaled columns."""

    scales: Array
    """Length of each column, one where it is zero, shape (n,)."""
    left: Array
    """Shape (r, rank)."""
    strengths: Array
    """Singular values above the tolerance, decreasing, shape (rank,)."""
    directions: Array
    """Scaled combinations that are determined, orthonormal, shape (n, rank)."""
    missing: Array
    """Scaled combinations that are not, orthonormal, shape (n, n - rank)."""

    @classmethod
    def of(cls, factor: Array, tolerance: float = RANK_TOLERANCE) -> RowSpace:
        """Decompose a regressor, (r, n)."""
        scales, is_wide = _scales(np.linalg.norm(factor, axis=0)), len(factor) < factor.shape[1]
        try:
            left, strengths, directions = np.linalg.svd(factor / scales, full_matrices=is_wide)
        except np.linalg.LinAlgError:
            from scipy.linalg import svd

            # Entries of round-off may stop the faster algorithm.
            left, strengths, directions = svd(factor / scales, is_wide, lapack_driver='gesvd')
        rank = int(np.count_nonzero(strengths > tolerance * strengths.max(initial=0.0)))
        return cls(
            scales, left[:, :rank], strengths[:rank], directions[:rank].T, directions[rank:].T
        )

    @property
    def rank(self) -> int:
        """Number of combinations that are determined."""
        return len(self.strengths)

    @property
    def determined(self) -> Mask:
        """Unknowns that are determined by themselves, shape (n,)."""
        return np.asarray(np.linalg.norm(self.missing, axis=1) <= DETERMINED, dtype=np.bool_)

    def solve(self, target: Array) -> Array:
        """Return the least squares solution of least scaled norm, (n,)."""
        shares = (self.left.T @ target) / self.strengths
        return np.asarray(self.directions @ shares / self.scales)

    def invisible(self) -> Array:
        """Return an orthonormal basis of the null space, unscaled, shape (n, n - rank)."""
        basis, _ = np.linalg.qr(self.missing / self.scales[:, None])
        return np.asarray(basis)

    def variances(self) -> Array:
        """Return the diagonal of the inverse of factor' factor, infinite if undetermined."""
        return np.where(self.determined, np.sum(self.inverse_root() ** 2, axis=1), np.inf)

    def inverse_root(self) -> Array:
        """Return F (n, rank), F F' the pseudo-inverse of factor' factor in scaled unknowns."""
        return np.asarray(self.directions / self.strengths / self.scales[:, None])


def numerical_rank(gram: Array) -> int:
    """Return the rank of products of equations, (n, n): faster and coarser than `RowSpace`."""
    from scipy.linalg.lapack import dpstrf

    scales = _scales(np.sqrt(np.maximum(np.diag(gram), 0.0)))
    _, _, rank, _ = dpstrf(gram / scales / scales[:, None])
    return int(rank)


def column_basis(factor: Array) -> Array:
    """Return an orthonormal basis of the columns, (r, rank): faster than `RowSpace`."""
    from scipy.linalg import qr

    if not factor.size:
        return np.zeros((len(factor), 0))
    scaled = factor / _scales(np.linalg.norm(factor, axis=0))
    basis, reduced, _ = qr(scaled, mode='economic', pivoting=True)
    pivots = np.abs(np.diag(reduced))
    return np.asarray(basis[:, pivots > RANK_TOLERANCE * pivots[0]])


def independent_fit(information: Information) -> tuple[Array, Indices, Array]:
    """
    Return unknowns that fit best, all but some independent ones zero: faster than `RowSpace`.

    Returns (n,), the independent columns, (rank,), and F, F F' the inverse of their products.
    """
    from scipy.linalg import qr_multiply, solve_triangular

    scales = _scales(np.linalg.norm(information.R, axis=0))
    if not (np.isfinite(scales).all() and np.isfinite(information.rho).all()):
        raise np.linalg.LinAlgError('equations hold NaN or infinity')
    turned, reduced, order = qr_multiply(
        information.R / scales, information.rho, mode='right', pivoting=True
    )
    pivots = np.abs(np.diag(reduced))
    rank = int(np.sum(pivots > RANK_TOLERANCE * pivots.max(initial=0.0)))
    columns, x = order[:rank], np.zeros(information.n)
    root = np.eye(rank)
    if rank:
        root = solve_triangular(reduced[:rank, :rank], root) / scales[columns, None]
    x[columns] = root @ turned[:rank]
    return x, columns, root


def _scales(lengths: Array) -> Array:
    """Return the length of each column, the longest in place of round-off."""
    longest = lengths.max(initial=0.0) or 1.0
    return np.where(lengths > ZERO_COLUMN * longest, lengths, longest)


def eliminated(information: Information, columns: Indices) -> Information:
    """Return the information about the other unknowns, whatever some are."""
    order = np.append(columns, np.setdiff1d(np.arange(information.n), columns))
    stacked = np.column_stack([information.R[:, order], information.rho])
    return _below(stacked, len(columns), information)


def wandered(information: Information, columns: Indices, deviations: Array) -> Information:
    """Return the information after some unknowns have changed by random steps, (k,)."""
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
    """Return the information of rows [R rho] about all but the first k columns."""
    rest = across(stacked[:, :k], stacked[:, k:])
    found = Information.empty(rest.shape[1] - 1).add(rest[:, :-1], rest[:, -1])
    return replace(found, energy=information.energy + found.energy, count=information.count)


def across(columns: Array, rest: Array) -> Array:
    """Return the combinations, (m - rank, n), of rows in which some columns do not appear."""
    from scipy.linalg.lapack import dgeqp3, dormqr

    if not columns.shape[1]:
        return rest
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0.0, lengths, 1.0)
    # Only independent columns take a row away.
    reduced, _, factors, _, _ = dgeqp3(scaled)
    rank = int(np.sum(np.abs(np.diag(reduced)) > DEPENDENT))
    turned, _, _ = dormqr('L', 'T', reduced, factors, rest, 64 * rest.shape[1])
    return np.asarray(turned[rank:])


def shared_offsets(submodels: Sequence[tuple[Unknowns, Any]]) -> list[str]:
    """Return the offsets that are unknowns of more than one submodel."""
    names = [str(e) for one, _ in submodels for e in one.extras if e.term in FT_OFFSET]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def determined_by_others(
    submodels: Sequence[tuple[Unknowns, Information]],
) -> list[Information | None]:
    """Return for each submodel what the others determine of its offsets; None: nothing."""
    shared = shared_offsets(submodels)
    onto = []
    for unknowns, rows in submodels:
        columns = np.flatnonzero(np.isin(unknowns.names, shared))
        left = eliminated(rows, np.setdiff1d(np.arange(rows.n), columns))
        places = [shared.index(unknowns.names[k]) for k in columns]
        onto.append(left.placed(np.array(places, dtype=np.intp), len(shared)))
    found: list[Information | None] = []
    for k, (unknowns, _) in enumerate(submodels):
        first, *more = onto[:k] + onto[k + 1 :]
        foreign = [j for j, name in enumerate(shared) if name not in unknowns.names]
        left = eliminated(first.merge(*more), np.array(foreign, dtype=np.intp))
        columns = unknowns.columns(name for name in shared if name in unknowns.names)
        left = replace(left.placed(columns, len(unknowns)), energy=0.0, count=0.0)
        found.append(left if left.R.any() else None)
    return found
