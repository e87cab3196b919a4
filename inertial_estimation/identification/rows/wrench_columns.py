# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The regressor of a submodel for many instants, laid out for speed [T 4.9, 7.4].

The same numbers as `model.regressor` gives, with the instants last: every operation runs over
contiguous memory, and columns are taken out in the order that LAPACK wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.link_motions import Motion, Poses

Array = NDArray[np.float64]

_INERTIA = ((0, 1, 3), (1, 2, 4), (3, 4, 5))
"""Where the entry of an inertia tensor stands among Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""


def wrench_columns(
    links: Sequence[int], placed: Mapping[int, Poses], motions: Sequence[Motion]
) -> Array:
    """
    Return the net wrenches of links, by parameter, about one origin in its axes.

    Returns (6, 10 n_links, n) [force; torque].
    """
    w, dw, a = (_instants_last(parts) for parts in zip(*(motions[k] for k in links), strict=True))
    R = _instants_last([placed[k].rotations for k in links])
    p = _instants_last([placed[k].origins for k in links])
    n = a.shape[-1]
    found = np.zeros((6, len(links), 10, n))
    forces, moments = (np.moveaxis(half, 1, 2) for half in (found[:3], found[3:]))
    forces[:, 0] = _turned(R, a)
    forces[:, 1:4] = _products(R, _hat(dw) + _hat_squared(w))
    moments[:, 1:4] = -_products(R, _hat(a))
    # About the link's origin still: the force at the new origin comes with a moment.
    for row, (after, last) in enumerate(((1, 2), (2, 0), (0, 1))):
        moments[row, :4] += p[after] * forces[last, :4] - p[last] * forces[after, :4]
    moments[:, 4:] = _products(R, _of_inertia(dw) + _products(_hat(w), _of_inertia(w)))
    return found.reshape(6, 10 * len(links), n)


def _instants_last(parts: Sequence[Array]) -> Array:
    """Return an array for each link, (n, ...), as one of shape (..., n_links, n)."""
    stacked = np.array(parts)
    return np.ascontiguousarray(stacked.transpose(*range(2, stacked.ndim), 0, 1))


def _hat(v: Array) -> Array:
    """Return the matrices of cross products with vectors, shape (3, 3, n_links, n)."""
    found = np.zeros((3, *v.shape))
    found[0, 1], found[0, 2], found[1, 2] = -v[2], v[1], -v[0]
    found[1, 0], found[2, 0], found[2, 1] = v[2], -v[1], v[0]
    return found


def _hat_squared(v: Array) -> Array:
    """Return what `_hat` gives times itself, v v' - |v|^2."""
    found: Array = v[:, None] * v
    squares = v * v
    for axis in range(3):
        found[axis, axis] = -squares[axis - 2] - squares[axis - 1]
    return found


def _of_inertia(v: Array) -> Array:
    """Return the matrices that give I v from the six entries of I, shape (3, 6, n_links, n)."""
    found = np.zeros((3, 6, *v.shape[1:]))
    for row, places in enumerate(_INERTIA):
        for column, place in enumerate(places):
            found[row, place] = v[column]
    return found


def _products(A: Array, B: Array) -> Array:
    """Return the products of stacks of matrices whose instants come last."""
    return np.asarray(np.einsum('ijln,jkln->ikln', A, B))


def _turned(R: Array, v: Array) -> Array:
    """Return vectors in other axes."""
    return np.asarray(np.einsum('ijln,jln->iln', R, v))
