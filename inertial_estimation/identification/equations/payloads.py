# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Payloads that are carried in some logs and not in others.

A known mass stands on the right-hand side of the equations. Its weight is all that stands there if
efforts are currents, and determines all gains [Gautier & Briot 2014]. Unknown parameters have
columns that are zero in samples without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.wrenches import Load, fixed_at, wrench_columns
from inertial_estimation.identification.unknowns import OF_A_BODY, Extra, Term
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

    def __post_init__(self) -> None:
        if self.mass is not None and not 0.0 < self.mass < np.inf:
            wrong = f'mass is {self.mass:g} kg, expected more than zero'
            raise ConfigError(f"payload '{self.name}': {wrong}")

    def extras(self) -> tuple[Extra, ...]:
        """Return its unknowns, all ten parameters but a known mass."""
        terms = OF_A_BODY if self.mass is None else OF_A_BODY[1:]
        return tuple(Extra(self.name, term) for term in terms)

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
        names = tuple(map(str, self.extras()))
        if self.mass is None:
            return Load(link, np.zeros((len(there), 6)), names, columns)
        return Load(link, -self.mass * columns[:, 0].T, names, columns[:, 1:])
