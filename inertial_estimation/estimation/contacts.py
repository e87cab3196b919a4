# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Places where the environment acts on the robot, and its unknowns [T sections 4.5.2, 4.5.3]."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum, IntFlag
from functools import cached_property
from math import copysign, cos, hypot, pi, sin

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError

ORIGIN = (0.0, 0.0, 0.0)
Z_AXIS = (0.0, 0.0, 1.0)
UNIT = 1e-3
"""Error of the length of a unit vector, of which a file states a few digits."""
MIN_FRICTION = 0.02
"""Steel on ice has 0.03; forces that are limited to less count as undetermined."""


class Limit(IntFlag):
    """Limits that hold a contact which only pushes; 0: none."""

    PUSH = 1
    """It would pull."""
    FRICTION = 2
    """It would slide."""
    EDGE = 4
    """Its centre of pressure would leave the rectangle."""
    TWIST = 8
    """It would turn about its normal."""


_EDGES = 8
"""Of the cone inside the one of friction."""
_FACETS = [(2 * k + 1) * pi / _EDGES for k in range(_EDGES)]
# Unknowns over their scales are at most the normal force: the tangential ones, then the moments.
_CONE = (
    (Limit.PUSH, Z_AXIS),
    *((Limit.FRICTION, (cos(a), sin(a), cos(pi / _EDGES))) for a in _FACETS),
)
_SURFACE = (
    *((limit, (*row, 0.0, 0.0, 0.0)) for limit, row in _CONE),
    *((Limit.EDGE, (*Z_AXIS, sign, 0.0, 0.0)) for sign in (1.0, -1.0)),
    *((Limit.EDGE, (*Z_AXIS, 0.0, sign, 0.0)) for sign in (1.0, -1.0)),
    *((Limit.TWIST, (*Z_AXIS, 0.0, 0.0, sign)) for sign in (1.0, -1.0)),
)


class ContactKind(str, Enum):
    """
    The unknowns of a contact, and what limits them; a kind is equal to its name.

    Attributes
    ----------
    unknowns : int
        Their number.
    has_point : bool
        True if they depend on the point of the contact.
    limits : tuple of (Limit, tuple of float)
        Inequalities ``row . unknowns >= 0``, the unknowns over their scales.

    """

    unknowns: int
    has_point: bool
    limits: tuple[tuple[Limit, tuple[float, ...]], ...]
    WRENCH = 'wrench', 6
    """Force and torque."""
    FORCE = 'force', 3, True
    """A pure force at the point of the contact."""
    AXIAL_FORCE = 'axial_force', 1, True
    """A pure force at the point along the direction of the contact, of either sign."""
    UNILATERAL = 'unilateral', 1, True, ((Limit.PUSH, (1.0,)),)
    """A pure force at the point that only pushes, along the direction."""
    FRICTION_CONE = 'friction_cone', 3, True, _CONE
    """A pure force at the point that pushes along the direction, within a cone of friction."""
    SURFACE = 'surface', 6, True, _SURFACE
    """A rectangle about the point, such as a sole, that pushes along the direction and rubs."""
    KNOWN = 'known', 0
    """Nothing: the contact states its wrench."""

    def __new__(
        cls,
        name: str,
        unknowns: int = 0,
        has_point: bool = False,
        limits: tuple[tuple[Limit, tuple[float, ...]], ...] = (),
    ) -> ContactKind:
        kind = str.__new__(cls, name)
        kind._value_, kind.unknowns = name, unknowns
        kind.has_point, kind.limits = has_point, limits
        return kind

    def __str__(self) -> str:
        return str(self.value)

    @property
    def limit_rows(self) -> Array:
        """The factors of the unknowns in the limits, shape (n_limits, unknowns)."""
        return np.array([row for _, row in self.limits]).reshape(-1, self.unknowns)

    def basis(self, point: tuple[float, ...], direction: tuple[float, ...]) -> Array:
        """
        Return the wrenches of unit unknowns, (6, unknowns), in and about the contact's frame.

        point, direction (3,): those of the contact.
        """
        if self is ContactKind.WRENCH:
            return np.eye(6)
        forces = np.eye(3, self.unknowns)
        if self.unknowns == 1:
            forces[:, 0] = direction
        elif self.limits:
            forces = rotation_to(direction)
        x, y, z = point
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        columns = np.concatenate([forces, hat @ forces])
        if self is ContactKind.SURFACE:
            columns = np.hstack([columns, np.concatenate([np.zeros((3, 3)), forces])])
        return columns


