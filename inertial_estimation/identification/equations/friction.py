# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Friction, offset and drive inertia of joints and of coupled drives [S 27]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.unknowns import Extra, Term

OF_A_JOINT = (Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA)
OF_A_COUPLING = (Term.VISCOUS, Term.COULOMB, Term.DRIVE_INERTIA)


@dataclass(frozen=True)
class JointModel:
    """
    From the effort of a joint to the torque of its links.

    torque = effort - viscous q' - coulomb sign(q') - offset - drive_inertia q''
    """

    terms: tuple[Term, ...] = OF_A_JOINT
    """Unknown terms; the others are zero."""
    sign_width: float = 0.0
    """Width of a smooth sign, tanh(q' / width) [rad/s or m/s]; 0 for the sign itself."""
    dead_zone: float = 0.0
    """Velocity below which there are no equations, because of stiction [rad/s or m/s]."""

    def __post_init__(self) -> None:
        for name in ('sign_width', 'dead_zone'):
            if not 0.0 <= (value := getattr(self, name)) < np.inf:
                raise ConfigError(f'{name} is {value}, expected zero or more')
        _check_terms(self.terms, OF_A_JOINT, 'a joint')

    def extras(self, joint: str) -> tuple[Extra, ...]:
        """Return the unknowns of a joint."""
        return tuple(Extra(joint, term) for term in self.terms)

    def columns(
        self, velocities: Array, accelerations: Array, directions: Array | None = None
    ) -> Array:
        """Return the regressor of the unknowns of a joint, (n, n_terms), from arrays (n,)."""
        if directions is None or self.sign_width:
            directions = self.sign(velocities)
        return friction_columns(self.terms, velocities, directions, accelerations)

    def sign(self, velocities: Array) -> Array:
        """Return the sign of velocities, smooth if it has a width."""
        if self.sign_width:
            return np.asarray(np.tanh(velocities / self.sign_width))
        return np.sign(velocities)


@dataclass(frozen=True)
class Coupling:
    """
    A drive that turns with the sum of two joint velocities and loads both joints alike.

    Both joints share its unknowns: viscous times the velocity of the *other* joint, drive_inertia
    times its acceleration, and coulomb times the sign of the sum of both velocities. The shares of
    the joint's own velocity and acceleration are in its own terms.
    """

    joints: tuple[str, str]
    terms: tuple[Term, ...] = OF_A_COUPLING
    """Unknown terms; the others are zero."""

    def __post_init__(self) -> None:
        if len(self.joints) != 2 or len(set(self.joints)) != 2:
            raise ConfigError(f"a coupling needs two joints, not '{', '.join(self.joints)}'")
        _check_terms(self.terms, OF_A_COUPLING, 'a coupling')

    @property
    def name(self) -> str:
        """Name that its unknowns have in place of a joint's."""
        return '+'.join(self.joints)

    def extras(self) -> tuple[Extra, ...]:
        """Return its unknowns."""
        return tuple(Extra(self.name, term) for term in self.terms)


def friction_columns(
    terms: tuple[Term, ...], velocities: Array, directions: Array, accelerations: Array
) -> Array:
    """Return the regressor of some terms, (n, n_terms), from arrays (n,)."""
    ones = np.ones_like(velocities)
    each = dict(zip(OF_A_JOINT, (velocities, directions, ones, accelerations), strict=True))
    return np.array([each[term] for term in terms]).reshape(-1, len(velocities)).T


def _check_terms(terms: tuple[Term, ...], known: tuple[Term, ...], owner: str) -> None:
    for term in terms:
        if term not in known:
            names = ', '.join(each.value for each in known)
            raise ConfigError(f"'{term.value}' is no term of {owner}, expected {names}")
