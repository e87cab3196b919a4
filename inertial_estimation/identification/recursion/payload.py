# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identify a payload: the change of one link beyond the robot without it.

Which link of a submodel carries a mass is not identifiable. Its mass, and its centre of mass with
respect to a given link, are, since the robot without it is known [M; T chapter 6].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import RowSpace, wandered

MAX_SECONDS = 60.0
"""Time of equations that are used: more would hardly make it more accurate [s]."""
MIN_MASS = 0.02
"""Smaller changes are not reported [kg]."""


class Payload(NamedTuple):
    """A change of the parameters of one link, with standard deviations."""

    link: str
    """Link that is assumed to carry it."""
    mass: float
    """[kg]; negative: the link became lighter."""
    center: Array
    """Centre of mass in the frame of that link, shape (3,) [m]."""
    mass_deviation: float
    center_deviation: Array


class PayloadFit:
    """
    Least squares of the change of one link since it was detected.

    The other unknowns stay unknowns: with them held at their values before the change, their
    errors would be attributed to the payload.
    """

    def __init__(self, link: str, columns: Indices, without: Information) -> None:
        self._link, self._columns = link, columns
        both = np.hstack([without.R, np.zeros((without.n, len(columns)))])
        self._information = Information.of(both, without.rho)
        self._energy = self._count = self._seconds = 0.0

    def drift(self, offsets: Indices, deviations: Array) -> None:
        """Let offsets walk randomly."""
        self._information = wandered(self._information, offsets, deviations)

    def add(self, rows: Information, seconds: float) -> None:
        """Add whitened equations measured since."""
        if self._seconds >= MAX_SECONDS:
            return
        self._seconds += seconds
        before = self._information.energy
        stacked = np.hstack([rows.R, rows.R[:, self._columns]])
        self._information = self._information.add(stacked, rows.rho)
        self._energy += self._information.energy - before + rows.energy
        self._count += rows.count

    def payload(self) -> Payload | None:
        """Return the payload, if it is determined and larger than its deviation."""
        # The lowest rows of the triangle are free of all other unknowns.
        own = slice(-len(self._columns), None)
        space = RowSpace.of(self._information.R[own, own])
        p, variances = space.solve(self._information.rho[own]), space.variances()
        scale = np.sqrt(self._energy / max(self._count - space.rank, 1.0))
        deviations, mass = scale * np.sqrt(variances), float(p[0])
        if not np.isfinite(deviations[:4]).all() or abs(mass) < max(MIN_MASS, deviations[0]):
            return None
        center = p[1:4] / mass
        # The errors of mass and first moment are correlated.
        to_center = np.column_stack([-center, np.eye(3)]) / mass
        spread = scale * np.linalg.norm(to_center @ space.inverse_root()[:4], axis=1)
        return Payload(self._link, mass, center, float(deviations[0]), spread)
