# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bounds of a problem as rows: ``low <= rows @ x <= high``; all of `Bounds` are linear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.problem import Problem
from inertial_estimation.model.inertia import pseudo_inertia

Array = NDArray[np.float64]

_Row = tuple[Array, float, float, str]


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """Rows, infinite on the side where nothing is known."""

    rows: Array
    """Shape (k, n)."""
    low: Array
    """Shape (k,)."""
    high: Array
    """Shape (k,)."""
    names: tuple[str, ...]
    """What each row bounds, for messages."""

    @classmethod
    def of(cls, problem: Problem) -> LinearBounds:
        """
        Return the bounds of a problem; without consistency, which is not linear.

        Parameters
        ----------
        problem : Problem
            With or without bounds.

        Returns
        -------
        LinearBounds

        """
        found = [
            row
            for row in (*_of_links(problem), *_of_totals(problem), *_of_extras(problem))
            if np.isfinite(row[1:3]).any()
        ]
        rows = np.array([row for row, _, _, _ in found]).reshape(-1, len(problem.unknowns))
        low, high = (np.array([row[k] for row in found], dtype=np.float64) for k in (1, 2))
        return cls(rows, low, high, tuple(name for *_, name in found))


def _unit(problem: Problem, column: int) -> Array:
    """Return a row that picks one unknown."""
    row = np.zeros(len(problem.unknowns))
    row[column] = 1.0
    return row


def _of_links(problem: Problem) -> Iterator[_Row]:
    """Return bounds of mass, centre of mass and second moments of each link."""
    bounds = problem.bounds
    moments = pseudo_inertia(np.eye(10))
    for k, link in enumerate(problem.unknowns.links):
        mass = _unit(problem, 10 * k)
        if bounds.mass is not None:
            low, high = bounds.mass[k]
            yield mass, low, high, f'mass of {link}'
        if bounds.center_of_mass is not None:
            for axis, name in enumerate('xyz'):
                low, high = bounds.center_of_mass[k, :, axis]
                first = _unit(problem, 10 * k + 1 + axis)
                said = f'centre of mass of {link} in {name}'
                if np.isfinite(low):
                    yield first - low * mass, 0.0, np.inf, said
                if np.isfinite(high):
                    yield first - high * mass, -np.inf, 0.0, said
        if bounds.ellipsoids is not None and np.isfinite(bounds.ellipsoids[k]).all():
            row = np.zeros(len(problem.unknowns))
            row[10 * k : 10 * k + 10] = np.einsum('ij,kji->k', bounds.ellipsoids[k], moments)
            yield row, 0.0, np.inf, f'ellipsoid of {link}'


def _of_totals(problem: Problem) -> Iterator[_Row]:
    """Return the bounds of the total mass."""
    if problem.bounds.total_mass is not None:
        low, high = problem.bounds.total_mass
        row = np.zeros(len(problem.unknowns))
        row[: problem.unknowns.n_inertial : 10] = 1.0
        yield row, low, high, 'total mass'


def _of_extras(problem: Problem) -> Iterator[_Row]:
    """Return the bounds of the other unknowns."""
    if problem.bounds.extras is not None:
        for k, extra in enumerate(problem.unknowns.extras):
            low, high = problem.bounds.extras[k]
            yield _unit(problem, problem.unknowns.n_inertial + k), low, high, str(extra)
