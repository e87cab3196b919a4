# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of public functions as arrays and tuples, or errors with their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, NameNotFound, ShapeError

ORTHONORMAL = 1e-4
"""Rotations may be off by this: files print them with a few digits."""


def numbers(
    argument: str, given: object, shape: tuple[int, ...] | None = None, *, finite: bool = True
) -> Array:
    """Return a read-only float64 copy of numbers."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None or given is None:
        text = f'{argument} is {_short(given)}, expected numbers'
        raise ModelError(text, about=(argument,)) from None
    if shape is not None and array.shape != shape:
        raise ShapeError(argument, shape, array.shape)
    if finite and not np.isfinite(array).all():
        raise ModelError(f'{argument} is {_short(given)}, which is not finite', about=(argument,))
    array.flags.writeable = False
    return array


def rotation_matrix(argument: str, given: object) -> Array:
    """Return a rotation (3, 3)."""
    R = numbers(argument, given, (3, 3))
    if not np.allclose(R @ R.T, np.eye(3), rtol=0.0, atol=ORTHONORMAL) or np.linalg.det(R) < 0.0:
        raise ModelError(f'{argument} holds {_short(R)}, which is no rotation', about=(argument,))
    return R


def pose_matrix(argument: str, given: object) -> Array:
    """Return a homogeneous matrix (4, 4) [m]."""
    H = numbers(argument, given, (4, 4))
    rotation_matrix(argument, H[:3, :3])
    if (H[3] != [0.0, 0.0, 0.0, 1.0]).any():
        raise ModelError(f'{argument} is {_short(H)}, no rotation and origin', about=(argument,))
    return H


def stacked(argument: str, given: object, *tail: int) -> Array:
    """Return numbers (..., *tail); an array of such is returned as it is."""
    n = len(tail)
    if type(given) is np.ndarray and given.dtype == np.float64 and given.shape[-n:] == tail:
        return given
    array = numbers(argument, given, finite=False)
    if array.shape[-n:] != tail:
        raise ShapeError(argument, ('...', *tail), array.shape)
    return array


def indices(argument: str, given: object, kind: str, known: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of things that are named, or numbered from 0."""
    if isinstance(given, (str, int, np.integer)):
        given = (given,)
    found = []
    for item in _items(argument, given):
        if isinstance(item, str):
            if item not in known:
                raise NameNotFound(kind, item, known, f"'{argument}' names {item!r}")
            item = list(known).index(item)
        if not isinstance(item, (int, np.integer)) or isinstance(item, bool):
            raise ModelError(f"'{argument}' holds {_short(item)}, expected names or numbers")
        if not 0 <= item < len(known):
            raise ModelError(f"'{argument}' holds {item}, expected 0 to {len(known) - 1}")
        found.append(int(item))
    return tuple(found)


def names(argument: str, given: object) -> tuple[str, ...]:
    """Return names; one alone is a list of one."""
    if isinstance(given, str):
        return (given,)
    found = _items(argument, given)
    for item in found:
        if not isinstance(item, str):
            raise ModelError(f"'{argument}' holds {_short(item)}, expected names")
    return tuple(str(item) for item in found)


def _items(argument: str, given: object) -> tuple[object, ...]:
    if not isinstance(given, Iterable):
        raise ModelError(f"'{argument}' is {_short(given)}, expected a list: write [...]")
    return tuple(given)


def _short(given: object) -> str:
    """Return a value as text, cut where it is long."""
    text = repr(given)
    if hasattr(given, '_fields') or text.count('\n') > 3:
        text = f'a {type(given).__name__}'
    text = ' '.join(text.split())
    return text if len(text) <= 60 else f'{text[:57]}...'
