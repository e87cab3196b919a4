# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What rows say once some of their unknowns are gone, or have changed since.

Unknowns are eliminated by orthogonal transforms that take them first: the rows below them are
free of them, and say of the others all that the whole said [Bierman 1977, chapter 6].
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, ShapeError
from inertial_estimation.identification.information.information import Information

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

ROUND_OFF = 1e-12
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
    rank = int(np.sum(np.abs(np.diag(reduced)) > ROUND_OFF))
    turned, _, _ = dormqr('L', 'T', reduced, factors, rest, 64 * rest.shape[1])
    return np.asarray(turned[rank:])
