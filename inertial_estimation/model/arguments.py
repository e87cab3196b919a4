# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of public functions as arrays and tuples, or errors with their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, NameNotFound, ShapeError

Array = NDArray[np.float64]


def numbers(
    argument: str, given: object, shape: tuple[int, ...] | None = None, *, finite: bool = True
) -> Array:
    """Return a read-only float64 copy of numbers."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f'{argument} is {_short(given)}, expected numbers', about=(argument,)
        ) from None
    if given is None:
        raise ModelError(f'{argument} is None, expected numbers', about=(argument,))
    if shape is not None and array.shape != shape:
        raise ShapeError(argument, shape, array.shape)
    if finite and not np.isfinite(array).all():
        raise ModelError(f'{argument} is {_short(given)}, which is not finite', about=(argument,))
    array.flags.writeable = False
    return array


def stacked(argument: str, given: object, *tail: int) -> Array:
    """
    Return numbers whose last axes are given; an array of such is returned as it is.

    Returns (..., *tail).
    """
    n = len(tail)
    if type(given) is np.ndarray and given.dtype == np.float64 and given.shape[-n:] == tail:
        return given
    array = numbers(argument, given, finite=False)
    if array.shape[-n:] != tail:
        raise ShapeError(argument, ('...', *tail), array.shape)
    return array


def rows(argument: str, given: object, kind: str, known: Sequence[str]) -> tuple[int, ...]:
    """Return the rows of things that are named, or numbered from 0."""
    if isinstance(given, (str, int, np.integer)):
        given = (given,)
    found = []
    for item in items(argument, given):
        if isinstance(item, str):
            if item not in known:
                raise NameNotFound(kind, item, known, f"'{argument}' names {item!r}")
            found.append(list(known).index(item))
            continue
        is_row = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        if not is_row or not 0 <= int(item) < len(known):  # type: ignore[call-overload]
            raise ModelError(
                f"'{argument}' holds {_short(item)}, expected names or numbers from 0 to "
                f'{len(known) - 1}, as those of {", ".join(known[:3]) or "nothing"}'
            )
        found.append(int(item))  # type: ignore[call-overload]
    return tuple(found)


def names(argument: str, given: object) -> tuple[str, ...]:
    """Return names; one alone is a list of one."""
    if isinstance(given, str):
        return (given,)
    found = items(argument, given)
    for item in found:
        if not isinstance(item, str):
            raise ModelError(f"'{argument}' holds {_short(item)}, expected names")
    return tuple(str(item) for item in found)


def items(argument: str, given: object) -> tuple[object, ...]:
    """Return what is in a list."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"'{argument}' is {_short(given)}, expected a list: write [...]")
    return tuple(given)


def entries(argument: str, given: object) -> dict[str, object]:
    """Return what is in a dict."""
    if not isinstance(given, Mapping):
        raise ModelError(f"'{argument}' is {_short(given)}, expected a dict of values by name")
    return dict(given)


def _short(given: object) -> str:
    """Return what was given, cut where it is long."""
    text = repr(given)
    if hasattr(given, '_fields') or text.count('\n') > 3:
        text = f'a {type(given).__name__}'
    text = ' '.join(text.split())
    return text if len(text) <= 60 else f'{text[:57]}...'
