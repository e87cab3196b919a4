# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Unknowns of the equations: ten parameters of each link, then friction, offsets and the like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import INERTIAL


class Term(str, Enum):
    """Unknown of a joint, a sensor or a payload; its value names it."""

    VISCOUS = 'viscous'
    """Friction by velocity [N m s/rad or N s/m]."""
    COULOMB = 'coulomb'
    """Friction by the sign of the velocity [N m or N]."""
    OFFSET = 'offset'
    """Constant effort [N m or N]."""
    DRIVE_INERTIA = 'drive_inertia'
    """Inertia of the drive on the joint's side [kg m^2 or kg]."""
    DRIVE_GAIN = 'drive_gain'
    """Torque over what the drive reports, e.g. a current [N m/A]."""
    # Offset of an FT sensor in its frame [N, Nm].
    FORCE_X = 'force_x'
    FORCE_Y = 'force_y'
    FORCE_Z = 'force_z'
    MOMENT_X = 'moment_x'
    MOMENT_Y = 'moment_y'
    MOMENT_Z = 'moment_z'
    # Of a payload about the origin of its frame [kg, kg m, kg m^2].
    MASS = 'm'
    MC_X = 'mc_x'
    MC_Y = 'mc_y'
    MC_Z = 'mc_z'
    IXX = 'Ixx'
    IXY = 'Ixy'
    IYY = 'Iyy'
    IXZ = 'Ixz'
    IYZ = 'Iyz'
    IZZ = 'Izz'


OF_A_JOINT = (Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA)
OF_A_COUPLING = (Term.VISCOUS, Term.COULOMB, Term.DRIVE_INERTIA)
"""Of a drive that turns with the sum of two joint velocities."""
FT_OFFSET = tuple(Term)[5:11]
OF_A_BODY = tuple(Term)[11:]
"""Parameters of a payload, in the order of `INERTIAL`."""


@dataclass(frozen=True)
class Extra:
    """One unknown that is no inertial parameter of a link."""

    of: str
    """Joint, FT sensor or payload."""
    term: Term

    def __str__(self) -> str:
        """Return the name of its column."""
        return f'{self.of}.{self.term.value}'


@dataclass(frozen=True)
class Unknowns:
    """
    The columns of a regressor.

    Attributes
    ----------
    links : tuple of str
        Links with ten inertial parameters each, which are the first columns.
    extras : tuple of Extra
        The other columns: friction, offsets and the like.

    Raises
    ------
    ModelError
        If a link is named twice.

    """

    links: tuple[str, ...]
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        if twice := {one for one in self.links if self.links.count(one) > 1}:
            raise ModelError(f'links are there twice: {", ".join(map(str, sorted(twice)))}')

    def __len__(self) -> int:
        """Return the number of columns."""
        return self.n_inertial + len(self.extras)

    @property
    def n_inertial(self) -> int:
        """Columns that are inertial parameters; they come first, ten for each link."""
        return len(INERTIAL) * len(self.links)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each column: ``<link>.<parameter>`` or ``<joint or sensor>.<term>``."""
        inertial = (f'{link}.{parameter}' for link in self.links for parameter in INERTIAL)
        return (*inertial, *map(str, self.extras))

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return parameters, (..., n_links, 10), and extras, (..., n_extras), of (..., n)."""
        parameters, extras = np.split(x, [self.n_inertial], axis=-1)
        return parameters.reshape(*x.shape[:-1], len(self.links), len(INERTIAL)), extras

    def join(self, parameters: Array, extras: Array | None = None) -> Array:
        """Return the vector of unknowns, (n,); `split` undoes it. Default of extras: zero."""
        rest = np.zeros(len(self.extras)) if extras is None else extras
        return np.concatenate([parameters.reshape(-1), rest])

    def columns(self, names: Iterable[str]) -> Indices:
        """Return the columns of some names."""
        return np.array([self.names.index(name) for name in names], dtype=np.intp)


def gain_columns(unknowns: Unknowns) -> Indices:
    """Return the columns of the gains of drives."""
    gains = [one.term is Term.DRIVE_GAIN for one in unknowns.extras]
    return unknowns.n_inertial + np.flatnonzero(gains)