def rotation_to(direction: tuple[float, ...]) -> Array:
    """Return the rotation (3, 3) whose third axis is a unit vector [Duff et al. 2017]."""
    x, y, z = direction
    sign = copysign(1.0, z)
    a = -1.0 / (sign + z)
    b = x * y * a
    axes = (1.0 + sign * x * x * a, sign * b, -sign * x), (b, sign + y * y * a, -y), direction
    return np.array(axes).T


@dataclass(frozen=True)
class Contact:
    """
    One place where the environment acts on a link.

    Its wrench is expressed in and about the origin of `frame`, environment on robot.

    Parameters
    ----------
    frame : str
        Frame of the robot.
    kind : ContactKind or str
        What is unknown.
    point : tuple of float
        Where a force acts, in the frame [m].
    direction : tuple of float
        In the frame: direction of an axial force, normalised here, or the unit normal along which
        the environment pushes.
    wrench : tuple of float
        The known wrench [force; torque], in and about the frame [N, Nm].
    name : str
        Name in outputs; the frame's name by default.
    friction : float
        Coefficient of friction of a friction cone or surface.
    size : tuple of float
        Edges of the rectangle of a surface about the point, along x and y of the frame if the
        direction is along z [m].

    Raises
    ------
    ModelError
        If the kind is unknown, a number is not finite, the direction is zero or no unit normal,
        the friction is below `MIN_FRICTION` or the rectangle is empty where the kind needs them.
    ShapeError
        If point, direction, wrench or size has the wrong length.

    """

    frame: str
    kind: ContactKind = ContactKind.WRENCH
    point: tuple[float, ...] = ORIGIN
    direction: tuple[float, ...] = Z_AXIS
    wrench: tuple[float, ...] = (0.0,) * 6
    name: str = ''
    friction: float = 0.0
    size: tuple[float, ...] = (0.0, 0.0)
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if not isinstance(self.frame, str) or not isinstance(self.name, str):
            raise ModelError(f"frame '{self.frame}' or name '{self.name}' of a contact is no text")
        kind = next((kind for kind in ContactKind if kind == self.kind), None)
        if kind is None:
            kinds = ', '.join(ContactKind)
            raise ModelError(f"contact '{self.frame}': kind '{self.kind}' is none of {kinds}")
        object.__setattr__(self, 'kind', kind)
        sizes = {'point': 3, 'direction': 3, 'wrench': 6, 'size': 2, 'friction': 1}
        for key, size in sizes.items():
            given = getattr(self, key)
            try:
                values = tuple(float(value) for value in (given if size > 1 else (given,)))
            except (TypeError, ValueError):
                values = (np.nan,) * size
            if len(values) != size:
                raise ShapeError(f'{key} of contact {self.frame}', (size,), (len(values),))
            if not np.isfinite(values).all():
                raise ModelError(f"contact '{self.frame}': {key} {given} is not finite numbers")
            object.__setattr__(self, key, values if size > 1 else values[0])
        length = float(np.linalg.norm(self.direction))
        if length == 0.0:
            raise ModelError(f"contact '{self.frame}': the direction is zero")
        object.__setattr__(self, 'direction', tuple(value / length for value in self.direction))
        needed = {limit for limit, _ in kind.limits}
        least = f'{MIN_FRICTION:g} or more'
        for limit, what, value, is_good, expected in (
            (Limit.PUSH, 'length of the direction', length, abs(length - 1.0) <= UNIT, '1'),
            (Limit.FRICTION, 'friction', self.friction, self.friction >= MIN_FRICTION, least),
            (Limit.EDGE, 'size', self.size, min(self.size) > 0.0, 'positive'),
        ):
            if limit in needed and not is_good:
                fault = f'{value}, expected {expected}' if np.any(value) else 'missing or zero'
                raise ModelError(f"contact '{self.frame}' of kind {kind}: {what} is {fault}")
        object.__setattr__(self, 'name', self.name or self.frame)
        object.__setattr__(self, '_hash', hash(self._key()))

    def _key(self) -> tuple[object, ...]:
        return (
            self.frame, self.kind, self.point, self.direction, self.wrench, self.name,
            self.friction, self.size,
        )  # fmt: skip

    def __hash__(self) -> int:
        """Return the hash computed once: contacts are looked up at every step."""
        return self._hash

    def moved(
        self, point: tuple[float, ...], direction: tuple[float, ...] | None = None
    ) -> Contact:
        """Return the same contact elsewhere (3,) [m]; unchecked, faster than `replace`."""
        moved = object.__new__(Contact)
        moved.__dict__.update(self.__dict__, point=point, direction=direction or self.direction)
        moved.__dict__['_hash'] = hash(moved._key())
        return moved

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return self.kind.unknowns

    @cached_property
    def at_origin(self) -> Contact:
        """The same contact at the origin of its frame along z, for which plans are made."""
        is_there = self.point == ORIGIN and self.direction == Z_AXIS
        return self if is_there else replace(self, point=ORIGIN, direction=Z_AXIS)

    def scales(self, length_scale: float) -> Array:
        """
        Return the sizes of the unknowns that count alike, (unknowns,): 1 N, and moments.

        Of contacts that push: what 1 N of normal force holds at most by friction and rectangle.
        """
        if not self.kind.limits:
            return np.repeat([1.0, length_scale], 3)[: self.unknowns]
        if self.unknowns == 1:
            return np.ones(1)
        half_x, half_y = 0.5 * self.size[0], 0.5 * self.size[1]
        twist = self.friction * hypot(half_x, half_y)
        scales = np.array([self.friction, self.friction, 1.0, half_y, half_x, twist])
        return scales[: self.unknowns]

    def basis(self) -> Array:
        """Return the wrenches of unit unknowns in and about the frame, shape (6, unknowns)."""
        return self.kind.basis(self.point, self.direction)


