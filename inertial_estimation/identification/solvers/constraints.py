# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Named linear bounds, and links and bounds as blocks of a conic program [S 25-28; W]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.conic import (
    Block,
    ConicSolution,
    Consistency,
    Kind,
    matrix,
    minimise,
    vector,
)
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia

if TYPE_CHECKING:
    from scipy.sparse import sparray

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
        """Return how far unknowns are inside each bound; x (n,); returns (k,)."""
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


ZERO_ENTRY = 1e-13
"""Smaller entries of whitened matrices, over the largest, are round-off."""
MISSED = 1e-7
"""Bounds that are missed by a smaller share of the largest variable or of one are kept."""
TAKES_PART = 1e-4
"""Bounds whose multiplier is a smaller share of the largest are left out of a contradiction."""


def body_block(
    unknowns: Unknowns,
    prior: Array,
    maps: Array,
    n: int,
    consistency: Consistency,
    margin: float,
) -> Block:
    """Return the matrix inequalities of all links; prior (n_links, 10); maps (n_links, 10, 10)."""
    # About one where a body is its prior, whatever its size and place.
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(prior)))
    dense = consistency.rows(whiten) @ maps
    largest = np.abs(dense).max(axis=(1, 2), keepdims=True)
    dense[np.abs(dense) < ZERO_ENTRY * largest] = 0.0
    unit = (1.0 - margin) * vector(np.eye(whiten.shape[-1]))
    G = _block_diagonal(dense / largest, n)
    return Block(unknowns.links, Kind.SEMIDEFINITE, G, (unit / largest[:, 0]).reshape(-1))


def _block_diagonal(blocks: Array, n: int) -> sparray:
    """Return blocks, shape (k, rows, columns), as one sparse matrix with n columns."""
    from scipy.sparse import csc_array

    k, rows, columns = blocks.shape
    # By columns, as they are stored.
    link, column, row = np.nonzero(np.swapaxes(blocks, 1, 2))
    counts = np.bincount(columns * link + column, minlength=n)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return csc_array((blocks[link, row, column], rows * link + row, pointers), (k * rows, n))


def bound_blocks(bounds: LinearBounds, origin: Array, to_x: sparray) -> list[Block]:
    """
    Return the rows of bounds, each scaled to factors of at most one.

    origin (n_unknowns,); to_x (n_unknowns, n).
    """
    from scipy.sparse import csc_array

    if not bounds.names:
        return []
    rows = np.asarray(to_x.T @ bounds.rows.T).T
    sizes = np.abs(rows).max(axis=1)
    sizes[sizes == 0.0] = 1.0
    h = bounds.slack(origin) / sizes
    return [Block(bounds.names, Kind.NONNEGATIVE, csc_array(rows / sizes[:, None]), h)]


def inside(block: Block, x: Array) -> bool:
    """Return whether variables are strictly inside the cones of a block; x (n,)."""
    rows = block.G @ x + block.h
    if block.kind is Kind.SEMIDEFINITE:
        rows = np.linalg.eigvalsh(matrix(rows.reshape(len(block.labels), -1)))
    return bool((rows > 0.0).all())


def drawn_inside(bodies: Block, x: Array) -> Array:
    """
    Return variables whose bodies are in their cones, by moving those that are not to the prior.

    x (n,); returns (n,).
    """
    n_links = len(bodies.labels)
    changes = matrix((bodies.G @ x).reshape(n_links, -1))
    least = np.linalg.eigvalsh(changes)[:, 0]
    room = matrix(bodies.h.reshape(n_links, -1))[:, 0, 0]
    shares = np.where(least < -room, room / np.maximum(-least, room), 1.0)
    drawn = x.copy()
    drawn[: 10 * n_links] *= np.repeat(shares, 10)
    return drawn


def missed(bounds: Block, x: Array, share: float = MISSED) -> list[str]:
    """Return which bounds are not kept; x (n,)."""
    slack = bounds.G @ x + bounds.h
    least = -share * float(np.abs(x).max(initial=1.0))
    return [name for name, one in zip(bounds.labels, slack, strict=True) if one < least]


def contradiction(bodies: Sequence[Block], bounds: Block, solution: ConicSolution) -> list[str]:
    """Return bounds that contradict each other, of which none can be left out."""
    shares = solution.multipliers[-1]
    order = np.argsort(shares)
    some = [int(k) for k in order if shares[k] > TAKES_PART * shares.max()]
    for kept in (some, [int(k) for k in order]):
        if _contradict(bodies, bounds, kept):
            break
    else:
        return []
    for k in list(kept):
        fewer = [other for other in kept if other != k]
        if _contradict(bodies, bounds, fewer):
            kept = fewer
    return [bounds.labels[k] for k in sorted(kept)]


def _contradict(bodies: Sequence[Block], bounds: Block, chosen: list[int]) -> bool:
    """Return whether some of the bounds are infeasible together."""
    from scipy.sparse import csc_array, identity

    n = bounds.G.shape[1]
    some = bounds._replace(G=csc_array(bounds.G)[chosen], h=bounds.h[chosen])
    # With nothing to minimise, variables may run away long before anything is proven.
    near = csc_array(identity(n))
    return not minimise(near, np.zeros(n), [*bodies, some]).feasible
