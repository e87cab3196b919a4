# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How far a body is from another one: the entropic divergence and what it is like nearby.

With the pseudo-inertia J of a link and that of its prior J0 = L L', the body is described by
``J = L (1 + S) L'``, S symmetric, and ten numbers z that are the components of S in an
orthonormal basis. z is zero for the prior and does not depend on units or on the link's frame
but for a rotation of z. In these coordinates, of one link,

    entropic       tr S - log det (1 + S)       [Lee, Wensing, Park 2020, log-det Bregman]
    pullback       1/2 tr S^2 = 1/2 z'z         the Riemannian metric at the prior, and what the
                                                entropic divergence is to second order

The entropic one is infinite where a body stops being possible, and so keeps away from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.inertia import pseudo_inertia

Array = NDArray[np.float64]

_I, _J = np.triu_indices(4)
_SCALE = np.where(_I == _J, 0.5, np.sqrt(0.5))
"""Basis k is _SCALE[k] (e_i e_j' + e_j e_i'), of Frobenius norm one."""


def symmetric(z: Array) -> Array:
    """Return symmetric matrices from their components; z (..., 10); returns (..., 4, 4)."""
    S = np.zeros((*z.shape[:-1], 4, 4))
    S[..., _I, _J] = _SCALE * z
    return S + np.swapaxes(S, -1, -2)


def components(S: Array) -> Array:
    """
    Return the components of symmetric matrices; undoes `symmetric`.

    S (..., 4, 4); returns (..., 10).
    """
    return np.asarray(2.0 * _SCALE * S[..., _I, _J])


def parameters_of(J: Array) -> Array:
    """
    Return inertial parameters from the pseudo-inertia; undoes `model.inertia.pseudo_inertia`.

    J (..., 4, 4); returns (..., 10).
    """
    sxx, syy, szz = J[..., 0, 0], J[..., 1, 1], J[..., 2, 2]
    return np.stack(
        [
            J[..., 3, 3],
            J[..., 0, 3],
            J[..., 1, 3],
            J[..., 2, 3],
            syy + szz,
            -J[..., 0, 1],
            sxx + szz,
            -J[..., 0, 2],
            -J[..., 1, 2],
            sxx + syy,
        ],
        axis=-1,
    )


def whitening(prior: Array) -> Array:
    """
    Return the maps from whitened coordinates to inertial parameters.

    prior (n_links, 10); returns (n_links, 10, 10).
    """
    L = np.linalg.cholesky(pseudo_inertia(prior))[:, None]
    bodies = L @ symmetric(np.eye(10)) @ np.swapaxes(L, -1, -2)
    return np.swapaxes(parameters_of(bodies), -1, -2)


def entropic_divergence(parameters: Array, prior: Array) -> Array:
    """
    Return the log-det Bregman divergence of pseudo-inertias, not symmetric.

    parameters, prior (..., 10); returns (...).
    """
    shares = relative_eigenvalues(parameters, prior)
    inside = np.all(shares > -1.0, axis=-1)
    safe = np.where(np.expand_dims(inside, -1), shares, 0.0)
    return np.where(inside, np.sum(safe - np.log1p(safe), axis=-1), np.inf)


def pullback_distance(parameters: Array, prior: Array) -> Array:
    """
    Return half the squared distance in the Riemannian metric at the prior.

    parameters, prior (..., 10); returns (...).
    """
    return np.asarray(0.5 * np.sum(relative_eigenvalues(parameters, prior) ** 2, axis=-1))


def relative_eigenvalues(parameters: Array, prior: Array) -> Array:
    """
    Return the eigenvalues of S, ascending, shape (..., 4); all zero at the prior.

    parameters, prior (..., 10); returns (..., 4).
    """
    apart = pseudo_inertia(np.asarray(parameters) - np.asarray(prior))
    L = np.broadcast_to(np.linalg.cholesky(pseudo_inertia(prior)), apart.shape)
    half = np.linalg.solve(L, apart)
    S = np.linalg.solve(L, np.swapaxes(half, -1, -2))
    return np.asarray(np.linalg.eigvalsh((S + np.swapaxes(S, -1, -2)) / 2))


def entropic_gradient(S: Array) -> Array:
    """
    Return the gradient of ``tr S - log det (1 + S)`` by the components of S.

    S (n_links, 4, 4); returns (n_links, 10).
    """
    # 1 - (1 + S)^-1 without the cancellation near the prior.
    pulled = np.linalg.solve(np.eye(4) + S, S)
    return components((pulled + np.swapaxes(pulled, -1, -2)) / 2)


def entropic_hessian(S: Array) -> Array:
    """
    Return the second derivative of ``tr S - log det (1 + S)`` by the components of S.

    S (n_links, 4, 4); returns (n_links, 10, 10).
    """
    V = np.linalg.inv(np.eye(4) + S)
    a, b = _I[:, None], _J[:, None]
    products = V[:, a, _I] * V[:, b, _J] + V[:, a, _J] * V[:, b, _I]
    return np.asarray(2.0 * _SCALE[:, None] * _SCALE * products)


def entropic_roots(S: Array) -> Array:
    """
    Return roots of `entropic_hessian`, whose condition is the root of its own.

    S (n_links, 4, 4); returns (n_links, 10, 10).
    """
    L = np.linalg.cholesky(np.eye(4) + S)[:, None]
    half = np.linalg.solve(L, symmetric(np.eye(10))[None])
    seen = np.linalg.solve(L, np.swapaxes(half, -1, -2))
    return np.swapaxes(components(seen), -1, -2)


def edge(bodies: Array, change: Array) -> float:
    """
    Return the step at which the first of some matrices stops being positive definite.

    bodies (n, 4, 4); change (n, 4, 4).
    """
    root = np.linalg.cholesky(bodies)
    half = np.linalg.solve(root, change)
    rates = np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, -1, -2)))
    least = float(rates.min())
    return -1.0 / least if least < 0.0 else np.inf