def check_contacts(given: object) -> tuple[Contact, ...]:
    """Return contacts as a tuple."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ModelError(f"'contacts' is {given!r}, expected a list of Contact")
    contacts = tuple(given)
    for contact in contacts:
        if not isinstance(contact, Contact):
            raise ModelError(f"'contacts' holds {contact!r}, expected Contact")
    return contacts


@dataclass(frozen=True)
class ContactSet:
    """
    The contacts of one instant.

    Parameters
    ----------
    contacts : tuple of Contact
        In the order of the results.
    assumed : tuple of bool
        True for defaults: they give way to a contact that is reported in their submodel, and
        where submodels merge to the first of them, unless both only push.

    """

    contacts: tuple[Contact, ...]
    assumed: tuple[bool, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, '_hash', hash((self.contacts, self.assumed)))

    def __hash__(self) -> int:
        """Return the hash computed once: sets are looked up at every step."""
        return self._hash

    @classmethod
    def reported(cls, contacts: Iterable[Contact]) -> ContactSet:
        """Return contacts that do not give way."""
        given = check_contacts(contacts)
        return cls(given, (False,) * len(given))

    @cached_property
    def at_origin(self) -> ContactSet:
        """The same contacts at the origins of their frames; points may move at every step."""
        contacts = tuple(contact.at_origin for contact in self.contacts)
        same = all(map(operator.is_, contacts, self.contacts))
        return self if same else ContactSet(contacts, self.assumed)

    def with_touches(self, touches: Iterable[Contact]) -> ContactSet:
        """
        Return these contacts and others that are reported, by a skin for example.

        One takes the row of the default contact with its frame, if there is one; the others
        follow, named by their frame, with a number where that name is taken.
        """
        contacts, assumed = list(self.contacts), list(self.assumed)
        for touch in touches:
            rows = [
                k
                for k, c in enumerate(contacts)
                if assumed[k] and c.unknowns and c.frame == touch.frame
            ]
            if rows:
                contacts[rows[0]] = replace(touch, name=contacts[rows[0]].name)
                assumed[rows[0]] = False
            else:
                names, count, name = {contact.name for contact in contacts}, 1, touch.name
                while name in names:
                    count += 1
                    name = f'{touch.name}_{count}'
                contacts.append(replace(touch, name=name))
                assumed.append(False)
        return ContactSet(tuple(contacts), tuple(assumed))


def row_names(contacts: Iterable[Contact]) -> list[str]:
    """Return the names of published wrenches: frames, as long as they are not taken."""
    names: list[str] = []
    for contact in contacts:
        names.append(contact.frame if contact.frame not in names else contact.name)
    return names


def noise_scale(length_scale: float) -> Array:
    """Return the standard deviations (6,) of an FT reading, up to a factor; length_scale [m]."""
    return np.array([1.0, 1.0, 1.0, length_scale, length_scale, length_scale])
