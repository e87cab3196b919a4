# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How calibrations of the synthetic leg went, as T Tables 5.1 to 5.3 and as one table of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.calibration.leg_robot import FOOT, LEG, Place
from inertial_estimation.table import Table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Validation:
    """What two matrices say of a data set that was not used."""

    data_set: str
    added: float
    """[kg]"""
    centre: Array
    """Of what was added, shape (3,) [m]."""
    semiaxes: Array
    """Of the forces by the matrix that was found and by the workshop's, shape (2, 3) [N]."""
    masses: Array
    """That were added, the same way, shape (2,) [kg]."""
    centres: Array
    """Of these, shape (2, 3) [m]."""


@dataclass(frozen=True, eq=False)
class Score:
    """How the calibration of one sensor went."""

    serial: str
    place: Place
    error: float
    """
    Of the matrix times the inverse of the true one, largest entry off the identity; forces in N,
    moments in Nm per 0.1 m.
    """
    workshop_error: float
    normalised: float
    """Root mean square of the errors of the matrix over their standard deviations."""
    body_error: float
    """Of the mass of the leg [kg]."""
    validations: tuple[Validation, ...]

    @property
    def mass_errors(self) -> Array:
        """Of the masses that were added, by both matrices, shape (n, 2) [kg]."""
        return np.array([one.masses - one.added for one in self.validations])

    @property
    def centre_errors(self) -> Array:
        """Of their centres, shape (n, 2) [m]."""
        with_mass = [one for one in self.validations if one.added]
        return np.array([np.linalg.norm(one.centres - one.centre, axis=1) for one in with_mass])


def axes_table(scores: Sequence[Score]) -> Table:
    """Return semi-axes of the ellipsoids of forces, as T Table 5.1."""
    rows = tuple(
        (one.place.name, v.data_set, f'{v.added:g}', *_pair(v.semiaxes, 1.0, 1))
        for one in scores
        for v in one.validations
    )
    return Table(
        'As T Table 5.1: semi-axes of the ellipsoid of forces [N]',
        ('sensor', 'data set', 'added [kg]', 'calibrated', 'workshop'),
        rows,
    )


def mass_table(scores: Sequence[Score]) -> Table:
    """Return masses that were added, as T Table 5.2."""
    rows = tuple(
        (one.place.name, v.data_set, f'{v.added:g}', *(f'{mass:.3f}' for mass in v.masses))
        for one in scores
        for v in one.validations
    )
    return Table(
        'As T Table 5.2: mass that was added [kg]',
        ('sensor', 'data set', 'true', 'calibrated', 'workshop'),
        rows,
    )


def centre_table(scores: Sequence[Score]) -> Table:
    """Return the centres of these masses, as T Table 5.3."""
    rows = tuple(
        (one.place.name, v.data_set, _numbers(v.centre, 100.0, 1), *_pair(v.centres, 100.0, 1))
        for one in scores
        for v in one.validations
        if v.added
    )
    return Table(
        'As T Table 5.3: centre of the mass that was added [cm]',
        ('sensor', 'data set', 'true', 'calibrated', 'workshop'),
        rows,
    )


def summary(scores: Sequence[Score]) -> Table:
    """Return how it went with all sensors, at each place."""
    rows = []
    for place in (FOOT, LEG):
        here = [one for one in scores if one.place is place]
        masses = np.abs(np.array([one.mass_errors for one in here]))
        centres = np.array([one.centre_errors for one in here])
        for k, name in enumerate(('calibrated', 'workshop')):
            matrix = [one.workshop_error if k else one.error for one in here]
            rows.append((
                f'{place.name}, {name}',
                str(len(here)),
                f'{np.median(matrix):.3f}', f'{max(matrix):.3f}',
                f'{np.median(masses[..., k]):.3f}', f'{masses[..., k].max():.3f}',
                f'{100 * np.median(centres[..., k]):.1f}', f'{100 * centres[..., k].max():.1f}',
                '' if k else f'{np.sqrt(np.mean([one.normalised**2 for one in here])):.2f}',
            ))  # fmt: skip
    return Table(
        'All sensors: errors of matrices (largest entry of C times the inverse of the true one, '
        'less the identity; N, and Nm per 0.1 m), of masses and of their centres',
        (
            'place, matrix', 'sensors', 'matrix, median', 'worst', 'mass, median [kg]', 'worst',
            'centre, median [cm]', 'worst', 'matrix over its deviations, rms',
        ),
        tuple(rows),
    )  # fmt: skip


def _pair(values: Array, factor: float, digits: int) -> list[str]:
    """Return the vectors of both matrices as text."""
    return [_numbers(one, factor, digits) for one in values]


def _numbers(values: Array, factor: float, digits: int) -> str:
    """Return a vector as text."""
    return '  '.join(f'{factor * x + 0.0:.{digits}f}' for x in values)
