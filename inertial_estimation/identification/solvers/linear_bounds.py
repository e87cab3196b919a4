# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on parameters as linear inequalities, each with a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Problem
from inertial_estimation.model.inertia import pseudo_inertia

Array = NDArray[np.float64]

SIDES = ((1.0, 'least'), (-1.0, 'greatest'))
"""A lower bound is ``x >= l``, an upper one ``-x >= -u``."""


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """Inequalities ``rows @ x >= limits`` on all unknowns."""

    rows: Array
    """Shape (k, n)."""
    limits: Array
    """Shape (k,)."""
    names: tuple[str, ...]
    """What each is about."""

    @classmethod
    def of(cls, problem: Problem) -> LinearBounds:
        """Return the bounds of a problem that are finite."""
        require_order(problem)
        _require_total(problem)
        found = [*_masses(problem), *_centers(problem), *_ellipsoids(problem)]
        found += [*_total(problem), *_extras(problem)]
        n = len(problem.unknowns)
        rows = np.array([row for row, _, _ in found]).reshape(-1, n)
        limits = np.array([limit for _, limit, _ in found])
        return cls(rows, limits, tuple(name for _, _, name in found))

    def slack(self, x: Array) -> Array:
        """
        Return how far unknowns are inside each bound.

        x (n,); returns (k,).
        """
        return np.asarray(self.rows @ x - self.limits)


Row = tuple[Array, float, str]

ROUND_OFF = 1e-12
"""Share of a total by which a sum of masses may be off."""


def _pairs(bounds: Array) -> Iterator[tuple[int, float, float, str]]:
    """Return index, sign, limit and side of each finite bound of pairs, shape (k, 2)."""
    for k, pair in enumerate(bounds):
        for value, (sign, side) in zip(pair, SIDES, strict=True):
            if np.isfinite(value):
                yield k, sign, sign * float(value), side


def _row(problem: Problem, columns: slice | int, values: Array | float) -> Array:
    """Return a row that is zero elsewhere."""
    row = np.zeros(len(problem.unknowns))
    row[columns] = values
    return row


def _masses(problem: Problem) -> Iterator[Row]:
    """Return bounds on masses."""
    if problem.bounds.mass is None:
        return
    for k, sign, limit, side in _pairs(problem.bounds.mass):
        yield _row(problem, 10 * k, sign), limit, f'{side} mass of {problem.unknowns.links[k]}'


def _centers(problem: Problem) -> Iterator[Row]:
    """Return bounds on centres of mass."""
    if problem.bounds.center_of_mass is None:
        return
    for k, box in enumerate(problem.bounds.center_of_mass):
        for axis, sign, limit, side in _pairs(box.T):
            row = _row(problem, 10 * k + 1 + axis, sign)
            row[10 * k] = -limit
            name = f'{side} {"xyz"[axis]} of the centre of mass of {problem.unknowns.links[k]}'
            yield row, 0.0, name


def _ellipsoids(problem: Problem) -> Iterator[Row]:
    """Return bounds of ellipsoids that hold all mass."""
    if problem.bounds.ellipsoids is None:
        return
    unit = pseudo_inertia(np.eye(10))
    for k, Q in enumerate(problem.bounds.ellipsoids):
        if np.isfinite(Q).all():
            values = np.einsum('ij,pij->p', Q, unit)
            columns = slice(10 * k, 10 * k + 10)
            yield _row(problem, columns, values), 0.0, f'ellipsoid of {problem.unknowns.links[k]}'


def _total(problem: Problem) -> Iterator[Row]:
    """Return bounds on the sum of all masses."""
    if problem.bounds.total_mass is None:
        return
    for _, sign, limit, side in _pairs(problem.bounds.total_mass[None]):
        masses = slice(0, problem.unknowns.n_inertial, 10)
        yield _row(problem, masses, sign), limit, f'{side} total mass'


def _extras(problem: Problem) -> Iterator[Row]:
    """Return bounds on the other unknowns."""
    if problem.bounds.extras is None:
        return
    first = problem.unknowns.n_inertial
    for k, sign, limit, side in _pairs(problem.bounds.extras):
        yield _row(problem, first + k, sign), limit, f'{side} {problem.unknowns.extras[k]}'


def require_order(problem: Problem) -> None:
    """Raise if a least value is above the greatest."""
    bounds, links = problem.bounds, problem.unknowns.links
    pairs: list[tuple[str, float, float]] = []
    if bounds.mass is not None:
        pairs += [
            (f'mass of {link}', *pair) for link, pair in zip(links, bounds.mass, strict=True)
        ]
    if bounds.center_of_mass is not None:
        pairs += [
            (f'{axis} of the centre of mass of {link}', *pair)
            for link, box in zip(links, bounds.center_of_mass, strict=True)
            for axis, pair in zip('xyz', box.T, strict=True)
        ]
    if bounds.total_mass is not None:
        pairs.append(('total mass', *bounds.total_mass))
    if bounds.extras is not None:
        extras = problem.unknowns.extras
        pairs += [(str(e), *pair) for e, pair in zip(extras, bounds.extras, strict=True)]
    bad = [f'{name} ({low:g} to {high:g})' for name, low, high in pairs if low > high]
    if bad:
        raise ModelError(f'the least value is above the greatest: {", ".join(bad)}')


def _require_total(problem: Problem) -> None:
    """Raise if masses cannot have their total: of numbers so far apart solvers prove nothing."""
    masses, total = problem.bounds.mass, problem.bounds.total_mass
    if masses is None or total is None:
        return
    links = problem.unknowns.links
    least, greatest = np.maximum(masses[:, 0], 0.0), masses[:, 1]
    heaviest = np.argsort(-least)
    sums = np.cumsum(least[heaviest])
    bad: list[str] = []
    if sums[-1] > (1.0 + ROUND_OFF) * total[1]:
        # Those without which the others would have room.
        needed = heaviest[: int(np.argmax(sums > (1.0 + ROUND_OFF) * total[1])) + 1]
        bad = [*(f'least mass of {links[k]}' for k in sorted(needed)), 'greatest total mass']
    elif greatest.sum() < (1.0 - ROUND_OFF) * total[0]:
        bad = [*(f'greatest mass of {link}' for link in links), 'least total mass']
    if bad:
        raise ModelError(
            f'no bodies keep all bounds; these are against each other: {", ".join(bad)}; '
            'widen them'
        )
