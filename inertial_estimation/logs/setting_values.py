# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What stands in a file of settings, as what it must be; what is wrong is named with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound

Array = NDArray[np.float64]


def as_mapping(said: object, name: str) -> Mapping[str, Any]:
    """Return what must be a mapping."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"'{name}' is {said!r}, expected names and values below it")
    return said


def check_keys(body: Mapping[str, Any], known: Sequence[str], name: str) -> None:
    """Refuse unknown keys."""
    for key in body:
        if key not in known:
            raise NameNotFound(f"setting below '{name}'", str(key), known)


def as_names(said: object, name: str) -> tuple[str, ...]:
    """Return one name or several."""
    names = (said,) if isinstance(said, str) else said
    if not isinstance(names, Iterable) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"'{name}' is {said!r}, expected a name or a list of names")
    return tuple(names)


def as_different_names(said: object, name: str) -> tuple[str, ...]:
    """Return one name or several, none of them twice."""
    names = as_names(said, name)
    for one, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"'{name}' has '{one}' {count} times: each stands for one thing")
    return names


def as_numbers(said: object, name: str) -> Array:
    """Return a number, a list or a matrix."""
    try:
        values = np.array(said, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if not np.isfinite(values).all() or values.ndim > 2:
        raise ConfigError(f"'{name}' is {said!r}, expected a number, a list of them or a matrix")
    return values


def as_list(said: object, name: str) -> Sequence[Any]:
    """Return what must be a list."""
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise ConfigError(f"'{name}' is {said!r}, expected a list")
    return said


def as_number(said: object, name: str) -> float:
    """Return what must be a number."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise ConfigError(f"'{name}' is {said!r}, expected a number")
    return float(said)


def as_flag(said: object, name: str) -> bool:
    """Return what must be true or false."""
    if not isinstance(said, bool):
        raise ConfigError(f"'{name}' is {said!r}, expected true or false")
    return said
