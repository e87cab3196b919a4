# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Conic programs with Clarabel, and links as matrices that must be positive semidefinite [S 16-28].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.result import Grade
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.spatial import hat

if TYPE_CHECKING:
    from scipy.sparse import sparray

Array = NDArray[np.float64]


class Consistency(str, Enum):
    """What is asked of the parameters of a link."""

    PHYSICAL = 'physical'
    """Positive mass and positive inertia about the centre of mass: the 6x6 cone [S 17]."""
    FULL = 'full'
    """The triangle inequality as well: the 4x4 cone [W; T Definition 6.2]."""

    def matrix(self, parameters: Array) -> Array:
        """
        Return the matrix that has to be positive semidefinite.

        parameters (..., 10); returns (..., 4, 4).
        """
        return pseudo_inertia(parameters) if self is Consistency.FULL else spatial(parameters)

    def margins(self, parameters: Array) -> Array:
        """Return the smallest eigenvalue of that matrix; parameters (..., 10); returns (...)."""
        return np.asarray(np.linalg.eigvalsh(self.matrix(parameters))[..., 0], dtype=np.float64)

    def rows(self, congruence: Array | None = None) -> Array:
        """
        Return the map of the parameters of a link to its matrix as a vector.

        congruence (..., k, k); returns (..., k (k + 1).
        """
        matrices = self.matrix(np.eye(10))
        if congruence is not None:
            C = congruence[..., None, :, :]
            matrices = C @ matrices @ np.swapaxes(C, -1, -2)
        return np.swapaxes(vector(matrices), -1, -2)


def spatial(parameters: Array) -> Array:
    """
    Return the spatial inertia of links, [angular; linear] [S 17].

    parameters (..., 10); returns (..., 6, 6).
    """
    m, _, _, _, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(parameters), -1, 0)
    inertia = np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), (0, 1), (-2, -1))
    moment = hat(np.asarray(parameters)[..., 1:4])
    mass = m[..., None, None] * np.eye(3)
    return np.concatenate(
        [
            np.concatenate([inertia, -moment], axis=-1),
            np.concatenate([moment, mass], axis=-1),
        ],
        axis=-2,
    )


def vector(matrices: Array) -> Array:
    """
    Return symmetric matrices as vectors of the same inner product.

    matrices (..., k, k); returns (..., k (k + 1).
    """
    rows, columns, factors = _triangle(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns] * factors)


def matrix(vectors: Array) -> Array:
    """Undo `vector`; vectors (..., k (k + 1); returns (..., k, k)."""
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


TOLERANCE = 1e-8
"""Of gaps and residuals that count as solved, relative to the numbers of the program."""
REGULARIZATION = 1e-9
"""
Of linear equations where the objective has curvature: a step needs fewer refinements than with
the solver's own, and the last ones are more exact.
"""
REFINED = 1e-9
"""What refinements of solutions of the linear equations may leave, of the right-hand sides."""
INFEASIBLE = 1e-10
"""Of multipliers that prove that there is no solution: looser, they end programs too soon."""
MAX_ITERATIONS = 200
HUGE = 1e6
"""No variables are so far from zero; those of all programs are about one."""


class Kind(Enum):
    """What rows are asked to be."""

    ZERO = 'zero'
    NONNEGATIVE = 'nonnegative'
    SECOND_ORDER = 'second order'
    """The first row is at least as long as the others together."""
    SEMIDEFINITE = 'semidefinite'
    """A matrix for each label, all of one size; as vectors, see `cones.vector`."""


class Block(NamedTuple):
    """Rows ``G x + h`` that belong to one cone."""

    labels: tuple[str, ...]
    """Name of each row, or one name for all of them."""
    kind: Kind
    G: sparray
    """Sparse, shape (m, n)."""
    h: Array
    """Shape (m,)."""


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """Solution of ``minimise 1/2 x' P x + q' x``, all blocks in their cones."""

    x: Array
    slacks: tuple[Array, ...]
    """Rows of each block, strictly inside its cone."""
    multipliers: tuple[Array, ...]
    """Of each block, in its dual cone. If infeasible: what adds up to a contradiction."""
    value: float
    dual_value: float
    feasible: bool
    """False if it was proven that the blocks contradict each other."""
    grade: Grade
    iterations: int
    solve_time: float
    """Seconds."""


