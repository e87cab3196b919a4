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


@dataclass(frozen=True)
class JointModel:
    """
    How a joint's effort becomes the torque of its links.

    torque = effort - viscous q' - coulomb sign(q') - offset - drive_inertia q''

    Raises
    ------
    ConfigError
        If a number is negative or a term is not one of a joint.

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
        """
        Return the unknowns of a joint.

        Parameters
        ----------
        joint : str
            Its name.

        Returns
        -------
        tuple of Extra

        """
        return tuple(Extra(joint, term) for term in self.terms)

    def columns(self, velocities: Array, accelerations: Array) -> Array:
        """
        Return what each unknown of a joint adds to its effort.

        Parameters
        ----------
        velocities, accelerations : ndarray, shape (n,)
            Of the joint [rad/s or m/s; rad/s^2 or m/s^2].

        Returns
        -------
        ndarray, shape (n, n_terms)

        """
        sign = np.sign(velocities)
        if self.sign_width:
            sign = np.tanh(velocities / self.sign_width)
        each = {
            Term.VISCOUS: velocities,
            Term.COULOMB: sign,
            Term.OFFSET: np.ones_like(velocities),
            Term.DRIVE_INERTIA: accelerations,
        }
        columns = [each[term] for term in self.terms]
        return np.array(columns).reshape(len(columns), len(velocities)).T

    def moving(self, velocities: Array) -> NDArray[np.bool_]:
        """
        Tell where a joint is outside its dead zone.

        Parameters
        ----------
        velocities : ndarray, shape (n,)
            Of the joint [rad/s or m/s].

        Returns
        -------
        ndarray of bool, shape (n,)

        """
        return np.asarray(np.abs(velocities) >= self.dead_zone)
