# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Equations of one kind that hold only the columns of the unknowns in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.model.base_parameters import BaseParameters

ROUND_OFF = 1e-13
"""Factors of a grouping below this are zero [m, m^2]."""


class Part(NamedTuple):
    """Some columns of a regressor."""

    columns: Indices
    """Shape (k,)."""
    values: Array
    """Shape (k, n): samples last."""


class SparseEquations(NamedTuple):
    """Equations ``Y x = y`` of n samples; columns in no part are zero."""

    parts: tuple[Part, ...]
    y: Array
    """Shape (n,)."""
    usable: Mask
    """Samples that may be used if they hold numbers, shape (n,)."""

    def dense(self, n_unknowns: int) -> Array:
        """Return [Y y] of all columns, (n, n_unknowns + 1), NaN where it is not usable."""
        transposed = np.zeros((n_unknowns + 1, len(self.y)))
        for part in self.parts:
            transposed[part.columns] += part.values
        transposed[-1] = np.where(self.usable, self.y, np.nan)
        return transposed.T

    def system(self, columns: Indices, n_unknowns: int) -> tuple[Array, int]:
        """Return [Y y] of some columns, (m, k + 1) in LAPACK's order, and n - m."""
        place = np.full(n_unknowns, -1)
        place[columns] = np.arange(len(columns))
        transposed = np.zeros((len(columns) + 1, len(self.y)))
        for part in self.parts:
            to = place[part.columns]
            kept = np.flatnonzero(to >= 0)
            transposed[to[kept]] += part.values[kept]
        transposed[-1] = self.y
        # The sum of a row is finite where all of it is.
        good = self.usable & np.isfinite(transposed.sum(axis=0))
        if not good.all():
            transposed = transposed[:, good]
        return transposed.T, int(len(self.y) - good.sum())

    def residuals(self, x: Array) -> Array:
        """Return Y x - y, (n,)."""
        found = np.where(self.usable, -self.y, np.nan)
        for part in self.parts:
            found += x[part.columns] @ part.values
        return found

    def base(self, order: Indices) -> BaseParameters:
        """Return the base parameters of equations of random states."""
        touched = np.unique(np.concatenate([part.columns for part in self.parts]))
        rows, _ = self.system(touched, len(order))
        # Ranks of the touched columns in the order of all.
        found = BaseParameters.of_regressor(rows[:, :-1], np.argsort(np.argsort(order)[touched]))
        grouping = np.zeros((found.rank, len(order)))
        grouping[:, touched] = np.where(np.abs(found.grouping) > ROUND_OFF, found.grouping, 0.0)
        return BaseParameters(touched[found.independent], grouping)
