# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What callers give: made an array or a list here, or refused with its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError

Array = NDArray[np.float64]


def numbers(
    argument: str, given: object, shape: tuple[int, ...] | None = None, *, finite: bool = True
) -> Array:
    """
    Return a read-only float64 copy of numbers.

    Parameters
    ----------
    argument : str
        What they are called.
    given : object
        What a caller gave: an array, or lists of numbers.
    shape : tuple of int, optional
        The only shape that will do; default: any.
    finite : bool, optional
        Refuse NaN and infinity.

    Returns
    -------
    ndarray
        Of that shape.

    Raises
    ------
    ModelError
        If it is no numbers, or one of them is not finite.
    ShapeError
        If the shape is another.

    """
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f'{argument} is {_short(given)}, expected numbers') from None
    if given is None:
        raise ModelError(f'{argument} is None, expected numbers')
    if shape is not None and array.shape != shape:
        raise ShapeError(argument, shape, array.shape)
    if finite and not np.isfinite(array).all():
        raise ModelError(f'{argument} is {_short(given)}, which is not finite')
    array.flags.writeable = False
    return array


def names(argument: str, given: object) -> tuple[str, ...]:
    """
    Return names; one alone is a list of one.

    Parameters
    ----------
    argument : str
        What they are called.
    given : object
        What a caller gave: a name, or several.

    Returns
    -------
    tuple of str

    Raises
    ------
    ModelError
        If it is something else.

    """
    if isinstance(given, str):
        return (given,)
    found = items(argument, given)
    for item in found:
        if not isinstance(item, str):
            raise ModelError(f"'{argument}' holds {_short(item)}, expected names")
    return tuple(str(item) for item in found)


def items(argument: str, given: object) -> tuple[object, ...]:
    """
    Return what is in a list.

    Parameters
    ----------
    argument : str
        What it is called.
    given : object
        What a caller gave.

    Returns
    -------
    tuple

    Raises
    ------
    ModelError
        If it is no list; a single text is none either.

    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"'{argument}' is {_short(given)}, expected a list: write [...]")
    return tuple(given)


def entries(argument: str, given: object) -> dict[str, object]:
    """
    Return what is in a dict.

    Parameters
    ----------
    argument : str
        What it is called.
    given : object
        What a caller gave.

    Returns
    -------
    dict

    Raises
    ------
    ModelError
        If it is none.

    """
    if not isinstance(given, Mapping):
        raise ModelError(f"'{argument}' is {_short(given)}, expected a dict of values by name")
    return dict(given)


def _short(given: object) -> str:
    """Return what was given, cut where it is long."""
    text = ' '.join(repr(given).split())
    return text if len(text) <= 60 else f'{text[:57]}...'
