# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quadratic programs over cones, solved by Clarabel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.problem import Grade

if TYPE_CHECKING:
    from scipy.sparse import sparray

TOLERANCE = 1e-8
"""Of gaps and residuals, relative to the numbers of the program."""
REGULARIZATION = 1e-9
"""Of linear equations where the objective has curvature: fewer refinements than by default."""
REFINED = 1e-9
"""Residual of linear equations after refinement, relative to their right-hand sides."""
INFEASIBLE = 1e-10
"""Of multipliers that prove that there is no solution: looser, they end programs too soon."""
MAX_ITERATIONS = 200
HUGE = 1e6
"""Variables are smaller than this; those of all programs are about one."""


def vector(matrices: Array) -> Array:
    """Return symmetric matrices, (..., k, k), as vectors of the same inner product."""
    rows, columns, factors = _triangle(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns] * factors)


def matrix(vectors: Array) -> Array:
    """Return the symmetric matrices, (..., k, k), of vectors, (..., k (k + 1) / 2)."""
    size = int(np.sqrt(2 * vectors.shape[-1]))
    rows, columns, factors = _triangle(size)
    full = np.zeros((*vectors.shape[:-1], size, size))
    full[..., rows, columns] = full[..., columns, rows] = vectors / factors
    return full


@cache
def _triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return rows, columns and factors of the upper triangle, column by column."""
    columns, rows = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


class Kind(Enum):
    """Cones of rows, by the name of Clarabel's class."""

    ZERO = 'ZeroConeT'
    NONNEGATIVE = 'NonnegativeConeT'
    SECOND_ORDER = 'SecondOrderConeT'
    """The first row is at least as long as the others together."""
    SEMIDEFINITE = 'PSDTriangleConeT'
    """A matrix for each label, all of one size, as from `vector`."""


class Block(NamedTuple):
    """Rows ``G x + h`` that belong to one cone."""

    labels: tuple[str, ...]
    """Name of each row, or of all; of each matrix."""
    kind: Kind
    G: sparray
    """Shape (m, n)."""
    h: Array
    """Shape (m,)."""


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """Solution of ``minimise 1/2 x' P x + q' x``, all blocks in their cones."""

    x: Array
    slacks: tuple[Array, ...]
    """Rows of each block, strictly inside its cone."""
    multipliers: tuple[Array, ...]
    """Of each block, in its dual cone; proof of the contradiction where infeasible."""
    feasible: bool
    """False if it was proven that the blocks contradict each other."""
    grade: Grade
    iterations: int


def minimise(
    P: sparray,
    q: Array,
    blocks: Sequence[Block],
    *,
    tolerance: float = TOLERANCE,
    refined: float = REFINED,
) -> ConicSolution:
    """Solve a quadratic program over cones; P (n, n); q (n,)."""
    from scipy.sparse import csc_array, vstack

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
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if P.nnz:
        settings.tol_infeas_abs = settings.tol_infeas_rel = INFEASIBLE
        settings.static_regularization_constant = REGULARIZATION
        settings.iterative_refinement_reltol = settings.iterative_refinement_abstol = refined
    # Presolve drops rows, and with them multipliers.
    settings.presolve_enable = settings.chordal_decomposition_enable = False
    cones: list[object] = []
    for block in blocks:
        cone = getattr(clarabel, block.kind.value)
        if block.kind is Kind.SEMIDEFINITE:
            matrices = len(block.labels)
            cones += [cone(int(np.sqrt(2 * len(block.h) // matrices)))] * matrices
        else:
            cones.append(cone(len(block.h)))
    rows = csc_array(vstack([block.G for block in blocks], format='csc'))
    offsets = np.concatenate([block.h for block in blocks])
    found = clarabel.DefaultSolver(csc_array(P), q, -rows, offsets, cones, settings).solve()
    ends = np.cumsum([len(block.h) for block in blocks])[:-1]
    status = str(found.status)
    multipliers = tuple(np.split(np.array(found.z), ends))
    return ConicSolution(
        x=np.array(found.x),
        slacks=tuple(np.split(np.array(found.s), ends)),
        multipliers=multipliers,
        # By its own tolerances what is far away may seem infeasible too.
        feasible='PrimalInfeasible' not in status or not _contradict(blocks, multipliers),
        grade=Grade.OPTIMAL if status == 'Solved' else Grade.INACCURATE,
        iterations=int(found.iterations),
    )


def _contradict(blocks: Sequence[Block], multipliers: Sequence[Array]) -> bool:
    """Return true if multipliers prove that only huge variables are in all cones [Farkas]."""
    pairs = [(block, _dual(block, y)) for block, y in zip(blocks, multipliers, strict=True)]
    most = sum(float(y @ block.h) for block, y in pairs)
    left = np.sum([block.G.T @ y for block, y in pairs], axis=0)
    return most + HUGE * float(np.abs(left).sum()) < 0.0


def _dual(block: Block, y: Array) -> Array:
    """Return multipliers in the dual cone of a block, near the given ones."""
    if block.kind is Kind.NONNEGATIVE:
        return np.maximum(y, 0.0)
    if block.kind is Kind.SECOND_ORDER:
        return np.append(max(y[0], float(np.linalg.norm(y[1:]))), y[1:])
    if block.kind is Kind.SEMIDEFINITE:
        values, axes = np.linalg.eigh(matrix(y.reshape(len(block.labels), -1)))
        kept = axes * np.maximum(values, 0.0)[:, None] @ np.swapaxes(axes, -1, -2)
        return vector(kept).reshape(-1)
    return y
