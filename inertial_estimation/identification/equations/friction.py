# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a joint's effort holds beside the torque of its links [S 27]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.unknowns import Extra, Term

Array = NDArray[np.float64]

OF_A_JOINT = (Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA)
OF_A_COUPLING = (Term.VISCOUS, Term.COULOMB, Term.DRIVE_INERTIA)


@dataclass(frozen=True)
class JointModel:
    """
    How a joint's effort becomes the torque of its links.

    torque = effort - viscous q' - coulomb sign(q') - offset - drive_inertia q''
    """

    terms: tuple[Term, ...] = OF_A_JOINT
    """Which of these are unknown; the others are taken to be zero."""
    sign_width: float = 0.0
    """
    Velocity at which a smooth sign, tanh(q' / width), has come to 76 % of its height [rad/s or
    m/s]; 0 for the sign itself.
    """
    dead_zone: float = 0.0
    """Rows with a slower joint are left out: sign and stiction are unsure [rad/s or m/s]."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        for name in ('sign_width', 'dead_zone'):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ConfigError(f'{name} is {value}, expected zero or more')
        for term in self.terms:
            if term not in OF_A_JOINT:
                known = ', '.join(t.value for t in OF_A_JOINT)
                raise ConfigError(f"'{term.value}' is no term of a joint; there are {known}")

    def extras(self, joint: str) -> tuple[Extra, ...]:
        """Return the unknowns of a joint."""
        return tuple(Extra(joint, term) for term in self.terms)

    def columns(
        self, velocities: Array, accelerations: Array, directions: Array | None = None
    ) -> Array:
        """
        Return what each unknown of a joint adds to its effort.

        velocities, accelerations (n,); directions (n,); returns (n, n_terms).
        """
        filtered = directions is not None and not self.sign_width
        each = {
            Term.VISCOUS: velocities,
            Term.COULOMB: directions if filtered else self.sign(velocities),
            Term.OFFSET: np.ones_like(velocities),
            Term.DRIVE_INERTIA: accelerations,
        }
        columns = [each[term] for term in self.terms]
        return np.array(columns).reshape(len(columns), len(velocities)).T

    def sign(self, velocities: Array) -> Array:
        """
        Return the sign of velocities, smooth if it has a width.

        velocities (n,) [rad/s or m/s]; returns (n,).
        """
        if self.sign_width:
            return np.asarray(np.tanh(velocities / self.sign_width))
        return np.sign(velocities)

    def moving(self, velocities: Array) -> NDArray[np.bool_]:
        """
        Tell where a joint is outside its dead zone.

        velocities (n,) [rad/s or m/s]; returns (n,).
        """
        return np.asarray(np.abs(velocities) >= self.dead_zone)


@dataclass(frozen=True)
class Coupling:
    """
    A drive that turns with the sum of two joint velocities and loads both joints alike.

    Each joint's effort has further parts, with unknowns that both joints share: viscous times the
    velocity of the *other* joint, drive_inertia times the acceleration of the other joint, coulomb
    times the sign of the sum of both velocities. What such a drive takes for the joint's own
    velocity and acceleration is in the joint's own terms already.
    """

    joints: tuple[str, str]
    terms: tuple[Term, ...] = OF_A_COUPLING
    """Which of these are unknown; the others are taken to be zero."""

    def __post_init__(self) -> None:
        """Raise unless two joints share known terms."""
        if len(self.joints) != 2 or len(set(self.joints)) != 2:
            raise ConfigError(
                f'a coupling of {", ".join(self.joints) or "nothing"}: name two joints'
            )
        for term in self.terms:
            if term not in OF_A_COUPLING:
                known = ', '.join(t.value for t in OF_A_COUPLING)
                raise ConfigError(f"'{term.value}' is no term of a coupling; there are {known}")

    @property
    def name(self) -> str:
        """What its unknowns belong to."""
        return '+'.join(self.joints)

    def extras(self) -> tuple[Extra, ...]:
        """Return its unknowns, as a tuple of Extra."""
        return tuple(Extra(self.name, term) for term in self.terms)

    def other(self, joint: str) -> str:
        """Return the other joint."""
        return self.joints[self.joints[0] == joint]

    def columns(
        self,
        velocities: Array,
        other_velocities: Array,
        other_accelerations: Array,
        sign: JointModel,
    ) -> Array:
        """
        Return what each unknown adds to the effort of one of the joints.

        velocities (n,) [rad/s or m/s]; other_velocities, other_accelerations (n,); returns (n,
        n_terms).
        """
        each = {
            Term.VISCOUS: other_velocities,
            Term.COULOMB: sign.sign(velocities + other_velocities),
            Term.DRIVE_INERTIA: other_accelerations,
        }
        columns = [each[term] for term in self.terms]
        return np.array(columns).reshape(len(columns), len(velocities)).T
