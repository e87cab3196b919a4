# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Places where the environment acts on the robot, and its unknowns [T sections 4.5.2, 4.5.3]."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError

ORIGIN = (0.0, 0.0, 0.0)


class ContactKind(str, Enum):
    """
    The unknowns of a contact; a kind is equal to its name.

    Attributes
    ----------
    unknowns : int
        Their number.
    has_point : bool
        True if they depend on the point of the contact.

    """

    unknowns: int
    has_point: bool
    WRENCH = 'wrench', 6
    """Force and torque."""
    FORCE = 'force', 3, True
    """A pure force at the point of the contact."""
    AXIAL_FORCE = 'axial_force', 1, True
    """A pure force at the point along the direction of the contact, of either sign."""
    KNOWN = 'known', 0
    """Nothing: the contact states its wrench."""

    def __new__(cls, name: str, unknowns: int, has_point: bool = False) -> ContactKind:
        kind = str.__new__(cls, name)
        kind._value_, kind.unknowns, kind.has_point = name, unknowns, has_point
        return kind

    def __str__(self) -> str:
        return str(self.value)

    def basis(self, point: tuple[float, ...], direction: tuple[float, ...]) -> Array:
        """
        Return the wrenches of unit unknowns, (6, unknowns), in and about the contact's frame.

        point, direction (3,): those of the contact.
        """
        if self is ContactKind.WRENCH:
            return np.eye(6)
        forces = np.eye(3, self.unknowns)
        if self is ContactKind.AXIAL_FORCE:
            forces[:, 0] = direction
        x, y, z = point
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.concatenate([forces, hat @ forces])


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
        Direction of an axial force, in the frame; normalised here.
    wrench : tuple of float
        The known wrench [force; torque], in and about the frame [N, Nm].
    name : str
        Name in outputs; the frame's name by default.

    Raises
    ------
    ModelError
        If the kind is unknown, a number is not finite, or the direction is zero.
    ShapeError
        If point, direction or wrench has the wrong length.

    """

    frame: str
    kind: ContactKind = ContactKind.WRENCH
    point: tuple[float, ...] = ORIGIN
    direction: tuple[float, ...] = (0.0, 0.0, 1.0)
    wrench: tuple[float, ...] = (0.0,) * 6
    name: str = ''
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if not isinstance(self.frame, str) or not isinstance(self.name, str):
            raise ModelError(f"frame '{self.frame}' or name '{self.name}' of a contact is no text")
        kind = next((kind for kind in ContactKind if kind == self.kind), None)
        if kind is None:
            kinds = ', '.join(ContactKind)
            raise ModelError(f"contact '{self.frame}': kind '{self.kind}' is none of {kinds}")
        object.__setattr__(self, 'kind', kind)
        for key, size in (('point', 3), ('direction', 3), ('wrench', 6)):
            given = getattr(self, key)
            try:
                values = tuple(float(value) for value in given)
            except (TypeError, ValueError):
                values = (np.nan,) * size
            if len(values) != size:
                raise ShapeError(f'{key} of contact {self.frame}', (size,), (len(values),))
            if not np.isfinite(values).all():
                raise ModelError(f"contact '{self.frame}': {key} {given} is not finite numbers")
            object.__setattr__(self, key, values)
        length = float(np.linalg.norm(self.direction))
        if length == 0.0:
            raise ModelError(f"contact '{self.frame}': the direction is zero")
        object.__setattr__(self, 'direction', tuple(value / length for value in self.direction))
        object.__setattr__(self, 'name', self.name or self.frame)
        fields = (self.frame, self.kind, self.point, self.direction, self.wrench, self.name)
        object.__setattr__(self, '_hash', hash(fields))

    def __hash__(self) -> int:
        """Return the hash computed once: contacts are looked up at every step."""
        return self._hash

    def moved(self, point: tuple[float, ...]) -> Contact:
        """Return the same contact at another point (3,) [m]; unchecked, faster than `replace`."""
        moved = object.__new__(Contact)
        fields = (self.frame, self.kind, point, self.direction, self.wrench, self.name)
        names = ('frame', 'kind', 'point', 'direction', 'wrench', 'name')
        moved.__dict__.update(zip(names, fields), _hash=hash(fields))
        return moved

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return self.kind.unknowns

    @cached_property
    def at_origin(self) -> Contact:
        """The same contact at the origin of its frame, for which plans are made."""
        return self if self.point == ORIGIN else replace(self, point=ORIGIN)

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
        where submodels merge to the first of them.

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
