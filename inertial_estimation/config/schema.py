# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Types, ranges and descriptions of settings, and strict reading of a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from math import isfinite
from typing import Any, get_args, get_origin, get_type_hints

from inertial_estimation.errors import ConfigError

Scalar = bool | int | float | str
Value = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]

KIND_NAMES = {
    bool: 'true or false',
    int: 'an integer',
    float: 'a double, as 1.0',
    str: 'a string',
}


def setting(
    default: Any,
    description: str,
    *,
    range: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    sizes: tuple[int, ...] = (),
) -> Any:
    """Return a dataclass field that carries what a parameter descriptor needs."""
    metadata = {'description': description, 'range': range, 'choices': choices, 'sizes': sizes}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Setting:
    """One field of a group of settings, as `settings_of` finds it."""

    name: str
    kind: type[Scalar]
    """Type of the value, or of its items."""
    is_list: bool
    default: Any
    description: str
    range: tuple[float, float] | None
    choices: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def constraint(self) -> str:
        """Choices or number of values, in words."""
        if self.choices:
            return 'one of ' + ', '.join(repr(choice) for choice in self.choices)
        if self.sizes:
            return ' or '.join(map(str, self.sizes)) + ' numbers'
        return ''

    def read(self, value: object, name: str = '') -> Any:
        """Return a value as it is stored, or raise ConfigError."""
        name = name or self.name
        if value is None:
            raise ConfigError(f"'{name}' has no value")
        if not self.is_list:
            return self._read_scalar(value, name)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"'{name}' is {value!r}, expected a list")
        if self.sizes and len(value) not in self.sizes:
            raise ConfigError(f"'{name}' has {len(value)} values, expected {self.constraint}")
        return tuple(self._read_scalar(v, f'{name}[{i}]') for i, v in enumerate(value))

    def _read_scalar(self, value: object, name: str) -> Scalar:
        """Check type, range and choice of one item."""
        # For Python a bool is an int; for ROS it is not, nor is an int a double.
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, bool)):
            raise ConfigError(f"'{name}' is {value!r}, expected {KIND_NAMES[self.kind]}")
        if isinstance(value, float) and not isfinite(value):
            raise ConfigError(f"'{name}' is {value}, expected a finite number")
        if self.range and not self.range[0] <= value <= self.range[1]:  # type: ignore[operator]
            low, high = self.range
            raise ConfigError(f"'{name}' is {value}, expected {low:g} to {high:g}")
        if self.choices and value not in self.choices:
            raise ConfigError(f"'{name}' is '{value}', expected {self.constraint}")
        return value


def read_fields(group: Any) -> None:
    """Check every setting of a group, however it was made; its lists become tuples."""
    for item in settings_of(type(group)):
        object.__setattr__(group, item.name, item.read(getattr(group, item.name)))


def settings_of(group: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass, without the fields that hold groups."""
    known: Any = group
    return _settings_of(known)


@cache
def _settings_of(group: type) -> tuple[Setting, ...]:
    """Find the settings once: some are made while the estimator runs."""
    hints = get_type_hints(group)
    found = []
    for item in fields(group):
        if 'description' not in item.metadata:
            continue
        is_list = get_origin(hints[item.name]) is tuple
        kind = get_args(hints[item.name])[0] if is_list else hints[item.name]
        found.append(Setting(item.name, kind, is_list, item.default, **item.metadata))
    return tuple(found)
