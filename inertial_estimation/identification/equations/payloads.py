# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Payloads that are carried in some logs and not in others.

Known parameters of a payload stand on the right-hand side of the equations. The weight of a known
mass is all that stands there if efforts are currents, and determines all gains [Gautier & Briot
2014]. Unknown ones have columns that are zero in samples without it.
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
from inertial_estimation.model.inertia import LARGEST_ARM, consistency_margin
from inertial_estimation.model.link_motions import Motion, Poses, cross
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Place = tuple[float, float, float]
Tensor = tuple[float, float, float, float, float, float]

PRIOR_ARM = 5.0
"""Standard deviation of the centre of mass of a payload; wide, as logs are long [m]."""
PRIOR_MASS = 100.0
"""Standard deviation of an unknown mass [kg]."""
_ROWS, _COLUMNS = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]


@dataclass(frozen=True)
class Payload:
    """A rigid body that is there at times."""

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
        subject = f"payload '{self.name}'"
        if self.mass is not None and not 0.0 < self.mass < np.inf:
            raise ConfigError(f'{subject}: mass is {self.mass:g} kg, expected more than zero')
        if self.mass is None and self.center_of_mass is not None:
            raise ConfigError(f'{subject}: center_of_mass needs mass')
        arm = 0.0 if self.center_of_mass is None else float(np.linalg.norm(self.center_of_mass))
        if not arm <= LARGEST_ARM:
            raise ConfigError(
                f'{subject}: center_of_mass is {arm:g} m from the frame, expected up to '
                f'{LARGEST_ARM:g}'
            )
        if self.inertia is not None and self.center_of_mass is None:
            raise ConfigError(f'{subject}: inertia needs center_of_mass')
        if self.inertia is not None and not consistency_margin(self.known()[None])[0] >= 0.0:
            raise ConfigError(f'{subject}: inertia is not physically consistent')

    def known(self) -> Array:
        """Return its parameters about the origin of its frame, (10,), NaN where unknown."""
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
        """Return its unknowns."""
        unknown = np.flatnonzero(np.isnan(self.known()))
        return tuple(Extra(self.name, OF_A_BODY[k]) for k in unknown)

    def scale(self, extra: Extra) -> float:
        """Return the standard deviation of the prior of one of its unknowns."""
        place = OF_A_BODY.index(extra.term)
        power = 0 if place == 0 else 1 if place < 4 else 2
        return (PRIOR_MASS if self.mass is None else self.mass) * PRIOR_ARM**power


class Load(NamedTuple):
    """What a payload adds to the net wrench of a submodel, at its root."""

    link: int
    """Link that carries it."""
    names: tuple[str, ...]
    """Of its unknowns."""
    slopes: Array
    """Regressor of these, shape (6, k, n)."""
    known: Array
    """Known part, shape (6, n) [N, Nm]."""

    def part(self, unknowns: Unknowns, axis: Array | int) -> tuple[Part, Array]:
        """Return columns and known part, (n,), along an axis, (n, 6), or of one component."""
        columns = unknowns.columns(self.names)
        if isinstance(axis, int):
            return Part(columns, self.slopes[axis]), self.known[axis]
        values = np.einsum('ni,ikn->kn', axis, self.slopes)
        return Part(columns, values), np.einsum('ni,in->n', axis, self.known)


class Payloads:
    """All payloads of a robot."""

    def __init__(self, robot: Robot, payloads: Sequence[Payload]) -> None:
        names = [payload.name for payload in payloads]
        sensors = (sensor.name for sensor in robot.ft_sensors)
        taken = {*robot.link_names, *robot.joint_names, *sensors}
        for name in names:
            if name in taken or names.count(name) > 1:
                raise ConfigError(f"payload '{name}': the name is in use")
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
        """Return what payloads add to a submodel; carried (n, n_payloads), 1 where they are."""
        found = []
        for payload, (link, pose), there in zip(self._all, self._places, carried.T, strict=True):
            if link not in placed:
                continue
            moved = {0: fixed_at(placed[link], pose)}
            columns = there * wrench_columns((0,), moved, [_moved(motions[link], pose)])
            known = payload.known()
            stated = np.isfinite(known)
            weight = np.einsum('k,ikn->in', known[stated], columns[:, stated])
            names = tuple(map(str, payload.extras()))
            found.append(Load(link, names, columns[:, ~stated], weight))
        return found

    def in_turn(self, n: int) -> Array:
        """Return samples with none, then each of the payloads, over and over, (n, n_payloads)."""
        turns = np.arange(n) % (len(self._all) + 1)
        return np.asarray(turns[:, None] == 1 + np.arange(len(self._all)), dtype=np.float64)


def _moved(motion: Motion, L_H_F: Array) -> Motion:
    """Return the motion of a frame that is fixed to a link."""
    R, p = L_H_F[:3, :3], L_H_F[:3, 3]
    w, dw, a = motion
    at_origin = a + cross(dw, p) + cross(w, cross(w, p))
    return Motion(w @ R, dw @ R, at_origin @ R)
