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

from inertial_estimation.estimation.contact_forces import split_wrench

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """The least squares of one submodel; wrenches are rows, ``d`` is by the positions."""

    total: Array
    """The sum to share out, shape (6,)."""
    dtotal: Array
    """Shape (n_joints, 6)."""
    columns: Array
    """Shape (n_unknowns, 6)."""
    dcolumns: Array
    """Shape (n_unknowns, n_joints, 6)."""
    noise: Array
    """Disturbances of the sum that weigh it, shape (n_noise, 6)."""
    dnoise: Array
    """Shape (n_noise, n_joints, 6)."""


class Answer(NamedTuple):
    """Its solution."""

    unknowns: Array
    """Shape (n_unknowns,)."""
    dunknowns: Array
    """Shape (n_unknowns, n_joints)."""
    inverse: Array
    """``unknowns = inverse @ total``, shape (n_unknowns, 6)."""
    blind: Array
    """Undetermined combinations, shape (n_unknowns, n_combinations)."""


def solve(problem: Problem, rank_tolerance: float) -> Answer:
    """
    Solve as `contact_forces.split_wrench` does, and differentiate.

    Parameters
    ----------
    problem : Problem
        The least squares.
    rank_tolerance : float
        As in `contact_forces.split_wrench`.

    Returns
    -------
    Answer

    """
    total, dtotal, columns, dcolumns, noise, dnoise = problem
    rank = int(split_wrench(total, columns, noise, rank_tolerance).rank)
    # Rows times `whiten` have unit noise: whiten whiten' is the inverse of noise' noise. Its
    # derivative is free by a rotation, on which nothing depends.
    whiten = np.linalg.inv(np.linalg.qr(noise, mode='r'))
    half = np.swapaxes(dnoise, 0, 1).swapaxes(1, 2) @ noise
    dgram = half + half.swapaxes(1, 2)
    dwhiten = -0.5 * (whiten @ whiten.T) @ dgram @ whiten
    white, dwhite = total @ whiten, dtotal @ whiten + total @ dwhiten
    dmatrix = dcolumns.swapaxes(0, 1) @ whiten + columns @ dwhiten
    u, s, vt = np.linalg.svd(columns @ whiten)
    kept = slice(0, rank)
    inverse = (u[:, kept] / s[kept]) @ vt[kept]
    dinverse = _pseudo_inverse_derivative(u, s, vt, rank, u.T @ dmatrix @ vt.T)
    return Answer(
        unknowns=inverse @ white,
        dunknowns=(dinverse @ white).T + inverse @ dwhite.T,
        inverse=inverse @ whiten.T,
        blind=u[:, rank:],
    )


def _pseudo_inverse_derivative(u: Array, s: Array, vt: Array, rank: int, change: Array) -> Array:
    """
    Return how the transposed pseudo-inverse of ``u s vt`` changes.

    Parameters
    ----------
    u, s, vt : ndarray, shapes (m, m), (min(m, n),), (n, n)
        Full singular value decomposition.
    rank : int
        Number of singular values that do not count as zero.
    change : ndarray, shape (..., m, n)
        Changes of the matrix, as ``u' change v``.

    Returns
    -------
    ndarray, shape (..., m, n)

    """
    m, n = change.shape[-2:]
    size = max(m, n)
    square = np.zeros((*change.shape[:-2], size, size))
    square[..., :m, :n] = change
    values = np.zeros(size)
    values[: len(s)] = s
    # Between two kept ones: -F' / (s_i s_j); between a kept k and a dropped d:
    # (s_k F + s_d F') / (s_k (s_k^2 - s_d^2)); between two dropped ones: nothing.
    straight, crossed = np.zeros((2, size, size))
    k, d = values[:rank, None], values[rank:]
    crossed[:rank, :rank] = -1.0 / (k * k.T)
    straight[:rank, rank:] = 1.0 / (k * k - d * d)
    crossed[:rank, rank:] = d / (k * (k * k - d * d))
    straight[rank:, :rank] = straight[:rank, rank:].T
    crossed[rank:, :rank] = crossed[:rank, rank:].T
    mixed = straight * square + crossed * square.swapaxes(-1, -2)
    derivative: Array = u @ mixed[..., :m, :n] @ vt
    return derivative
