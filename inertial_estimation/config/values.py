# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings in a file as frozen dataclasses, whose fields are read by their types.

A type is a dataclass, a mapping of names to values of one type, a tuple, a plain value, a choice
of these or none, or ``Annotated`` with its reader, a function of the value and its full name.
Values of other types are left to the dataclass, which checks them.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, InertialEstimationError, NameNotFound

Reader = Callable[[Any, str], Any]
T = TypeVar('T')
PLAIN = {str: 'a name', bool: 'true or false', int: 'a whole number', float: 'a number'}
_hints = cache(lambda kind: get_type_hints(kind, include_extras=True))


def read(kind: Any, value: Any, name: str) -> Any:
    """Return a value of a type, or raise with its full name."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return inner[1](value, name)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        # At most one of them is a mapping, and stands last.
        members = [one for one in inner if one is not NoneType]
        return read(members[-1 if isinstance(value, Mapping) else 0], value, name)
    if origin is abc.Mapping:
        return {k: read(inner[1], one, f'{name}.{k}') for k, one in _names(value, name).items()}
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"'{name}' is {value!r}, expected a list")
        kinds = inner if inner[-1] is not ... else inner[:1] * len(value)
        if len(kinds) != len(value):
            raise ConfigError(f"'{name}' is {value!r}, expected {len(kinds)} values")
        return tuple(read(of, one, name) for of, one in zip(kinds, value, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        return record(kind, value, name)
    if kind is Path:
        return Path(read(str, value, name))
    if kind not in PLAIN:
        return value
    fits = type(value) in ((int, float) if kind is float else (kind,))
    if not fits or (kind is float and not np.isfinite(value)):
        raise ConfigError(f"'{name}' is {value!r}, expected {PLAIN[kind]}")
    return kind(value)


def record(kind: Callable[..., T], value: Any, name: str, /, **more: Any) -> T:
    """Return a dataclass of names and values; `more` are fields that the file does not state."""
    body = _names(value, name)
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    below = f"below '{name}'" if name else 'of the file'
    for key in body:
        if key not in known or key in more:
            raise NameNotFound(f'setting {below}', key, known.keys() - more)
    for key, one in known.items():
        if {one.default, one.default_factory} == {MISSING} and key not in {*body, *more}:
            raise ConfigError(f"'{name}' has no '{key}'")
    prefix, hints = f'{name}.' if name else '', _hints(kind)
    given = {key: read(hints[key], one, prefix + key) for key, one in body.items()}
    try:
        return kind(**given, **more)
    except InertialEstimationError as error:
        raise ConfigError(f"'{name}': {error}" if name else str(error)) from error


def _names(value: Any, name: str) -> dict[str, Any]:
    """Read names with values; nothing is none of them."""
    if not isinstance(value, Mapping | NoneType):
        raise ConfigError(f"'{name}' is {value!r}, expected names and values below it")
    return {str(key): one for key, one in (value or {}).items()}


def not_negative(value: Any, name: str) -> float:
    """Read a finite number from zero."""
    found: float = read(float, value, name)
    if found < 0.0:
        raise ConfigError(f"'{name}' is {value!r}, expected a number from 0")
    return found


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Read one text or several."""
    given = [value] if isinstance(value, str) else value
    found: tuple[str, ...] = read(tuple[str, ...], given, name)
    return found


def names(value: Any, name: str) -> tuple[str, ...]:
    """Read one name or several, none of them twice."""
    found = texts(value, name)
    if twice := [one for one in found if found.count(one) > 1]:
        raise ConfigError(f"'{name}' names '{twice[0]}' {len(twice)} times")
    return found


def numbers(shape: tuple[int, ...] | None = None, *, infinite: bool = False) -> Reader:
    """Return the reader of numbers of some shape; None: a number, a list or a matrix."""
    expected = 'a number, a list of them or a matrix'
    if shape is not None:
        expected = ' times '.join(map(str, shape)) + ' numbers without NaN'

    def read_numbers(value: Any, name: str) -> Array:
        try:
            values = np.array(value)
        except ValueError:
            values = np.array(None)
        fits = values.ndim <= 2 if shape is None else values.shape == shape
        fits = fits and values.dtype.kind in 'iuf' and not np.isnan(values).any()
        if not fits or (np.isinf(values).any() and not infinite):
            raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
        return values.astype(np.float64)

    return read_numbers


Names = Annotated[tuple[str, ...], names]
Texts = Annotated[tuple[str, ...], texts]
NotNegative = Annotated[float, not_negative]
Numbers = Annotated[Array, numbers()]
Vector = Annotated[Array, numbers((3,))]
