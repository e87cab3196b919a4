# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Values of a file of settings: each is checked, and named with its place if it is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound

Array = NDArray[np.float64]


def as_mapping(
    value: object, name: str, keys: Collection[str] | None = None, required: Iterable[str] = ()
) -> Mapping[str, Any]:
    """Return a mapping; keys: those that it may have; required: those that it must have."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"'{name}' is {value!r}, expected names and values below it")
    if keys is not None:
        check_keys(value, keys, name)
    for key in required:
        if key not in value:
            raise ConfigError(f"'{name}' has no '{key}'")
    return value


def check_keys(body: Mapping[str, Any], known: Collection[str], name: str) -> None:
    """Refuse unknown keys."""
    for key in body:
        if key not in known:
            raise NameNotFound(f"setting below '{name}'", str(key), known)


def as_names(value: object, name: str) -> tuple[str, ...]:
    """Return one name or several."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Iterable) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"'{name}' is {value!r}, expected a name or a list of names")
    return tuple(names)


def as_different_names(value: object, name: str) -> tuple[str, ...]:
    """Return one name or several, none of them twice."""
    names = as_names(value, name)
    for one, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"'{name}' has '{one}' {count} times: each stands for one thing")
    return names


def as_numbers(
    value: object, name: str, shape: tuple[int, ...] | None = None, *, infinite: bool = False
) -> Array:
    """Return numbers; shape: theirs; infinite: whether they may be infinite."""
    try:
        values = np.array(value)
    except ValueError:
        values = np.array(None)
    fits = values.ndim <= 2 if shape is None else values.shape == shape
    fits = fits and values.dtype.kind in 'iuf' and not np.isnan(values).any()
    if not fits or (np.isinf(values).any() and not infinite):
        expected = 'a number, a list of them or a matrix'
        if shape is not None:
            expected = ' times '.join(map(str, shape)) + ' numbers'
        raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
    return values.astype(np.float64)


def as_box(value: object, name: str, *, infinite: bool = False) -> Array:
    """Return a lower and an upper corner, (2, 3) [m]."""
    corners = as_numbers(value, name, (2, 3), infinite=infinite)
    for axis, low, high in zip('xyz', *corners, strict=True):
        require_order(low, high, f'{name} along {axis}')
    return corners


def require_order(low: float, high: float, name: str) -> None:
    """Raise unless a range leaves something."""
    if not low < high:
        raise ConfigError(f"'{name}' leaves nothing between {low:g} and {high:g}")


def as_list(value: object, name: str) -> Sequence[Any]:
    """Return what must be a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"'{name}' is {value!r}, expected a list")
    return value


def as_number(value: object, name: str) -> float:
    """Return what must be a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"'{name}' is {value!r}, expected a number")
    return float(value)


def as_flag(value: object, name: str) -> bool:
    """Return what must be true or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"'{name}' is {value!r}, expected true or false")
    return value
