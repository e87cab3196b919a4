# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a vector of unknowns holds: ten parameters of each link, then friction and the like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, NameNotFound, ShapeError

Array = NDArray[np.float64]

INERTIAL = ('m', 'mc_x', 'mc_y', 'mc_z', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
"""Inertial parameters of a link about its origin in its axes [kg, kg m, kg m^2]."""
INERTIAL_UNITS = ('kg', *('kg m',) * 3, *('kg m^2',) * 6)


class Term(str, Enum):
    """What a joint or a sensor adds to the equations beside inertia; each value names it."""

    VISCOUS = 'viscous'
    """Friction against the velocity, times it [N m s/rad or N s/m]."""
    COULOMB = 'coulomb'
    """Friction against the direction of motion [N m or N]."""
    OFFSET = 'offset'
    """Constant effort [N m or N]."""
    DRIVE_INERTIA = 'drive_inertia'
    """Inertia of the drive on the joint's side [kg m^2 or kg]."""
    DRIVE_GAIN = 'drive_gain'
    """Torque over what the drive reports, say over a current [N m/A]."""
    FORCE_X = 'force_x'
    """Offset of an FT sensor, in its frame [N]; likewise below."""
    FORCE_Y = 'force_y'
    FORCE_Z = 'force_z'
    MOMENT_X = 'moment_x'
    """Offset of an FT sensor, in its frame [Nm]; likewise below."""
    MOMENT_Y = 'moment_y'
    MOMENT_Z = 'moment_z'
    MASS = 'm'
    """Mass of a payload [kg]."""
    MC_X = 'mc_x'
    """First moment of a payload, about the origin of its frame [kg m]; likewise below."""
    MC_Y = 'mc_y'
    MC_Z = 'mc_z'
    IXX = 'Ixx'
    """Inertia of a payload about the origin of its frame [kg m^2]; likewise below."""
    IXY = 'Ixy'
    IYY = 'Iyy'
    IXZ = 'Ixz'
    IYZ = 'Iyz'
    IZZ = 'Izz'


FT_OFFSET = tuple(Term)[5:11]
OF_A_BODY = tuple(Term)[11:]
"""Parameters of a body, in the order of `INERTIAL`."""


@dataclass(frozen=True)
class Extra:
    """One unknown that is no inertial parameter."""

    of: str
    """The joint or FT sensor."""
    term: Term

    def __post_init__(self) -> None:
        """Raise unless the term is one."""
        if not isinstance(self.term, Term):
            raise ModelError(f"the term of '{self.of}' must be a Term, not {self.term!r}")

    def __str__(self) -> str:
        """Return the name of its column."""
        return f'{self.of}.{self.term.value}'


@dataclass(frozen=True)
class Unknowns:
    """The columns of a regressor."""

    links: tuple[str, ...]
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        """Raise unless these are names, each of which stands for one thing."""
        for name, one in (('links', self.links), ('extras', self.extras)):
            if not isinstance(one, tuple):
                raise ModelError(f"'{name}' must be a tuple, not {type(one).__name__}")
        twice = [one for one in dict.fromkeys(self.links) if self.links.count(one) > 1]
        if twice:
            raise ModelError(f'these links are there twice: {", ".join(map(str, twice))}')

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
        """
        Return the inertial parameters and the other unknowns of a vector.

        x (..., n); returns parameters (..., n_links, 10); extras (..., n_extras).
        """
        if x.shape[-1] != len(self):
            raise ShapeError('x', (len(self),), x.shape, 'one value for each unknown')
        inertial = x[..., : self.n_inertial]
        return (
            inertial.reshape(*x.shape[:-1], len(self.links), len(INERTIAL)),
            x[..., self.n_inertial :],
        )

    def join(self, parameters: Array, extras: Array | None = None) -> Array:
        """
        Return the vector of unknowns; `split` undoes it.

        parameters (n_links, 10); extras (n_extras,); returns (n,).
        """
        wanted = (len(self.links), len(INERTIAL))
        if parameters.shape != wanted:
            raise ShapeError('parameters', wanted, parameters.shape)
        rest = np.zeros(len(self.extras)) if extras is None else extras
        if rest.shape != (len(self.extras),):
            raise ShapeError('extras', (len(self.extras),), rest.shape)
        return np.concatenate([parameters.reshape(-1), rest])

    def columns(self, names: Iterable[str]) -> NDArray[np.intp]:
        """Return the columns of some names."""
        index = {name: k for k, name in enumerate(self.names)}
        found = []
        for name in names:
            if name not in index:
                raise NameNotFound('unknown', name, self.names)
            found.append(index[name])
        return np.array(found, dtype=np.intp)


def gain_columns(unknowns: Unknowns) -> NDArray[np.intp]:
    """Return the columns of the gains of drives."""
    n = unknowns.n_inertial
    found = [n + k for k, one in enumerate(unknowns.extras) if one.term is Term.DRIVE_GAIN]
    return np.array(found, dtype=np.intp)
