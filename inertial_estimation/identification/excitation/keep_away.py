# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What it costs a motion to bring parts of a robot near each other, smooth and without end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError
from inertial_estimation.identification.excitation.barrier_descent import Value
from inertial_estimation.model.clearance import SelfClearance

Array = NDArray[np.float64]

ZONE = 0.05
"""Distance beyond the margin from which on nearness costs nothing [m]."""


class Nearest(NamedTuple):
    """The pair of links that come nearest to each other."""

    distance: float
    """Negative where they touch; infinite where nothing comes near [m]."""
    links: str
    """Both names, empty where nothing comes near."""
    instant: int
    """Row of the positions, -1 where nothing comes near."""


@dataclass(frozen=True, eq=False)
class KeepAway:
    """
    Keeps the links of a robot at a margin from each other.

    Of a pair at distance d at one of n instants ``log((d - margin) / zone)^2 / n`` is the cost.
    """

    clearance: SelfClearance
    margin: float
    """[m]"""

    def __post_init__(self) -> None:
        """Raise unless the margin makes sense."""
        if not (np.isfinite(self.margin) and self.margin >= 0.0):
            raise CallError(f'the clearance is {self.margin} m, expected zero or more')

    def penalty(self, positions: Array) -> Value:
        """Return what nearness costs; positions (n, n_joints) [rad or m]."""
        near = self.clearance.near(positions, self.margin + ZONE)
        left = near.distances - self.margin
        gradient = np.zeros_like(positions)
        if len(left) and left.min() <= 0.0:
            return Value(np.inf, gradient)
        inside = left < ZONE
        if not inside.any():
            return Value(0.0, gradient)
        few = near.of(inside)
        logs = np.log(left[inside] / ZONE)
        slopes = 2.0 * logs / left[inside] / len(positions)
        moved = self.clearance.slopes(positions, few)
        np.add.at(gradient, few.instants, slopes[:, None] * moved)
        return Value(float(np.sum(logs**2) / len(positions)), gradient)

    def nearest(self, positions: Array) -> Nearest:
        """Return who comes nearest; positions (n, n_joints)."""
        near = self.clearance.near(positions, self.margin + ZONE)
        if not len(near.distances):
            return Nearest(np.inf, '', -1)
        k = int(near.distances.argmin())
        names = self.clearance.names(int(near.pairs[k]))
        return Nearest(float(near.distances[k]), names, int(near.instants[k]))
