# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bodies and bounds as blocks of a conic program [S 25-28; W], and which of them contradict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.cones import Consistency, matrix, vector
from inertial_estimation.identification.solvers.conic import Block, ConicSolution, Kind, minimise
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.unknowns import Unknowns

if TYPE_CHECKING:
    from scipy.sparse import sparray

Array = NDArray[np.float64]

ROUND_OFF = 1e-13
"""Smaller factors of whitened bodies are none."""
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
    """
    Return the matrix inequalities of all links.

    prior (n_links, 10); maps (n_links, 10, 10).
    """
    # About one where a body is its prior, whatever its size and place.
    whiten = np.linalg.inv(np.linalg.cholesky(consistency.matrix(prior)))
    dense = consistency.rows(whiten) @ maps
    largest = np.abs(dense).max(axis=(1, 2), keepdims=True)
    dense[np.abs(dense) < ROUND_OFF * largest] = 0.0
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
    """
    Return whether variables are strictly inside the cones of a block.

    x (n,).
    """
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
    """
    Return which bounds are not kept.

    x (n,).
    """
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
