# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear programs over cones, solved by Clarabel."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.problem import Grade

TOLERANCE = 1e-8
"""Of gaps and residuals, relative to the numbers of the program."""
MAX_ITERATIONS = 200


class Kind(Enum):
    """Cones of rows, by the name of Clarabel's class."""

    ZERO = 'ZeroConeT'
    NONNEGATIVE = 'NonnegativeConeT'
    SECOND_ORDER = 'SecondOrderConeT'
    """The first row is at least as long as the others together."""
    SEMIDEFINITE = 'PSDTriangleConeT'
    """Matrices of one size, as `components` backwards."""


class Block(NamedTuple):
    """Rows ``G x + h`` that belong to one cone, or to equal ones."""

    kind: Kind
    G: Array
    """Shape (m, n)."""
    h: Array
    """Shape (m,)."""
    matrices: int = 1
    """Their number."""


class ConicSolution(NamedTuple):
    """Solution of ``minimise q' x``, all blocks in their cones."""

    x: Array
    multipliers: tuple[Array, ...]
    """Of each block, in its dual cone; proof of the contradiction where infeasible."""
    feasible: bool
    """False if it was proven that the blocks contradict each other."""
    grade: Grade


def minimise(q: Array, blocks: Sequence[Block]) -> ConicSolution:
    """Solve a linear program over cones; q (n,)."""
    from scipy.sparse import csc_array

    try:
        import clarabel
    except ImportError as error:
        raise InertialEstimationError(
            f"matrix inequalities need the package 'clarabel' ({error}): pip install clarabel"
        ) from error
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = MAX_ITERATIONS
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    # Presolve drops rows, and with them multipliers.
    settings.presolve_enable = settings.chordal_decomposition_enable = False
    cones: list[object] = []
    for block in blocks:
        size = len(block.h) // block.matrices
        size = int(np.sqrt(2 * size)) if block.kind is Kind.SEMIDEFINITE else size
        cones += [getattr(clarabel, block.kind.value)(size)] * block.matrices
    rows = csc_array(np.vstack([-block.G for block in blocks]))
    offsets = np.concatenate([block.h for block in blocks])
    none = csc_array((len(q), len(q)))
    found = clarabel.DefaultSolver(none, q, rows, offsets, cones, settings).solve()
    ends, status = np.cumsum([len(block.h) for block in blocks])[:-1], str(found.status)
    return ConicSolution(
        np.array(found.x),
        tuple(np.split(np.array(found.z), ends)),
        'PrimalInfeasible' not in status,
        Grade.OPTIMAL if status == 'Solved' else Grade.INACCURATE,
    )
