# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readers of the values in a file of settings, from which the reader of a whole file is built.

A reader takes a value and its full name; it returns the value or raises with that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from inertial_estimation.errors import ConfigError, NameNotFound

Reader = Callable[[Any, str], Any]


def as_mapping(value: object, name: str) -> Mapping[str, Any]:
    """Read names with values."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"'{name}' is {value!r}, expected names and values below it")
    return {str(key): one for key, one in value.items()}


def record(readers: Mapping[str, Reader], required: Iterable[str] = ()) -> Reader:
    """Return the reader of a mapping with known keys."""

    def read(value: object, name: str) -> dict[str, Any]:
        body = as_mapping(value, name)
        for key in body:
            if key not in readers:
                raise NameNotFound(f"setting below '{name}'", key, readers)
        for key in required:
            if key not in body:
                raise ConfigError(f"'{name}' has no '{key}'")
        return {key: readers[key](one, f'{name}.{key}') for key, one in body.items()}

    return read


def each(reader: Reader) -> Reader:
    """Return the reader of a mapping of any names to values of one kind."""

    def read(value: object, name: str) -> dict[str, Any]:
        body = as_mapping({} if value is None else value, name)
        return {key: reader(one, f'{name}.{key}') for key, one in body.items()}

    return read


def one_or_each(reader: Reader) -> Reader:
    """Return the reader of one value, or of a mapping of any names to such values."""
    return lambda value, name: (each(reader) if isinstance(value, Mapping) else reader)(
        value, name
    )


def list_of(reader: Reader) -> Reader:
    """Return the reader of a list."""

    def read(value: object, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"'{name}' is {value!r}, expected a list")
        return tuple(reader(one, name) for one in value)

    return read


def dataclass_of(kind: Any) -> Reader:
    """Return the reader of a dataclass of numbers and flags, by the types of its defaults."""
    readers = {float: number(), int: whole(1), bool: flag}
    read = record({one.name: readers[type(one.default)] for one in fields(kind)})
    return lambda value, name: kind(**read(value, name))


def anything(value: Any, name: str) -> Any:
    """Read a value that is checked elsewhere."""
    return value


def _value(expected: str, fits: Callable[[Any], bool]) -> Reader:
    """Return the reader of one value."""

    def read(value: Any, name: str) -> Any:
        if not fits(value):
            raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
        return value

    return read


text = _value('a name', lambda value: isinstance(value, str))
flag = _value('true or false', lambda value: isinstance(value, bool))


def whole(least: int) -> Reader:
    """Return the reader of a whole number."""
    return _value(f'a whole number from {least}', lambda one: type(one) is int and one >= least)


def number(least: float = -np.inf) -> Reader:
    """Return the reader of a finite number."""
    expected = 'a number' if least == -np.inf else f'a number from {least:g}'
    read = _value(expected, lambda one: type(one) in (int, float) and least <= one < np.inf)
    return lambda value, name: float(read(value, name))


def texts(value: object, name: str) -> tuple[str, ...]:
    """Read one name or several."""
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
        raise ConfigError(f"'{name}' is {value!r}, expected a name or a list of names")
    return tuple(found)


def names(value: object, name: str) -> tuple[str, ...]:
    """Read one name or several, none of them twice."""
    found = texts(value, name)
    for one, count in Counter(found).items():
        if count > 1:
            raise ConfigError(f"'{name}' names '{one}' {count} times")
    return found


def numbers(shape: tuple[int, ...] | None = None, *, infinite: bool = False) -> Reader:
    """Return the reader of numbers of some shape; None: a number, a list or a matrix."""
    expected = 'a number, a list of them or a matrix'
    if shape is not None:
        expected = ' times '.join(map(str, shape)) + ' numbers without NaN'

    def read(value: object, name: str) -> np.ndarray:
        try:
            values = np.array(value)
        except ValueError:
            values = np.array(None)
        fits = values.ndim <= 2 if shape is None else values.shape == shape
        fits = fits and values.dtype.kind in 'iuf' and not np.isnan(values).any()
        if not fits or (np.isinf(values).any() and not infinite):
            raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
        return values.astype(np.float64)

    return read


def interval(value: object, name: str) -> np.ndarray:
    """Read a least and a greatest value, (2,)."""
    found: np.ndarray = numbers((2,), infinite=True)(value, name)
    require_order(found[0], found[1], name)
    return found


def box(value: object, name: str, *, infinite: bool = False) -> np.ndarray:
    """Read a lower and an upper corner, (2, 3) [m]."""
    corners: np.ndarray = numbers((2, 3), infinite=infinite)(value, name)
    for axis, low, high in zip('xyz', *corners, strict=True):
        require_order(low, high, f'{name} along {axis}')
    return corners


def require_order(low: float, high: float, name: str) -> None:
    """Raise unless a range leaves something."""
    if not low < high:
        raise ConfigError(f"'{name}' leaves nothing between {low:g} and {high:g}")
