# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of the package: one base, one class for each kind of mistake."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InertialEstimationError(Exception):
    """Base of every error that the package raises on purpose."""


class ModelError(InertialEstimationError, ValueError):
    """The robot description, or what is asked of it, makes no sense."""


class ConfigError(InertialEstimationError, ValueError):
    """A configuration value is unknown, missing, of the wrong type or out of range."""


class LogError(InertialEstimationError, ValueError):
    """A recorded log cannot be read or lacks what was asked for."""


class ShapeError(InertialEstimationError, ValueError):
    """
    An array has the wrong shape.

    Parameters
    ----------
    argument : str
        Name of the array.
    expected : tuple
        Shape that is needed.
    got : tuple
        Shape that was given.
    why : str, optional
        Where the expected shape comes from.

    """

    def __init__(
        self, argument: str, expected: tuple[object, ...], got: tuple[int, ...], why: str = ''
    ) -> None:
        reason = f': {why}' if why else ''
        super().__init__(f"'{argument}' has shape {got}, expected {expected}{reason}")
        self.argument = argument
        self.expected = expected
        self.got = got
        self.why = why

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.argument, self.expected, self.got, self.why)


class NameNotFound(InertialEstimationError, KeyError):
    """
    A name is not known; the message lists the closest ones that are.

    Parameters
    ----------
    kind : str
        What is named: frame, joint, sensor, topic, parameter.
    name : str
        The name that was asked for.
    known : iterable of str
        The names that exist.

    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.known = known = tuple(known)
        close = get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
        hint = f'; closest: {", ".join(close)}' if close else '; there are none'
        self.message = f"no {kind} is named '{name}'{hint}"
        super().__init__(self.message)
        self.kind = kind
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.kind, self.name, self.known)

    def __str__(self) -> str:
        """Return the message without the quotes that KeyError adds."""
        return self.message


class FrameNotFound(NameNotFound):
    """
    The robot has no frame of that name.

    Parameters
    ----------
    name : str
        The name that was asked for.
    known : iterable of str
        The frames of the robot.

    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__('frame', name, known)

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again: other processes get errors in pieces."""
        return type(self), (self.name, self.known)
