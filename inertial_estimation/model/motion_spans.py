# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which motions links can make at all, and what crosses a joint: linear algebra, no samples.

The net wrench of a link is linear in its proper acceleration, its angular acceleration and the
products of its angular velocity: twelve numbers, a *state*. A joint carries the states of one
link to the next by trigonometric polynomials of degree two in its position (polynomials, if it
slides), and those are known everywhere once known at five positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.link_motions import Motion
from inertial_estimation.model.regressor import net_wrench_regressor
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]

POSITIONS = 2 * np.pi / 5 * np.arange(5)
"""Enough to know a trigonometric polynomial of degree two [rad], or a square [m]."""
NEGLIGIBLE = 1e-9
"""Singular values below this share of the largest are round-off."""
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
N_STATE = 12
"""Proper acceleration, angular acceleration, products of the angular velocity."""


class Crossing(NamedTuple):
    """A joint, or a rigid connection, as seen from the link on one side of it."""

    poses: tuple[Array, ...]
    """Pose of the other link in this one at each of `POSITIONS`, shape (4, 4) [m]."""
    motion: Array
    """How the other link moves per rate of the joint, (6,) [linear; angular], its own frame."""

    @classmethod
    def outwards(cls, P_H_L: Array, motion: Array) -> Crossing:
        """
        Return the joint that ties a link to its parent, seen from the parent.

        P_H_L (4, 4) [m]; motion (6,) [linear; angular].
        """
        twists = (pin.exp6(pin.Motion(motion * q)).homogeneous for q in POSITIONS)
        return cls(tuple(P_H_L @ twist for twist in twists), motion)

    @classmethod
    def inwards(cls, P_H_L: Array, motion: Array) -> Crossing:
        """
        Return the same joint, seen from the link: the other one is its parent.

        P_H_L (4, 4); motion (6,).
        """
        moved = pin.SE3(P_H_L).action @ motion
        return cls.outwards(pin.SE3(P_H_L).inverse().homogeneous, -moved)


def span(rows: Array) -> Array:
    """
    Return orthonormal rows that span the same space.

    rows (k, n); returns (rank, n).
    """
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right[values > NEGLIGIBLE * max(float(values[0]), np.finfo(float).tiny)])


def complement(rows: Array) -> Array:
    """
    Return orthonormal columns that all rows are orthogonal to.

    rows (k, n); returns (n, n - rank).
    """
    basis = span(rows)
    _, _, right = np.linalg.svd(basis, full_matrices=True)
    return np.asarray(right[len(basis) :].T)


def congruence(H: Array) -> Array:
    """
    Return the map of inertial parameters that H J H' is of the pseudo-inertia J.

    H (4, 4) [m]; returns (10, 10).
    """
    return np.asarray(_FROM_PSEUDO_INERTIA @ np.kron(H, H) @ _TO_PSEUDO_INERTIA)


def carried_states(H: Array) -> Array:
    """
    Return the map of a link's states to those of a frame that is fixed to it.

    H (4, 4) [m]; returns (12, 12).
    """
    R, p = H[:3, :3], H[:3, 3]
    carried = np.zeros((N_STATE, N_STATE))
    carried[:3, :3] = R.T
    carried[:3, 3:6] = -R.T @ hat(p)
    carried[3:6, 3:6] = R.T
    for k, product in enumerate(_products()):
        # w x (w x p) = w w' p - |w|^2 p
        carried[:3, 6 + k] = R.T @ (product @ p - np.trace(product) * p)
        carried[6:, 6 + k] = _numbers(R.T @ product @ R)
    return carried


def added_states(motion: Array, velocities: Array) -> Array:
    """
    Return what the rates of a joint add to the states of the link that it moves.

    motion (6,); velocities (k, 3); returns (k + 2, 12).
    """
    slide, turn = motion[:3], motion[3:]
    states = [
        np.concatenate([slide, turn, np.zeros(6)]),
        np.concatenate([hat(turn) @ slide, np.zeros(3), _numbers(np.outer(turn, turn))]),
    ]
    for w in velocities:
        both = np.outer(w, turn)
        states.append(np.concatenate([2 * hat(w) @ slide, hat(w) @ turn, _numbers(both + both.T)]))
    return np.array(states)


def wrench_functionals(states: Array) -> Array:
    """
    Return the rows of the net wrench regressor at some states.

    states (k, 12); returns (6 k, 10).
    """
    return np.asarray(np.einsum('ks,sij->kij', states, _WRENCHES).reshape(-1, 10))


def inertia_functionals(twist: Array, twists: Array) -> Array:
    """
    Return the rows that give ``twist' M u`` from the parameters of a link of inertia M.

    twist (6,) [linear; angular]; twists (k, 6); returns (k, 10).
    """
    # M u is the net wrench of a link that is accelerated by u and does not turn.
    states = np.concatenate([twists, np.zeros((len(twists), 6))], axis=1)
    return np.asarray(np.einsum('i,kij->kj', twist, np.einsum('ks,sij->kij', states, _WRENCHES)))


def _products() -> list[Array]:
    """Return the basis of symmetric matrices that states count products in."""
    found = []
    for i, j in _PAIRS:
        product = np.zeros((3, 3))
        product[i, j] = product[j, i] = 1.0
        found.append(product)
    return found


def _numbers(product: Array) -> Array:
    """Return a symmetric matrix in that basis, shape (6,)."""
    rows, columns = zip(*_PAIRS, strict=True)
    return np.asarray(product[list(rows), list(columns)])


def _wrenches() -> Array:
    """Return the net wrench regressor of each unit state, shape (12, 6, 10)."""
    eye, none = np.eye(3), np.zeros((3, 3))
    linear = net_wrench_regressor(
        Motion(np.zeros((6, 3)), np.vstack([none, eye]), np.vstack([eye, none]))
    )
    single = net_wrench_regressor(Motion(eye, none, none))
    both = np.array([eye[i] + eye[j] for i, j in _PAIRS[3:]])
    mixed = net_wrench_regressor(Motion(both, none, none))
    for k, (i, j) in enumerate(_PAIRS[3:]):
        mixed[k] -= single[i] + single[j]
    return np.concatenate([linear, single, mixed])


_WRENCHES = _wrenches()
_TO_PSEUDO_INERTIA = pseudo_inertia(np.eye(10)).reshape(10, 16).T
_FROM_PSEUDO_INERTIA = np.linalg.pinv(_TO_PSEUDO_INERTIA)
