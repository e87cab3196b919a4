# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of one kind that hold only the unknowns they touch: of a joint's effort, those beyond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.base_parameters import BaseParameters

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]

ROUND_OFF = 1e-13
"""Smaller factors of a grouping are none [m, m^2]: what says nothing is to say exactly nothing."""


class Part(NamedTuple):
    """Some columns of rows."""

    columns: Columns
    """Shape (k,)."""
    values: Array
    """Shape (k, n): the instants last."""


class SparseEquations(NamedTuple):
    """Rows ``Y x = y`` of n instants; columns in no part are zero."""

    parts: tuple[Part, ...]
    y: Array
    """Shape (n,)."""
    usable: Mask
    """Instants that may be used if they hold numbers, shape (n,)."""

    def system(self, columns: Columns, n_unknowns: int) -> tuple[Array, int]:
        """
        Return [Y y] of some columns in the order of LAPACK, and how many instants gave no row.

        columns (k,); returns rows (m, k + 1).
        """
        place = np.full(n_unknowns, -1)
        place[columns] = np.arange(len(columns))
        transposed = np.zeros((len(columns) + 1, len(self.y)))
        for part in self.parts:
            to = place[part.columns]
            kept = np.flatnonzero(to >= 0)
            transposed[to[kept]] += part.values[kept]
        transposed[-1] = self.y
        # A sum over a row tells of NaN and infinity without a pass that writes.
        good = self.usable & np.isfinite(transposed.sum(axis=0))
        if not good.all():
            transposed = transposed[:, good]
        return transposed.T, int(len(self.y) - good.sum())

    def dense(self, n_unknowns: int) -> Array:
        """
        Return [Y y] of all columns.

        Returns (n, n_unknowns + 1).
        """
        transposed = np.zeros((n_unknowns + 1, len(self.y)))
        for part in self.parts:
            transposed[part.columns] += part.values
        transposed[-1] = self.y
        transposed[:, ~self.usable] = np.nan
        return transposed.T

    def residuals(self, x: Array) -> Array:
        """
        Return what unknowns leave of each row.

        x (n_unknowns,); returns (n,).
        """
        found = np.where(self.usable, -self.y, np.nan)
        for part in self.parts:
            found += x[part.columns] @ part.values
        return found

    def base(self, order: Columns) -> BaseParameters:
        """
        Return what rows like these can tell: these are of random states, more than unknowns.

        order (n_unknowns,).
        """
        n = len(order)
        touched = np.unique(np.concatenate([part.columns for part in self.parts]))
        rows, _ = self.system(touched, n)
        # Where the columns that are touched stand in the order of all.
        inner = np.argsort(np.argsort(order)[touched])
        found = BaseParameters.of_regressor(rows[:, :-1], inner)
        grouping = np.zeros((found.rank, n))
        grouping[:, touched] = np.where(np.abs(found.grouping) > ROUND_OFF, found.grouping, 0.0)
        return BaseParameters(touched[found.independent], grouping)