def minimise(
    P: sparray,
    q: Array,
    blocks: Sequence[Block],
    *,
    tolerance: float = TOLERANCE,
    time_limit: float = np.inf,
) -> ConicSolution:
    """Solve a quadratic program over cones; P (n, n); q (n,)."""
    from scipy.sparse import csc_array, vstack

    clarabel = _library()
    rows = csc_array(vstack([block.G for block in blocks], format='csc'))
    offsets = np.concatenate([block.h for block in blocks])
    cones = [cone for block in blocks for cone in _cones(clarabel, block)]
    settings = _settings(clarabel, tolerance, time_limit, curved=P.nnz > 0)
    started = perf_counter()
    solver = clarabel.DefaultSolver(csc_array(P), q, -rows, offsets, cones, settings)
    found = solver.solve()
    seconds = perf_counter() - started
    ends = np.cumsum([len(block.h) for block in blocks])[:-1]
    status = str(found.status)
    multipliers = tuple(np.split(np.array(found.z), ends))
    return ConicSolution(
        x=np.array(found.x),
        slacks=tuple(np.split(np.array(found.s), ends)),
        multipliers=multipliers,
        value=float(found.obj_val),
        dual_value=float(found.obj_val_dual),
        # By its own tolerances what is far away may seem infeasible too.
        feasible='PrimalInfeasible' not in status or not _contradict(blocks, multipliers),
        grade=_GRADES.get(status, Grade.INACCURATE),
        iterations=int(found.iterations),
        solve_time=seconds,
    )


def _contradict(blocks: Sequence[Block], multipliers: Sequence[Array]) -> bool:
    """
    Return whether multipliers prove that no variables but huge ones are in all cones [Farkas].
    """
    inside = [_dual(block, y) for block, y in zip(blocks, multipliers, strict=True)]
    pairs = list(zip(blocks, inside, strict=True))
    most = sum(float(y @ block.h) for block, y in pairs)
    left = np.sum([block.G.T @ y for block, y in pairs], axis=0)
    return most + HUGE * float(np.abs(left).sum()) < 0.0


def _dual(block: Block, y: Array) -> Array:
    """Return the nearest multipliers in the dual cone of a block, or some not far from them."""
    if block.kind is Kind.NONNEGATIVE:
        return np.maximum(y, 0.0)
    if block.kind is Kind.SECOND_ORDER:
        return np.append(max(y[0], float(np.linalg.norm(y[1:]))), y[1:])
    if block.kind is Kind.SEMIDEFINITE:
        values, axes = np.linalg.eigh(matrix(y.reshape(len(block.labels), -1)))
        kept = axes * np.maximum(values, 0.0)[:, None] @ np.swapaxes(axes, -1, -2)
        return vector(kept).reshape(-1)
    return y


_GRADES = {
    'Solved': Grade.OPTIMAL,
    'MaxIterations': Grade.STOPPED,
    'MaxTime': Grade.STOPPED,
}


def _library() -> ModuleType:
    """Import Clarabel."""
    try:
        return import_module('clarabel')
    except ImportError as error:
        raise InertialEstimationError(
            f"matrix inequalities need the package 'clarabel' ({error}): pip install clarabel"
        ) from error


def _settings(clarabel: ModuleType, tolerance: float, time_limit: float, curved: bool) -> object:
    """Return how to solve: on one thread, and without looking for structure that is not there."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = MAX_ITERATIONS
    settings.time_limit = time_limit
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if curved:
        settings.tol_infeas_abs = settings.tol_infeas_rel = INFEASIBLE
        settings.static_regularization_constant = REGULARIZATION
        settings.iterative_refinement_reltol = settings.iterative_refinement_abstol = REFINED
    # Presolve drops rows, and with them multipliers.
    settings.presolve_enable = settings.chordal_decomposition_enable = False
    return settings


def _cones(clarabel: ModuleType, block: Block) -> list[object]:
    """Return the solver's cones of a block."""
    if block.kind is Kind.SEMIDEFINITE:
        matrices = len(block.labels)
        size = int(np.sqrt(2 * len(block.h) // matrices))
        return [clarabel.PSDTriangleConeT(size)] * matrices
    if block.kind is Kind.NONNEGATIVE:
        return [clarabel.NonnegativeConeT(len(block.h))]
    if block.kind is Kind.SECOND_ORDER:
        return [clarabel.SecondOrderConeT(len(block.h))]
    return [clarabel.ZeroConeT(len(block.h))]
