# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Payloads that are carried in some logs and not in others.

Known parameters of a payload stand on the right-hand side of the equations. The weight of a known
mass is all that stands there if efforts are currents, and determines all gains [Gautier & Briot
2014]. Unknown ones have columns that are zero in samples without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.wrenches import Load, fixed_at, wrench_columns
from inertial_estimation.identification.unknowns import OF_A_BODY, Extra, Term
from inertial_estimation.model.inertia import LARGEST_ARM, consistency_margin
from inertial_estimation.model.link_motions import Motion, Poses
from inertial_estimation.model.spatial import cross

PRIOR_ARM = 5.0
"""Standard deviation of the centre of mass of a payload; wide, as logs are long [m]."""
PRIOR_MASS = 100.0
"""Standard deviation of an unknown mass [kg]."""


@dataclass(frozen=True)
class Payload:
    """A rigid body that is there at times."""

    name: str
    frame: str
    """That it is fixed to."""
    mass: float | None = None
    """[kg]; None: unknown."""
    center_of_mass: tuple[float, ...] | None = None
    """In that frame [m]; None: unknown."""
    inertia: tuple[float, ...] | None = None
    """
    Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the centre of mass in the axes of the frame [kg m^2];
    None: unknown.
    """

    def __post_init__(self) -> None:
        arm = 0.0 if self.center_of_mass is None else float(np.linalg.norm(self.center_of_mass))
        if self.mass is not None and not 0.0 < self.mass < np.inf:
            wrong = f'mass is {self.mass:g} kg, expected more than zero'
        elif self.mass is None and self.center_of_mass is not None:
            wrong = 'center_of_mass needs mass'
        elif not arm <= LARGEST_ARM:
            wrong = f'center_of_mass is {arm:g} m from the frame, expected up to {LARGEST_ARM:g}'
        elif self.inertia is not None and self.center_of_mass is None:
            wrong = 'inertia needs center_of_mass'
        elif self.inertia is not None and not consistency_margin(self.known()[None])[0] >= 0.0:
            wrong = 'inertia is not physically consistent'
        else:
            return
        raise ConfigError(f"payload '{self.name}': {wrong}")

    def known(self) -> Array:
        """Return its parameters about the origin of its frame, (10,), NaN where unknown."""
        found = np.full(10, np.nan)
        if self.mass is not None:
            found[0] = self.mass
        if self.mass is not None and self.center_of_mass is not None:
            c = np.array(self.center_of_mass)
            found[1:4] = self.mass * c
            if self.inertia is not None:
                shifted = self.mass * (c @ c * np.eye(3) - np.outer(c, c))
                found[4:] = np.array(self.inertia) + shifted[np.tril_indices(3)]
        return found

    def extras(self) -> tuple[Extra, ...]:
        """Return its unknowns."""
        unknown = np.flatnonzero(np.isnan(self.known()))
        return tuple(Extra(self.name, OF_A_BODY[k]) for k in unknown)

    def scale(self, term: Term) -> float:
        """Return the standard deviation of the prior of one of its unknowns."""
        power = (0, 1, 1, 1, 2, 2, 2, 2, 2, 2)[OF_A_BODY.index(term)]
        return (PRIOR_MASS if self.mass is None else self.mass) * PRIOR_ARM**power

    def load(self, link: int, placed: Poses, motion: Motion, L_H_F: Array, there: Array) -> Load:
        """Return its net wrench, as a load of its link; there: 1 in samples with it, (n,)."""
        R, p = L_H_F[:3, :3], L_H_F[:3, 3]
        w, dw, a = motion
        moved = Motion(w @ R, dw @ R, (a + cross(dw, p) + cross(w, cross(w, p))) @ R)
        columns = there * wrench_columns((0,), {0: fixed_at(placed, L_H_F)}, [moved])
        known = self.known()
        stated = np.isfinite(known)
        wrench = -np.einsum('k,ikn->ni', known[stated], columns[:, stated])
        names = tuple(map(str, self.extras()))
        return Load(link, wrench, names, columns[:, ~stated] if names else None)
