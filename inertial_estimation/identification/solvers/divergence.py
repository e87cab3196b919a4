# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Distances of inertial parameters to a prior: entropic divergence and pullback metric.

With the pseudo-inertia J of a link and J0 = L L' of its prior, ``J = L (1 + S) L'`` with S
symmetric; z are the ten components of S in an orthonormal basis. z is zero at the prior and
depends neither on units nor on the link's frame, but for a rotation. Of one link,

    entropic       tr S - log det (1 + S)       [Lee, Wensing, Park 2020, log-det Bregman]
    pullback       1/2 tr S^2 = 1/2 z'z         the entropic divergence to second order

The entropic divergence is infinite at the edge of the consistent cone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.model.inertia import pseudo_inertia

Floats = NDArray[np.floating[Any]]


@cache
def _triangle(size: int) -> tuple[Indices, Indices, Array]:
    """Return rows, columns and factors of the upper triangle, row by row."""
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def symmetric(z: Array) -> Array:
    """Return symmetric matrices, (..., k, k), from their components, (..., k (k + 1) / 2)."""
    size = int(np.sqrt(2 * z.shape[-1]))
    rows, columns, factors = _triangle(size)
    S = np.empty((*z.shape[:-1], size, size))
    S[..., rows, columns] = S[..., columns, rows] = z / factors
    return S


def components(S: Array) -> Array:
    """Return vectors, (..., k (k + 1) / 2), with the inner product of matrices, (..., k, k)."""
    rows, columns, factors = _triangle(S.shape[-1])
    return np.asarray(S[..., rows, columns] * factors)


def parameters_of(J: Array) -> Array:
    """Return inertial parameters, (..., 10), from pseudo-inertias, (..., 4, 4)."""
    second = J[..., :3, :3]
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second
    rows, columns = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]
    return np.concatenate([J[..., 3, 3:], J[..., :3, 3], inertia[..., rows, columns]], axis=-1)


def whitening(prior: Array) -> Array:
    """Return the maps from z to inertial parameters, (n_links, 10, 10)."""
    L = np.linalg.cholesky(pseudo_inertia(prior))[:, None]
    matrices = L @ symmetric(np.eye(10)) @ np.swapaxes(L, -1, -2)
    return np.swapaxes(parameters_of(matrices), -1, -2)


def entropic_divergence(parameters: Array, prior: Array) -> Array:
    """Return the log-det Bregman divergence of each link, (...); it is not symmetric."""
    root = np.linalg.cholesky(pseudo_inertia(prior))
    shares = congruent_eigenvalues(root, pseudo_inertia(parameters - prior))
    inside = np.all(shares > -1.0, axis=-1)
    safe = np.where(np.expand_dims(inside, -1), shares, 0.0)
    return np.where(inside, np.sum(safe - np.log1p(safe), axis=-1), np.inf)


def congruent_eigenvalues(root: Floats, change: Floats) -> Array:
    """Return the eigenvalues, ascending, of ``L^-1 change L^-T``, (..., 4)."""
    root = np.broadcast_to(root, change.shape)
    half = np.linalg.solve(root, change)
    return np.asarray(np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, -1, -2))))


def entropic_gradient(S: Array) -> Array:
    """Return the gradient of the divergence by z, (n_links, 10)."""
    # 1 - (1 + S)^-1 without the cancellation near the prior.
    pulled = np.linalg.solve(np.eye(4) + S, S)
    return components((pulled + np.swapaxes(pulled, -1, -2)) / 2)


def entropic_hessian(S: Array) -> Array:
    """Return the second derivative of the divergence by z, (n_links, 10, 10)."""
    V, (i, j, factors) = np.linalg.inv(np.eye(4) + S), _triangle(4)
    a, b = i[:, None], j[:, None]
    products = V[:, a, i] * V[:, b, j] + V[:, a, j] * V[:, b, i]
    return np.asarray(0.5 * factors[:, None] * factors * products)


def entropic_roots(S: Array) -> Array:
    """Return roots of `entropic_hessian`, which keep twice its digits, (n_links, 10, 10)."""
    L = np.linalg.cholesky(np.eye(4) + S)[:, None]
    half = np.linalg.solve(L, symmetric(np.eye(10))[None])
    seen = np.linalg.solve(L, np.swapaxes(half, -1, -2))
    return np.swapaxes(components(seen), -1, -2)


def entropic_rows(near: Array, prior: Array) -> tuple[Array, Array]:
    """Return rows of each link and targets whose half square is the divergence near parameters."""
    maps = np.linalg.inv(whitening(prior))
    shapes = symmetric(np.einsum('lij,lj->li', maps, near - prior))
    inside = np.linalg.eigvalsh(shapes)[:, 0] > -1.0
    about = np.where(inside[:, None], near, prior)
    shapes = np.where(inside[:, None, None], shapes, 0.0)
    roots = entropic_roots(shapes)
    slopes = entropic_gradient(shapes)[..., None]
    moved = np.linalg.solve(np.swapaxes(roots, -1, -2), slopes)[..., 0]
    rows = roots @ maps
    return rows, np.einsum('lij,lj->li', rows, about) - moved


def edge(root: Floats, change: Floats) -> float:
    """Return the step at which the first of some matrices L L' stops being positive definite."""
    least = float(congruent_eigenvalues(root, change).min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf


@dataclass(frozen=True)
class Distance:
    """Distance to the prior that a method minimises, summed over links."""

    name: str
    rows: Callable[[Array, Array], tuple[Array, Array]] | None
    """
    Returns rows, (n_links, 10, 10), and targets, (n_links, 10), whose half square it is to second
    order near some parameters, by these and the prior; None: no distance.
    """


NONE = Distance('none', None)
EUCLIDEAN = Distance(
    'euclidean', lambda near, prior: (np.broadcast_to(np.eye(10), (len(prior), 10, 10)), prior)
)
"""Of inertial parameters in SI units."""
PULLBACK = Distance('pullback', lambda near, prior: entropic_rows(prior, prior))
ENTROPIC = Distance('entropic', entropic_rows)
