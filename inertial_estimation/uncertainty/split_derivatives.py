# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The least squares of a submodel whose contacts share its external wrench, and its derivative.

The unknowns are ``u = pinv(A) b`` with A and b whitened by the noise of the submodel's sensors,
and both move with the joints. For a full-rank A the derivative of the pseudo-inverse is Golub
and Pereyra's; here small singular values count as zero, and the pseudo-inverse is a function g of
the singular values (1/s, or 0). Its derivative in the directions of the singular vectors i and j
follows from the divided differences (g_i - g_j) / (s_i - s_j) and (g_i + g_j) / (s_i + s_j).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.step import split_wrench

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """
    The least squares of n submodels of a size; wrenches are rows, ``d`` is by the positions.

    All wrenches may be about any point and turn with any frame.
    """

    totals: Array
    """The sums to share out, shape (n, 6)."""
    dtotals: Array
    """Shape (n, n_joints, 6)."""
    columns: Array
    """What a unit of each unknown adds, shape (n, n_unknowns, 6)."""
    dcolumns: Array
    """Shape (n, n_unknowns, n_joints, 6)."""
    noise: Array
    """Disturbances of the sums that weigh them, shape (n, n_noise, 6)."""
    dnoise: Array | None
    """Shape (n, n_noise, n_joints, 6); None if they rest."""


class Answer(NamedTuple):
    """Its solution."""

    unknowns: Array
    """Shape (n, n_unknowns)."""
    dunknowns: Array
    """Shape (n, n_unknowns, n_joints)."""
    inverse: Array
    """``unknowns = inverse @ total``, shape (n, n_unknowns, 6)."""
    blind: tuple[Array, ...]
    """Undetermined combinations of each submodel, shape (n_unknowns, n_combinations)."""


def solve(problem: Problem, rank_tolerance: float) -> Answer:
    """Solve as `step.split_wrench` does, and differentiate."""
    totals, columns, noise = problem.totals, problem.columns, problem.noise
    # Rows times `whiten` have unit noise: whiten whiten' is the inverse of noise' noise.
    whiten = np.linalg.inv(np.linalg.qr(noise, mode='r'))
    white = columns @ whiten
    rank = split_wrench((totals[:, None] @ whiten)[:, 0], white, np.ones(6), rank_tolerance).rank
    u, s, vt = np.linalg.svd(white)
    turned = whiten @ vt.swapaxes(1, 2)
    rows = np.concatenate([u.swapaxes(1, 2) @ columns, totals[:, None]], axis=1)
    drows = _changes(problem, u, rows, whiten, turned)
    total = (totals[:, None] @ turned)[:, 0]
    n = s.shape[1]
    kept = np.arange(n) < rank[:, None]
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    bent = _bent(s, rank, drows[:, :-1], total)
    bent[:, :n] += inverse[..., None] * drows[:, -1, :, :n].swapaxes(1, 2)
    u_inverse = u[..., :n] * inverse[:, None]
    return Answer(
        unknowns=(u_inverse @ total[:, :n, None])[..., 0],
        dunknowns=u @ bent,
        inverse=u_inverse @ turned[..., :n].swapaxes(1, 2),
        blind=tuple(own[:, r:] for own, r in zip(u, rank)),
    )


def _changes(problem: Problem, u: Array, rows: Array, whiten: Array, turned: Array) -> Array:
    """
    Return how columns and totals change in the axes of the singular vectors.

    Returns (n, n_unknowns + 1, n_joints, 6).
    """
    n, n_rows, _ = rows.shape
    n_joints = problem.dtotals.shape[1]
    dcolumns = u.swapaxes(1, 2) @ problem.dcolumns.reshape(n, n_rows - 1, n_joints * 6)
    drows = np.concatenate([dcolumns, problem.dtotals.reshape(n, 1, n_joints * 6)], axis=1)
    changes: Array = drows.reshape(n, n_rows * n_joints, 6) @ turned
    changes = changes.reshape(n, n_rows, n_joints, 6)
    if problem.dnoise is not None:
        noise, dnoise = problem.noise, problem.dnoise
        half = -0.5 * rows @ whiten @ whiten.swapaxes(1, 2)
        m = noise.shape[1]
        moved = (dnoise.reshape(n, m * n_joints, 6) @ turned).reshape(n, m, n_joints * 6)
        changes += (half @ noise.swapaxes(1, 2) @ moved).reshape(changes.shape)
        felt = half @ dnoise.reshape(n, m * n_joints, 6).swapaxes(1, 2)
        felt = felt.reshape(n, n_rows, m, n_joints).swapaxes(2, 3)
        changes += felt @ (noise @ turned)[:, None]
    return changes


def _bent(s: Array, rank: NDArray[np.int64], change: Array, total: Array) -> Array:
    """
    Return what a change of the matrix does to the solution, in the axes of singular vectors.

    s (n, min(n_unknowns, 6); rank (n,); change (n, n_unknowns, n_joints, 6); total (n, 6); returns
    (n, n_unknowns, n_joints).
    """
    n, n_unknowns, n_joints, _ = change.shape
    size = max(n_unknowns, 6)
    square = np.zeros((n, size, n_joints, size))
    square[:, :n_unknowns, :, :6] = change
    right = np.zeros((n, 1, size))
    right[:, 0, :6] = total
    straight, crossed = _weights(s, rank, size)
    bent: Array = np.einsum('nikj,nij->nik', square, straight * right)
    bent += np.einsum('njki,nij->nik', square, crossed * right)
    return bent[:, :n_unknowns]


def _weights(s: Array, rank: NDArray[np.int64], size: int) -> tuple[Array, Array]:
    """
    Return how the pseudo-inverse changes with the matrix F, both in axes of singular vectors.
    """
    values = np.zeros((len(s), size))
    values[:, : s.shape[1]] = s
    kept = np.arange(size) < rank[:, None]
    large, small = np.where(kept, values, 1.0), np.where(kept, 0.0, values)
    both = kept[:, :, None] & kept[:, None]
    # A kept row and a dropped column; the other way round is the transposed.
    one = (kept[:, :, None] & ~kept[:, None]) / (large[:, :, None] ** 2 - small[:, None] ** 2)
    straight = one + one.swapaxes(1, 2)
    other = one * small[:, None] / large[:, :, None]
    crossed = other + other.swapaxes(1, 2) - both / (large[:, :, None] * large[:, None])
    return straight, crossed
