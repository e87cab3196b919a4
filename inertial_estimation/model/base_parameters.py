# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters: the fewest numbers that say all that rows say of the unknowns [S 29-39].

Of the columns of a regressor Y the first independent ones are kept, and the others, which are
combinations of those, are grouped with them: ``beta = K x`` and ``Y x = Y[:, independent] beta``.
Which columns come first decides how well these are conditioned: on the WAM masses first gives a
condition number two hundred times that of the order of S (`conditioning_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError, NameNotFound
from inertial_estimation.model.combinations import parse_combination, written_term
from inertial_estimation.model.independent_columns import (
    EXCITED,
    checked_order,
    last_independent_rows,
    unexcited_directions,
)
from inertial_estimation.table import Table

Array = NDArray[np.float64]

SHOWN = 1e-9
"""Smaller factors are round-off and not printed."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Which columns are kept and how the others are grouped with them."""

    independent: NDArray[np.intp]
    """Columns that are kept, shape (n_base,), in the order in which they were taken."""
    grouping: Array
    """K, shape (n_base, n); the identity in the columns that are kept [S 39]."""

    @classmethod
    def of_null_space(
        cls, null_space: Array, order: Sequence[int] | NDArray[np.intp] | None = None
    ) -> BaseParameters:
        """
        Group columns whose combinations are known to vanish.

        Parameters
        ----------
        null_space : ndarray, shape (n, k)
            Independent directions that the regressor maps to zero, as from `identifiable`.
        order : sequence of int, shape (n,), optional
            Columns, those to keep first. Default: as if all were of links, `conditioning_order`.

        Returns
        -------
        BaseParameters

        Raises
        ------
        ShapeError
            If the order is none of the columns.
        InertialEstimationError
            If the directions are not independent.

        """
        chosen = checked_order(order, len(null_space))
        n_directions = null_space.shape[1]
        if n_directions and np.linalg.matrix_rank(null_space) < n_directions:
            raise InertialEstimationError(f'the {n_directions} directions are not independent')
        directions = np.linalg.qr(null_space)[0]
        dependent = last_independent_rows(directions, chosen)
        dropped = set(dependent)
        kept = np.array([k for k in chosen if k not in dropped], dtype=np.intp)
        grouping = np.zeros((len(kept), len(null_space)))
        grouping[np.arange(len(kept)), kept] = 1.0
        if dependent:
            # Y_b N_b + Y_d N_d = 0, so that Y_d = Y_b K_d.
            grouping[:, dependent] = -np.linalg.solve(
                directions[dependent].T, directions[kept].T
            ).T
        return cls(kept, grouping)

    @classmethod
    def of_regressor(
        cls,
        Y: Array,
        order: Sequence[int] | NDArray[np.intp] | None = None,
        tolerance: float = EXCITED,
    ) -> BaseParameters:
        """
        Group the columns of a measured regressor: what was not excited is not kept.

        Parameters
        ----------
        Y : ndarray, shape (m, n)
            Rows, or the triangle of their `Information`.
        order : sequence of int, shape (n,), optional
            As in `of_null_space`.
        tolerance : float
            Singular values of Y, its columns scaled to length one, below this share of the
            largest count as zero.

        Returns
        -------
        BaseParameters

        """
        return cls.of_null_space(unexcited_directions(Y, tolerance), order)

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    def of(self, x: Array) -> Array:
        """
        Return the base parameters of all unknowns [S 38].

        Parameters
        ----------
        x : ndarray, shape (..., n)
            Unknowns, as standard parameters.

        Returns
        -------
        ndarray, shape (..., n_base)

        """
        return np.asarray(x @ self.grouping.T)

    def standard(self, base: Array, prior: Array) -> Array:
        """
        Return the unknowns nearest to a prior that have given base parameters [A after 32].

        Parameters
        ----------
        base : ndarray, shape (n_base,)
            Base parameters.
        prior : ndarray, shape (n,)
            Where the rows say nothing it stays.

        Returns
        -------
        ndarray, shape (n,)

        """
        lacking = base - self.of(prior)
        gram = self.grouping @ self.grouping.T
        return np.asarray(prior + self.grouping.T @ np.linalg.solve(gram, lacking))

    def basis(self) -> Array:
        """Return orthonormal columns of the identifiable subspace, shape (n, n_base) [T 7.9]."""
        return np.asarray(np.linalg.qr(self.grouping.T)[0])

    def combinations(self, names: Sequence[str]) -> list[str]:
        """
        Return what each base parameter is a combination of.

        Parameters
        ----------
        names : sequence of str, shape (n,)
            Names of the columns.

        Returns
        -------
        list of str
            As ``upper.Ixx - 0.25 lower.m``, the column that is kept first.

        """
        return [
            ' '.join([names[kept], *(written_term(*term) for term in terms)])
            for kept, terms in zip(self.independent.tolist(), self.terms(names), strict=True)
        ]

    def terms(self, names: Sequence[str]) -> list[list[tuple[float, str]]]:
        """
        Return what is grouped with each column that is kept.

        Parameters
        ----------
        names : sequence of str, shape (n,)
            Names of the columns.

        Returns
        -------
        list of list of (float, str)
            For each base parameter the factors and names of the other columns.

        """
        return [
            [
                (float(row[k]), names[k])
                for k in np.flatnonzero(np.abs(row) > SHOWN).tolist()
                if k != kept
            ]
            for kept, row in zip(self.independent.tolist(), self.grouping, strict=True)
        ]

    def records(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """
        Return the groupings for a machine.

        Parameters
        ----------
        names : sequence of str, shape (n,)
            Names of the columns.

        Returns
        -------
        list of dict
            For each base parameter ``kept``; ``terms``, the factor of each other name; and
            ``combination``, the same as text.

        """
        kept = [names[k] for k in self.independent.tolist()]
        parts = zip(kept, self.terms(names), self.combinations(names), strict=True)
        return [
            {'kept': name, 'terms': {other: by for by, other in terms}, 'combination': text}
            for name, terms, text in parts
        ]

    def within(self, other: BaseParameters) -> BaseParameters:
        """
        Return base parameters of base parameters as those of the unknowns.

        Parameters
        ----------
        other : BaseParameters
            Whose base parameters are the columns that are grouped here.

        Returns
        -------
        BaseParameters

        """
        return BaseParameters(other.independent[self.independent], self.grouping @ other.grouping)

    def untold(self) -> NDArray[np.intp]:
        """Return the columns that are in no base parameter, shape (k,)."""
        return np.flatnonzero(np.abs(self.grouping).max(axis=0, initial=0.0) <= SHOWN)

    def table(self, names: Sequence[str], values: Array | None = None) -> Table:
        """
        Return the groupings as a table.

        Parameters
        ----------
        names : sequence of str, shape (n,)
            Names of the columns.
        values : ndarray, shape (n_base,), optional
            Base parameters to show beside.

        Returns
        -------
        Table

        """
        texts = self.combinations(names)
        rows = [(str(k + 1), text) for k, text in enumerate(texts)]
        columns: tuple[str, ...] = ('', 'combination')
        if values is not None:
            columns = (*columns, 'value')
            rows = [(*row, f'{v:.6g}') for row, v in zip(rows, values, strict=True)]  # type: ignore[misc]
        return Table(f'{self.rank} base parameters of {len(names)}', columns, tuple(rows))

    @classmethod
    def parse(cls, combinations: Sequence[str], names: Sequence[str]) -> BaseParameters:
        """
        Read combinations as `combinations` writes them; parentheses may share a factor.

        Parameters
        ----------
        combinations : sequence of str
            As ``upper.Ixx - 0.25 (lower.m + hand.m)``; the first name of each is kept.
        names : sequence of str, shape (n,)
            Names of the columns.

        Returns
        -------
        BaseParameters

        Raises
        ------
        NameNotFound
            If a combination holds another name.
        InertialEstimationError
            If it cannot be read.

        """
        index = {name: k for k, name in enumerate(names)}
        grouping = np.zeros((len(combinations), len(index)))
        independent = []
        for row, text in zip(grouping, combinations, strict=True):
            factors = parse_combination(text)
            for name, factor in factors.items():
                if name not in index:
                    raise NameNotFound('unknown', name, names, where=f"'{text}' needs it")
                row[index[name]] += factor
            independent.append(index[next(iter(factors))])
        return cls(np.array(independent, dtype=np.intp), grouping)
