# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions of the package: one base, one class for each kind of error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SHOWN = 3
"""Largest number of names in a message."""


class InertialEstimationError(Exception):
    """
    Base of every error that the package raises on purpose.

    Parameters
    ----------
    *message : str
        What is wrong and where, with names of arguments in quotes.
    about : tuple of str, optional
        Names of arguments in the message, which options of a command or parameters of a node
        replace in `renamed`.

    """

    def __init__(self, *message: object, about: tuple[str, ...] = ()) -> None:
        super().__init__(*message)
        self.about = about

    def renamed(self, names: Mapping[str, str]) -> str:
        """Return the message with the caller's names, as ``{'weight': '--prior-weight'}``."""
        text = str(self)
        for name in self.about:
            # Once: a value in quotes may be the same word.
            found = re.search(rf"'{name}'|^{name}\b", text) if name in names else None
            if found is not None:
                text = text[: found.start()] + names[name] + text[found.end() :]
        return text


class ModelError(InertialEstimationError, ValueError):
    """The URDF, or a request to the model, is invalid."""


class ConfigError(InertialEstimationError, ValueError):
    """A configuration value is unknown, missing, of the wrong type or out of range."""


class CallError(ConfigError):
    """The arguments of a call contradict each other or are incomplete."""


class LogError(InertialEstimationError, ValueError):
    """A recorded log cannot be read or lacks a requested signal."""


class CalibrationError(InertialEstimationError, ValueError):
    """The data do not determine the calibration."""


class OffsetsNotUnique(CalibrationError):
    """The load is shared by several supports in a way that the data do not determine."""

    def __init__(self, message: str, sensors: tuple[str, ...] = ()) -> None:
        super().__init__(message, sensors, about=('accept_split',))
        self.sensors = sensors

    def __str__(self) -> str:
        return str(self.args[0])


class ShapeError(InertialEstimationError, ValueError):
    """An array has the wrong shape."""

    def __init__(
        self, argument: str, expected: tuple[object, ...], got: tuple[int, ...], why: str = ''
    ) -> None:
        about = (argument,) if argument.isidentifier() else ()
        super().__init__(argument, expected, got, why, about=about)
        self.argument, self.expected, self.got, self.why = argument, expected, got, why

    def __str__(self) -> str:
        reason = f': {self.why}' if self.why else ''
        return f"'{self.argument}' has shape {self.got}, expected {self.expected}{reason}"


class NameNotFound(InertialEstimationError, KeyError):
    """A name is unknown; the message lists the closest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = '') -> None:
        self.kind, self.name, self.known, self.where = kind, name, tuple(known), where
        # The setting that names it stands first.
        about = tuple(re.findall(r"^'(\w+)' names ", where))
        super().__init__(kind, name, self.known, where, about=about)

    def __str__(self) -> str:
        from difflib import get_close_matches

        shown = get_close_matches(str(self.name), self.known, SHOWN) or self.known[:SHOWN]
        near = f'closest: {", ".join(shown)}' if shown else 'there are none'
        text = f"no {self.kind} is named '{self.name}'; {near}"
        return f'{self.where}, but {text}' if self.where else text


def is_wrong_call(error: InertialEstimationError, names: Mapping[str, str]) -> bool:
    """Return true if other arguments are needed, not other data."""
    value = isinstance(error, ModelError | NameNotFound) and any(x in names for x in error.about)
    return value or isinstance(error, CallError)
