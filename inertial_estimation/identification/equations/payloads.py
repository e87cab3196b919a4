# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bodies that a robot carries while some logs are recorded and not while others are.

What is known of a payload stands on the right-hand side of the equations. The weight of a known
mass is the only thing there if efforts are currents, and tells all gains [Gautier & Briot 2014].
What is unknown of its ten parameters has columns that are zero at instants at which it is not
there; if the efforts are torques, that may be the mass: so a payload is weighed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.sparse_equations import Part
from inertial_estimation.identification.equations.wrenches import fixed_at, wrench_columns
from inertial_estimation.identification.unknowns import OF_A_BODY, Extra, Unknowns
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.link_motions import Motion, Poses, cross
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.usable_parameters import LARGEST_ARM

Array = NDArray[np.float64]
Place = tuple[float, float, float]
Tensor = tuple[float, float, float, float, float, float]

REACH = 5.0
"""
Lever of the weak prior of what is not known of a payload [m]: wide, since a prior weighs more
against the noise of a mean of more rows, and payloads hardly ever are where frames are.
"""

HEAVY = 100.0
"""Of the weak prior of an unknown mass [kg]."""


@dataclass(frozen=True)
class Payload:
    """A body that is there at times."""

    name: str
    frame: str
    """That it is fixed to."""
    mass: float | None = None
    """[kg]; None: unknown."""
    center_of_mass: Place | None = None
    """In that frame [m]; None: unknown."""
    inertia: Tensor | None = None
    """
    Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the centre of mass in the axes of the frame [kg m^2];
    None: unknown.
    """

    def __post_init__(self) -> None:
        """Raise unless it could be a body."""
        if self.mass is not None and not (np.isfinite(self.mass) and self.mass > 0.0):
            raise ConfigError(
                f"the mass of payload '{self.name}' is {self.mass:g} kg, expected more than zero"
            )
        if self.mass is None and self.center_of_mass is not None:
            raise ConfigError(
                f"payload '{self.name}' has a centre of mass, which says nothing while its mass "
                'is unknown: state the mass, or leave both out'
            )
        arm = 0.0 if self.center_of_mass is None else float(np.linalg.norm(self.center_of_mass))
        if not arm <= LARGEST_ARM:
            raise ConfigError(
                f"payload '{self.name}' has its centre of mass {arm:g} m off the origin of its "
                f'frame, expected up to {LARGEST_ARM:g}: state it in m'
            )
        if self.inertia is None:
            return
        if self.center_of_mass is None:
            raise ConfigError(
                f"payload '{self.name}' has an inertia about a centre of mass that is not known: "
                'state center_of_mass too'
            )
        if not consistency_margin(self.known()[None])[0] >= 0.0:
            raise ConfigError(
                f"no body could be like payload '{self.name}': the principal moments of its "
                'inertia are negative or break the triangle inequality'
            )

    def known(self) -> Array:
        """
        Return its parameters as far as they are known.

        Returns (10,).
        """
        found = np.full(10, np.nan)
        if self.mass is None:
            return found
        found[0] = self.mass
        if self.center_of_mass is not None:
            c = np.array(self.center_of_mass)
            found[1:4] = self.mass * c
            if self.inertia is not None:
                shifted = self.mass * (c @ c * np.eye(3) - np.outer(c, c))
                found[4:] = np.array(self.inertia) + shifted[_ROWS, _COLUMNS]
        return found

    def extras(self) -> tuple[Extra, ...]:
        """Return its unknowns, as a tuple of Extra."""
        unknown = np.flatnonzero(np.isnan(self.known()))
        return tuple(Extra(self.name, OF_A_BODY[k]) for k in unknown)

    def scale(self, extra: Extra) -> float:
        """Return how far from zero one of its unknowns may well be."""
        place = OF_A_BODY.index(extra.term)
        power = 0 if place == 0 else 1 if place < 4 else 2
        return (HEAVY if self.mass is None else self.mass) * REACH**power


_ROWS, _COLUMNS = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]


class Load(NamedTuple):
    """What a payload adds to the net wrench of a submodel, about the origin of its root link."""

    link: int
    """Index of the link that carries it."""
    names: tuple[str, ...]
    """Of its unknowns."""
    slopes: Array
    """Wrench by unknown, shape (6, k, n)."""
    known: Array
    """What is known of its wrench, shape (6, n) [N, Nm]."""

    def component(self, unknowns: Unknowns, component: int) -> tuple[Part, Array]:
        """
        Return the columns of one component, and what is known of it.

        Returns known (n,).
        """
        columns = unknowns.columns(self.names)
        return Part(columns, self.slopes[component]), self.known[component]

    def along(self, unknowns: Unknowns, axis: Array) -> tuple[Part, Array]:
        """
        Return the columns of the effort of a joint, and what is known of it.

        axis (n, 6); returns known (n,).
        """
        columns = unknowns.columns(self.names)
        values = np.einsum('ni,ikn->kn', axis, self.slopes)
        return Part(columns, values), np.einsum('ni,in->n', axis, self.known)


class Payloads:
    """What a robot carries, and where."""

    def __init__(self, robot: Robot, payloads: Sequence[Payload]) -> None:
        names = [payload.name for payload in payloads]
        taken = {
            **dict.fromkeys(robot.link_names, 'a link'),
            **dict.fromkeys(robot.joint_names, 'a joint'),
            **dict.fromkeys((sensor.name for sensor in robot.ft_sensors), 'an FT sensor'),
        }
        for name in names:
            if name in taken or names.count(name) > 1:
                other = taken.get(name, 'another payload')
                raise ConfigError(
                    f"payload '{name}' has the name of {other}, whose unknowns it would take: "
                    'give it another one'
                )
        self._all = tuple(payloads)
        self._places = [
            robot.frame(payload.frame, f"payload '{payload.name}' is fixed to it")
            for payload in payloads
        ]

    def on(self, links: Sequence[int]) -> tuple[Payload, ...]:
        """Return the payloads that some links carry."""
        both = zip(self._all, self._places, strict=True)
        return tuple(payload for payload, (link, _) in both if link in links)

    def loads(
        self, placed: Mapping[int, Poses], motions: Sequence[Motion], carried: Array
    ) -> list[Load]:
        """
        Return what payloads add to the wrench of a submodel.

        carried (n, n_payloads).
        """
        found = []
        for payload, (link, pose), there in zip(self._all, self._places, carried.T, strict=True):
            if link not in placed:
                continue
            moved = {0: fixed_at(placed[link], pose)}
            columns = there * wrench_columns((0,), moved, [_moved(motions[link], pose)])
            known = payload.known()
            told = np.isfinite(known)
            weight = np.einsum('k,ikn->in', known[told], columns[:, told])
            names = tuple(map(str, payload.extras()))
            found.append(Load(link, names, columns[:, ~told], weight))
        return found

    def in_turn(self, n: int) -> Array:
        """
        Return that none, then each of the payloads is carried, over and over.

        Returns (n, n_payloads).
        """
        turns = np.arange(n) % (len(self._all) + 1)
        return np.asarray(turns[:, None] == 1 + np.arange(len(self._all)), dtype=np.float64)


def _moved(motion: Motion, L_H_F: Array) -> Motion:
    """Return the motion of a frame that is fixed to a link."""
    R, p = L_H_F[:3, :3], L_H_F[:3, 3]
    w, dw, a = motion
    at_origin = a + cross(dw, p) + cross(w, cross(w, p))
    return Motion(w @ R, dw @ R, at_origin @ R)
