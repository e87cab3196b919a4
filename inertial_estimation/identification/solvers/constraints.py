# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bodies and bounds as blocks of a conic program [S 25-28; W], and which of them contradict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.cones import Consistency, vector
from inertial_estimation.identification.solvers.conic import Block, ConicSolution, Kind, minimise
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.unknowns import Unknowns

if TYPE_CHECKING:
    from scipy.sparse import sparray

Array = NDArray[np.float64]

ROUND_OFF = 1e-13
"""Smaller factors of whitened bodies are none."""
TAKES_PART = 1e-4
"""Bounds whose multiplier is a smaller share of the largest are left out of a contradiction."""


def body_blocks(
    unknowns: Unknowns,
    prior: Array,
    maps: Array,
    n: int,
    consistency: Consistency,
    margin: float,
) -> list[Block]:
    """
    Return the matrix inequality of each link.

    Parameters
    ----------
    unknowns : Unknowns
        With the names of links.
    prior : ndarray, shape (n_links, 10)
        Strictly consistent bodies.
    maps : ndarray, shape (n_links, 10, 10)
        A link's parameters are its prior plus its map of ten variables, which come in the order
        of the links.
    n : int
        Number of all variables.
    consistency : Consistency
        Which cone.
    margin : float
        The matrix is to exceed this share of that of the prior.

    Returns
    -------
    list of Block

    """
    from scipy.sparse import csc_array

    matrices = consistency.matrix(prior)
    blocks = []
    for k, link in enumerate(unknowns.links):
        # About one where the body is its prior, whatever its size and place.
        whiten = np.linalg.inv(np.linalg.cholesky(matrices[k]))
        dense = consistency.rows(whiten) @ maps[k]
        largest = float(np.abs(dense).max())
        dense[np.abs(dense) < ROUND_OFF * largest] = 0.0
        local = csc_array(dense / largest)
        pointers = np.full(n + 1, local.nnz)
        pointers[: 10 * k] = 0
        pointers[10 * k : 10 * k + 11] = local.indptr
        G = csc_array((local.data, local.indices, pointers), (len(dense), n))
        h = (1.0 - margin) / largest * vector(np.eye(len(whiten)))
        blocks.append(Block((link,), Kind.SEMIDEFINITE, G, h))
    return blocks


def bound_blocks(bounds: LinearBounds, origin: Array, to_x: sparray) -> list[Block]:
    """
    Return the rows of bounds, each scaled to factors of at most one.

    Parameters
    ----------
    bounds : LinearBounds
        On the unknowns.
    origin : ndarray, shape (n_unknowns,)
        Unknowns where all variables are zero.
    to_x : sparse array, shape (n_unknowns, n)
        Change of the unknowns with the variables.

    Returns
    -------
    list of Block
        None if there are no bounds.

    """
    from scipy.sparse import csc_array

    if not bounds.names:
        return []
    rows = np.asarray(to_x.T @ bounds.rows.T).T
    sizes = np.abs(rows).max(axis=1)
    sizes[sizes == 0.0] = 1.0
    h = bounds.slack(origin) / sizes
    return [Block(bounds.names, Kind.NONNEGATIVE, csc_array(rows / sizes[:, None]), h)]


def contradiction(bodies: Sequence[Block], bounds: Block, solution: ConicSolution) -> list[str]:
    """
    Return bounds that contradict each other, of which none can be left out.

    Parameters
    ----------
    bodies : sequence of Block
        What holds anyway.
    bounds : Block
        Linear bounds, each with a label.
    solution : ConicSolution
        Of a program of the bodies and, last, the bounds; it says that they are infeasible.

    Returns
    -------
    list of str
        Labels.

    """
    shares = solution.multipliers[-1]
    order = np.argsort(shares)
    kept = [int(k) for k in order if shares[k] > TAKES_PART * shares.max()]
    if not _contradict(bodies, bounds, kept):
        kept = [int(k) for k in order]
    for k in list(kept):
        fewer = [other for other in kept if other != k]
        if _contradict(bodies, bounds, fewer):
            kept = fewer
    return [bounds.labels[k] for k in sorted(kept)]


def _contradict(bodies: Sequence[Block], bounds: Block, chosen: list[int]) -> bool:
    """Return whether some of the bounds are infeasible together."""
    from scipy.sparse import csc_array

    n = bounds.G.shape[1]
    some = bounds._replace(G=csc_array(bounds.G)[chosen], h=bounds.h[chosen])
    return not minimise(csc_array((n, n)), np.zeros(n), [*bodies, some]).feasible
