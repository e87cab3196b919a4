# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters: the smallest set that determines all equations of the unknowns [S 29-39].

Of the columns of a regressor Y the first independent ones are kept, and the others, which are
combinations of those, are grouped with them: ``beta = K x`` and ``Y x = Y[:, independent] beta``.
Which columns come first decides how well these are conditioned: on the WAM masses first gives a
condition number two hundred times that of the order of S (`conditioning_order`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import InertialEstimationError, NameNotFound

SHOWN = 1e-9
"""Smaller factors are round-off and not printed; factors this near to one are one."""
INDEPENDENT = 1e-8
"""A column that takes part in vanishing combinations by less than this is independent of them."""
BARELY = 1e-4
"""
Columns that take part by less than this come after all others, whatever their order: to solve for
one of them amplifies round-off, as where a URDF has angles of 1e-6 rad in place of zero.
"""
EXCITED = 1e-8
"""Singular values of measured equations below this share of the largest count as zero."""
_INERTIA_THEN_MOMENT_THEN_MASS = (4, 5, 7, 6, 8, 9, 1, 2, 3, 0)
NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Columns that are kept, and how the others are grouped with them."""

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

        null_space (n, k): independent directions that the regressor maps to zero; order (n,):
        columns, those to keep first, by default `conditioning_order`.
        """
        n = len(null_space)
        chosen = conditioning_order(n // 10, n % 10) if order is None else np.array(order, np.intp)
        directions = np.linalg.qr(null_space)[0]
        dependent = _last_independent(directions, chosen)
        dropped = set(dependent)
        kept = np.array([k for k in chosen if k not in dropped], dtype=np.intp)
        grouping = np.zeros((len(kept), n))
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
        Group the columns of a measured regressor: those that were not excited are not kept.

        Y (m, n): equations, or the triangle of their `Information`; order as in `of_null_space`;
        singular values of Y, its columns scaled to length one, below the share `tolerance` of the
        largest count as zero.
        """
        return cls.of_null_space(unexcited_directions(Y, tolerance), order)

    @classmethod
    def parse(cls, combinations: Sequence[str], names: Sequence[str]) -> BaseParameters:
        """
        Read combinations as `combinations` writes them; parentheses may share a factor.

        combinations: as ``upper.Ixx - 0.25 (lower.m + hand.m)``, the first name of each is kept;
        names (n,): of the columns.
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

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    def of(self, x: Array) -> Array:
        """Return the base parameters, (..., n_base), of unknowns x, (..., n) [S 38]."""
        return np.asarray(x @ self.grouping.T)

    def standard(self, base: Array, prior: Array) -> Array:
        """Return the unknowns nearest to a prior that have given base parameters [A after 32]."""
        lacking = base - self.of(prior)
        gram = self.grouping @ self.grouping.T
        return np.asarray(prior + self.grouping.T @ np.linalg.solve(gram, lacking))

    def basis(self) -> Array:
        """Return orthonormal columns of the identifiable subspace, (n, n_base) [T 7.9]."""
        return np.asarray(np.linalg.qr(self.grouping.T)[0])

    def within(self, other: BaseParameters) -> BaseParameters:
        """Return base parameters of the base parameters of another as those of its unknowns."""
        return BaseParameters(other.independent[self.independent], self.grouping @ other.grouping)

    def undetermined(self) -> NDArray[np.intp]:
        """Return the columns that are in no base parameter, (k,)."""
        return np.flatnonzero(np.abs(self.grouping).max(axis=0, initial=0.0) <= SHOWN)

    def combinations(self, names: Sequence[str]) -> list[str]:
        """Return each base parameter as ``upper.Ixx - 0.25 lower.m``, the kept column first."""
        return [record['combination'] for record in self.records(names)]

    def records(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return for each base parameter ``kept``, ``terms`` and ``combination`` (as text)."""
        found = []
        for k, row in zip(self.independent.tolist(), self.grouping.tolist(), strict=True):
            terms = {
                name: factor
                for j, (name, factor) in enumerate(zip(names, row, strict=True))
                if abs(factor) > SHOWN and j != k
            }
            text = names[k]
            for name, factor in terms.items():
                size = f'{abs(factor):.9g} ' if abs(abs(factor) - 1.0) > SHOWN else ''
                text += f' {"-" if factor < 0 else "+"} {size}{name}'
            found.append({'kept': names[k], 'terms': terms, 'combination': text})
        return found


def parse_combination(text: str) -> dict[str, float]:
    """Return the factor of each name of a linear combination."""
    found: dict[str, float] = {}
    outer, sign, factor = 1.0, 1.0, 1.0
    wants_name = True
    for token in text.replace('(', ' ( ').replace(')', ' ) ').split():
        if token in '+-':
            sign, factor, wants_name = (1.0 if token == '+' else -1.0), 1.0, True
        elif token == '(':
            outer, sign, factor = sign * factor, 1.0, 1.0
        elif token == ')':
            outer = 1.0
        elif NUMBER.fullmatch(token):
            factor = float(token)
        elif not wants_name:
            raise InertialEstimationError(f"'{text}' lacks a sign before '{token}'")
        else:
            found[token] = found.get(token, 0.0) + outer * sign * factor
            sign, factor, wants_name = 1.0, 1.0, False
    if not found or wants_name:
        raise InertialEstimationError(f"'{text}' is no combination such as 'a - 1.1 (b + c)'")
    return found


def conditioning_order(n_links: int, n_extras: int = 0) -> NDArray[np.intp]:
    """Return the order of columns that conditions well, (10 n_links + n_extras,) [S 13]."""
    of_one = np.array(_INERTIA_THEN_MOMENT_THEN_MASS)
    links = (10 * np.arange(n_links)[:, None] + of_one).reshape(-1)
    return np.concatenate([links, 10 * n_links + np.arange(n_extras)]).astype(np.intp)


def unexcited_directions(Y: Array, tolerance: float = EXCITED) -> Array:
    """Return orthonormal directions (n, n - rank) that equations Y (m, n) do not determine."""
    scales = np.linalg.norm(Y, axis=0)
    largest = scales.max(initial=0.0) or 1.0
    scales[scales < np.finfo(float).eps * largest] = largest
    triangle = np.linalg.qr(Y / scales, mode='r')
    _, values, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int(np.sum(values > tolerance * values.max(initial=0.0)))
    return np.asarray(np.linalg.qr(right[rank:].T / scales[:, None])[0])


def _last_independent(directions: Array, order: NDArray[np.intp]) -> list[int]:
    """Return the columns that vanishing combinations, (n, k), are solved for; the last first."""
    found: list[int] = []
    taken = np.zeros((0, directions.shape[1]))
    for least in (BARELY, INDEPENDENT):
        for k in order[::-1]:
            if len(found) == directions.shape[1] or k in found:
                continue
            rest = directions[k]
            # Twice is enough: what is left of the first pass is orthogonal only to round-off.
            for _ in range(2):
                rest = rest - (taken @ rest) @ taken
            length = float(np.linalg.norm(rest))
            if length > least:
                found.append(int(k))
                taken = np.vstack([taken, rest / length])
    return found
