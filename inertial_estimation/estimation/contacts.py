# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where the environment may touch the robot, and what is unknown there [T section 4.5.2-4.5.3]."""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.arguments import check_text

Array = NDArray[np.float64]

ORIGIN = (0.0, 0.0, 0.0)
UNKNOWNS = {'wrench': 6, 'force': 3, 'axial_force': 1, 'known': 0}
"""Number of unknowns of each kind of contact."""


@dataclass(frozen=True)
class Contact:
    """
    One place where the environment acts on a link.

    Its wrench is always expressed in and about the origin of `frame`, environment on robot.

    Parameters
    ----------
    frame : str
        Frame of the robot.
    kind : str
        ``wrench``: six unknowns; ``force``: a pure force at `point`; ``axial_force``: a pure
        force at `point` along `direction`, of either sign; ``known``: nothing is unknown.
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
        If the kind is unknown, a number is none or not finite, or the direction is zero.
    ShapeError
        If point, direction or wrench has the wrong length.

    """

    frame: str
    kind: str = 'wrench'
    point: tuple[float, ...] = ORIGIN
    direction: tuple[float, ...] = (0.0, 0.0, 1.0)
    wrench: tuple[float, ...] = (0.0,) * 6
    name: str = ''
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Check the numbers once, so that nothing has to be checked in the loop."""
        for key in ('frame', 'kind', 'name'):
            check_text(f'{key} of a contact', getattr(self, key))
        if self.kind not in UNKNOWNS:
            raise ModelError(
                f"contact '{self.frame}': kind '{self.kind}' is none of {', '.join(UNKNOWNS)}"
            )
        for key, size in (('point', 3), ('direction', 3), ('wrench', 6)):
            values = self._numbers(key)
            if len(values) != size:
                raise ShapeError(f'{key} of contact {self.frame}', (size,), (len(values),))
            if not np.isfinite(values).all():
                raise ModelError(f"contact '{self.frame}': {key} {values} is not finite")
            object.__setattr__(self, key, values)
        length = float(np.linalg.norm(self.direction))
        if length == 0.0:
            raise ModelError(f"contact '{self.frame}': the direction is zero")
        object.__setattr__(self, 'direction', tuple(value / length for value in self.direction))
        object.__setattr__(self, 'name', self.name or self.frame)
        fields = (self.frame, self.kind, self.point, self.direction, self.wrench, self.name)
        object.__setattr__(self, '_hash', hash(fields))

    def __hash__(self) -> int:
        """Return a number that was computed once: contacts are looked up at every step."""
        return self._hash

    def _numbers(self, key: str) -> tuple[float, ...]:
        """Return a field as numbers, whatever they came as."""
        given = getattr(self, key)
        try:
            return tuple(float(value) for value in given)
        except (TypeError, ValueError) as error:
            raise ModelError(f"contact '{self.frame}': {key} {given} is not numbers") from error

    def moved(self, point: tuple[float, ...]) -> Contact:
        """
        Return the same contact at another point, ten times as fast as `replace`.

        Parameters
        ----------
        point : tuple of float, shape (3,)
            Finite; nothing is checked [m].

        Returns
        -------
        Contact

        """
        moved = object.__new__(Contact)
        fields = (self.frame, self.kind, point, self.direction, self.wrench, self.name)
        names = ('frame', 'kind', 'point', 'direction', 'wrench', 'name')
        moved.__dict__.update(zip(names, fields), _hash=hash(fields))
        return moved

    @property
    def unknowns(self) -> int:
        """Number of unknowns: 6, 3, 1 or 0."""
        return UNKNOWNS[self.kind]

    @cached_property
    def at_origin(self) -> Contact:
        """The same contact at the origin of its frame: what a plan is made for."""
        return self if self.point == ORIGIN else replace(self, point=ORIGIN)

    def basis(self) -> Array:
        """
        Return the wrenches that the unknowns stand for.

        Returns
        -------
        ndarray, shape (6, unknowns)
            Columns [force; torque] in and about the frame; the unknowns are the wrench, the
            force [N, Nm], or the signed size of the force along the direction [N].

        """
        if self.kind == 'wrench':
            return np.eye(6)
        x, y, z = self.point
        forces = np.eye(3) if self.kind == 'force' else np.array(self.direction)[:, None]
        if self.kind == 'known':
            forces = np.zeros((3, 0))
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.vstack([forces, lever @ forces])


def check_contacts(given: object) -> tuple[Contact, ...]:
    """Return contacts as a tuple."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ModelError(
            f"'contacts' is {given!r}, expected a list of Contact: write [Contact(...)]"
        )
    contacts = tuple(given)
    for contact in contacts:
        if not isinstance(contact, Contact):
            named = repr(contact) if isinstance(contact, str) else "'name of a frame'"
            raise ModelError(
                f"'contacts' holds {contact!r}, expected contacts only: write Contact({named})"
            )
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
        Which of them are defaults that nobody feels: they give way to a contact that is felt in
        their submodel, and where submodels merge to the first of them.

    Raises
    ------
    ModelError
        If one of the contacts is something else.
    ShapeError
        If there are more or fewer of the one than of the other.

    """

    contacts: tuple[Contact, ...]
    assumed: tuple[bool, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Check what it holds, and compute the hash once."""
        contacts, assumed = self.contacts, self.assumed
        if not (type(contacts) is tuple and type(assumed) is tuple):
            contacts, assumed = check_contacts(contacts), tuple(assumed)
            object.__setattr__(self, 'contacts', contacts)
            object.__setattr__(self, 'assumed', assumed)
        if len(contacts) != len(assumed):
            raise ShapeError('assumed', (len(contacts),), (len(assumed),), 'one for each contact')
        for contact in contacts:
            if type(contact) is not Contact:
                check_contacts(contacts)
        object.__setattr__(self, '_hash', hash((self.contacts, self.assumed)))

    def __hash__(self) -> int:
        """Return a number that was computed once: sets are looked up at every step."""
        return self._hash

    @classmethod
    def felt(cls, contacts: Iterable[Contact]) -> ContactSet:
        """
        Return contacts that do not give way.

        Parameters
        ----------
        contacts : iterable of Contact
            Contacts that are known to be there.

        Returns
        -------
        ContactSet

        """
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
        Return these contacts and others that are felt.

        A touch takes the row of the default contact with its frame, if there is one; the others
        follow behind, under the name of their frame, with a number where it is taken.

        Parameters
        ----------
        touches : iterable of Contact
            Contacts that somebody feels, such as a skin.

        Returns
        -------
        ContactSet

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
                names = {contact.name for contact in contacts}
                contacts.append(replace(touch, name=_free_name(touch.name, names)))
                assumed.append(False)
        return ContactSet(tuple(contacts), tuple(assumed))


def row_names(contacts: Iterable[Contact]) -> list[str]:
    """Return the names under which wrenches go out: frames, for as long as they are not taken."""
    names: list[str] = []
    for contact in contacts:
        names.append(contact.frame if contact.frame not in names else contact.name)
    return names


def _free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken, with a number behind it if need be."""
    count, candidate = 1, name
    while candidate in taken:
        count += 1
        candidate = f'{name}_{count}'
    return candidate
