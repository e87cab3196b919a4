# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Links by mass, centre of mass, principal axes and central second moments of mass [M III-B].

With positive masses and moments these are all consistent parameters: the manifold R+ x R3 x SO(3)
x R3+ [M Theorem 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import pseudo_inertia

_E = np.eye(3)
PAIRS = ((0, 1), (0, 2), (1, 2))
_SECOND = np.zeros((6, 3, 3))
_SECOND[range(3), range(3), range(3)] = 1.0
for _k, (_i, _j) in enumerate(PAIRS, 3):
    _SECOND[_k, _i, _j] = _SECOND[_k, _j, _i] = 1.0


@dataclass(frozen=True, eq=False)
class PrincipalBodies:
    """One or more links; the frame of each is its own."""

    mass: Array
    """Shape (n_links,) [kg]."""
    center: Array
    """Centre of mass, shape (n_links, 3) [m]."""
    axes: Array
    """Rotation from principal axes to the link's, Q, shape (n_links, 3, 3)."""
    moments: Array
    """Second moments of mass along the principal axes, L, shape (n_links, 3) [kg m^2]."""

    @classmethod
    def of(cls, parameters: Array) -> PrincipalBodies:
        """Return the bodies of inertial parameters, (n_links, 10)."""
        J = pseudo_inertia(parameters)
        mass = J[:, 3, 3]
        if not (mass > 0).all():
            raise ModelError(f'mass is {mass.min():g} kg, expected a positive one')
        center = J[:, :3, 3] / mass[:, None]
        central = J[:, :3, :3] - mass[:, None, None] * center[:, :, None] * center[:, None]
        moments, axes = np.linalg.eigh(central)
        axes[np.linalg.det(axes) < 0, :, 0] *= -1
        return cls(mass.copy(), center, axes, moments)

    @property
    def parameters(self) -> Array:
        """Inertial parameters, shape (n_links, 10), as in `model.inertia` [M section III-B]."""
        central = self.axes * self.moments[:, None] @ np.swapaxes(self.axes, 1, 2)
        about = self.mass[:, None, None] * self.center[:, :, None] * self.center[:, None]
        first = self.mass[:, None] * self.center
        return np.column_stack([self.mass, first, _moments_of_inertia(central + about)])

    @property
    def jacobian(self) -> Array:
        """Derivative of the parameters, shape (n_links, 10, 10)."""
        T = np.zeros((len(self.mass), 10, 10))
        c, m = self.center, self.mass[:, None, None, None]
        T[:, 0, 0] = 1.0
        T[:, 1:4, 0] = c
        T[:, 4:, 0] = _moments_of_inertia(c[:, :, None] * c[:, None])
        T[:, 1:4, 1:4] = self.mass[:, None, None] * _E
        half = c[:, None, :, None] * _E[:, None]
        shifted = m * (half + np.swapaxes(half, 2, 3))
        T[:, 4:, 1:4] = np.swapaxes(_moments_of_inertia(shifted), 1, 2)
        Q = self.axes[:, None]
        T[:, 4:, 4:] = np.swapaxes(_moments_of_inertia(Q @ _SECOND @ np.swapaxes(Q, -1, -2)), 1, 2)
        return T

    def moved(self, step: Array, low: Array, high: Array) -> PrincipalBodies:
        """Return the bodies after a step, (n_links, 10), within bounds, (n_links, 7) [M 24]."""
        central = np.einsum('lk,kij->lij', step[:, 4:], _SECOND)
        central[:, range(3), range(3)] += self.moments
        moments, turn = np.linalg.eigh(central)
        turn[np.linalg.det(turn) < 0, :, 0] *= -1
        return PrincipalBodies(
            np.clip(self.mass + step[:, 0], low[:, 0], high[:, 0]),
            np.clip(self.center + step[:, 1:4], low[:, 1:4], high[:, 1:4]),
            self.axes @ turn,
            np.clip(moments, low[:, 4:], high[:, 4:]),
        )

    def moved_straight(
        self, step: Array, low: Array, high: Array, which: NDArray[np.bool_]
    ) -> PrincipalBodies:
        """Return the same, where the parameters of some, (n_links,), change along a line."""
        curved = self.moved(step, low, high)
        parameters = self.parameters
        line = parameters + np.einsum('lij,lj->li', self.jacobian, step)
        some = which & (line[:, 0] > 0.0)
        there = PrincipalBodies.of(np.where(some[:, None], line, parameters))
        some &= ((there.flat >= low) & (there.flat <= high)).all(axis=1)
        curved.mass[some], curved.center[some] = there.mass[some], there.center[some]
        curved.axes[some], curved.moments[some] = there.axes[some], there.moments[some]
        return curved

    @property
    def flat(self) -> Array:
        """Mass, centre of mass and moments, shape (n_links, 7)."""
        return np.column_stack([self.mass, self.center, self.moments])


def _moments_of_inertia(second: Array) -> Array:
    """Return Ixx, Ixy, Iyy, Ixz, Iyz, Izz from second moments of mass, shape (..., 6)."""
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., None, None] * _E - second
    return np.asarray(inertia[..., [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]])


def bending(bodies: PrincipalBodies, gradient: Array, free: NDArray[np.bool_]) -> Array:
    """Return the Hessian by the curvature of the manifold, (n_links, 10, 10)."""
    # The gradient by second moments of mass about the link's origin.
    xx, xy, yy, xz, yz, zz = gradient[:, 4:].T
    rows = [[yy + zz, -xy / 2, -xz / 2], [-xy / 2, xx + zz, -yz / 2], [-xz / 2, -yz / 2, xx + yy]]
    by_second = np.moveaxis(np.array(rows), (0, 1), (1, 2))
    bend = np.zeros((len(gradient), 10, 10))
    mixed = gradient[:, 1:4] + 2.0 * np.einsum('lij,lj->li', by_second, bodies.center)
    bend[:, 0, 1:4] = bend[:, 1:4, 0] = mixed
    bend[:, 1:4, 1:4] = 2.0 * bodies.mass[:, None, None] * by_second
    pulls = np.einsum('lji,ljk,lki->li', bodies.axes, by_second, bodies.axes)
    for column, (i, j) in enumerate(PAIRS, 7):
        for here, other in ((i, j), (j, i)):
            gap = bodies.moments[:, other] - bodies.moments[:, here]
            turns = ~free[:, 4 + here] & (gap > 0.0)
            bend[turns, column, column] += 2.0 * pulls[turns, here] / gap[turns]
    return bend
