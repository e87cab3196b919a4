# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a robot has picked up: one body at one link, from what rows say beyond the robot without it.

Which link of a submodel carries a mass is not identifiable; what the mass is and where its centre
lies from the link that is said to carry it is, because the robot without it is known [M; T
chapter 6].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.recursion.memory import shifted
from inertial_estimation.identification.row_space import RowSpace, wandered

Array = NDArray[np.float64]

LONGEST = 60.0
"""Time of rows that are used: further ones tell little more of it [s]."""
LIGHTEST = 0.02
"""Smaller masses are none [kg]."""


@dataclass(frozen=True, eq=False)
class Payload:
    """One body more than before."""

    link: str
    """The link that is said to carry it."""
    mass: float
    """[kg]; negative: the link lost so much."""
    center: Array
    """Centre of mass in the axes of that link, from its origin, shape (3,) [m]."""
    mass_deviation: float
    """Standard deviation [kg]."""
    center_deviation: Array
    """Standard deviations, shape (3,) [m]."""


class PayloadFit:
    """
    The change of one submodel since something was picked up or put down.

    The submodel without it goes on to be known better from the same rows, and offsets wander on:
    to hold both at what was found before the change would take their errors for the load.

    columns (10,).
    """

    def __init__(self, link: str, columns: NDArray[np.intp], without: Information) -> None:
        self._link, self._columns = link, columns
        both = np.hstack([without.R, np.zeros((without.n, len(columns)))])
        self._rows = Information.of(both, without.rho)
        self._energy = self._count = self._seconds = 0.0

    def wait(self, offsets: NDArray[np.intp], deviations: Array) -> None:
        """
        Let offsets wander.

        offsets (k,); deviations (k,) [N, Nm].
        """
        self._rows = wandered(self._rows, offsets, deviations)

    def shift_offsets(self, offsets: NDArray[np.intp], change: Array) -> None:
        """
        Go on as if more had been subtracted from all readings.

        offsets (k,); change (k,) [N, Nm].
        """
        self._rows = shifted(self._rows, offsets, change)

    def add(self, rows: Information, seconds: float) -> None:
        """
        Work rows in that were measured since.

        seconds [s].
        """
        if self._seconds >= LONGEST:
            return
        self._seconds += seconds
        before = self._rows.energy
        self._rows = self._rows.add(np.hstack([rows.R, rows.R[:, self._columns]]), rows.rho)
        self._energy += self._rows.energy - before + rows.energy
        self._count += rows.count

    def payload(self) -> Payload | None:
        """Return the body."""
        # The lowest rows of the triangle are free of all other unknowns.
        own = slice(-len(self._columns), None)
        space = RowSpace.of(self._rows.R[own, own])
        p, variances = space.solve(self._rows.rho[own]), space.variances()
        mass, first = float(p[0]), p[1:4]
        scale = np.sqrt(self._energy / max(self._count - space.rank, 1.0))
        deviations = scale * np.sqrt(variances)
        if not np.isfinite(deviations[:4]).all() or abs(mass) < max(LIGHTEST, deviations[0]):
            return None
        center = first / mass
        spread = np.hypot(deviations[1:4], center * deviations[0]) / abs(mass)
        return Payload(self._link, mass, center, float(deviations[0]), spread)
