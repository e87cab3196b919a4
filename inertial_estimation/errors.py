# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of the package: one base, one class for each kind of mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

SHOWN = 3
"""Largest number of names in a message."""


class InertialEstimationError(Exception):
    """
    Base of every error that the package raises on purpose.

    Parameters
    ----------
    *message : str
        What is wrong and what helps, with arguments in quotes.
    about : tuple of str, optional
        Names of arguments in it. Whoever called by other names, such as options of a command or
        parameters of a node, says it with these: `said_with`.

    """

    def __init__(self, *message: object, about: tuple[str, ...] = ()) -> None:
        super().__init__(*message)
        self.about = about

    def said_with(self, names: Mapping[str, str]) -> str:
        """
        Return the message with arguments called as the caller knows them.

        Parameters
        ----------
        names : mapping of str to str
            What arguments are called, such as ``{'weight': '--prior-weight'}``.

        Returns
        -------
        str

        """
        said = str(self)
        for name in self.about:
            # Once, as what the caller gave may be in quotes too, and of the same name.
            found = re.search(rf"'{name}'|^{name}\b", said) if name in names else None
            if found is not None:
                said = said[: found.start()] + names[name] + said[found.end() :]
        return said


class ModelError(InertialEstimationError, ValueError):
    """The robot description, or what is asked of it, makes no sense."""


class ConfigError(InertialEstimationError, ValueError):
    """A configuration value is unknown, missing, of the wrong type or out of range."""


class CallError(ConfigError):
    """What is asked for makes no sense or lacks something: another call helps, no other data."""


class LogError(InertialEstimationError, ValueError):
    """A recorded log cannot be read or lacks what was asked for."""


class CalibrationError(InertialEstimationError, ValueError):
    """Data do not tell what was to be calibrated by them; the message says what would."""


class OffsetsNotUnique(CalibrationError):
    """Several supports share the load in a way that nothing tells, and offsets take it up."""

    def __init__(self, message: str, sensors: tuple[str, ...] = ()) -> None:
        super().__init__(message, about=('accept_split',))
        self.sensors = sensors

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (str(self), self.sensors)


class ShapeError(InertialEstimationError, ValueError):
    """An array has the wrong shape."""

    def __init__(
        self, argument: str, expected: tuple[object, ...], got: tuple[int, ...], why: str = ''
    ) -> None:
        reason = f': {why}' if why else ''
        said = f"'{argument}' has shape {got}, expected {expected}{reason}"
        super().__init__(said, about=(argument,) if argument.isidentifier() else ())
        self.argument = argument
        self.expected = expected
        self.got = got
        self.why = why

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.argument, self.expected, self.got, self.why)


class NameNotFound(InertialEstimationError, KeyError):
    """A name is not known; the message lists the closest ones that are."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], where: str = '', remedy: str = ''
    ) -> None:
        self.known = known = tuple(known)
        shown = closest_names(str(name), known) or known[:SHOWN]
        near = f'closest: {", ".join(shown)}' if shown else 'there are none'
        said = '; '.join(filter(None, (f"no {kind} is named '{name}'", near, remedy)))
        self.message = f'{where}, but {said}' if where else said
        # What asks for a name is called at the beginning.
        super().__init__(self.message, about=tuple(re.findall(r"^'(\w+)' names ", where)))
        self.kind = kind
        self.name = name
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.kind, self.name, self.known, self.where, self.remedy)

    def __str__(self) -> str:
        """Return the message without the quotes that KeyError adds."""
        return self.message


class FrameNotFound(NameNotFound):
    """The robot has no frame of that name."""

    def __init__(self, name: str, known: Iterable[str], where: str = '', remedy: str = '') -> None:
        super().__init__('frame', name, known, where, remedy)

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.name, self.known, self.where, self.remedy)


def is_wrong_call(error: InertialEstimationError, names: Mapping[str, str]) -> bool:
    """Tell whether another call helps, and other data would not."""
    value = isinstance(error, ModelError) and any(name in names for name in error.about)
    return value or isinstance(error, CallError)


def closest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that may be meant by one that is not known."""
    return get_close_matches(name, list(known), SHOWN)
