# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What of several sensors is told while the supports share the load in an unknown way, in words.

Sensors with the same supports beyond them carry the same unknown load: their difference is told.
So is that of a sensor and those that together have its supports, as of a trunk and both arms.
Sensors whose supports together are all supports carry the whole load: their sum is told. Wrenches
are moved to one frame and counted in one direction before they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Key = tuple[bool, ...]


def told_sums(names: Sequence[str], beyond: Mask) -> tuple[str, ...]:
    """
    Say which sums and differences of shared sensors are told.

    beyond (n, m).
    """
    groups: dict[Key, list[str]] = {}
    for name, row in zip(names, beyond, strict=True):
        groups.setdefault(tuple(row.tolist()), []).append(name)
    differences = [f'{members[0]} - {name}' for members in groups.values() for name in members[1:]]
    every = (True,) * beyond.shape[1]
    for key in groups:
        others = tuple(one for one in groups if one != key)
        differences += [_joined(' - ', groups, (key, *parts)) for parts in _covers(others, key)]
    sums = [_joined(' + ', groups, keys) for keys in _covers(tuple(groups), every)]
    return (*differences, *sums)


def _joined(sign: str, groups: dict[Key, list[str]], keys: Sequence[Key]) -> str:
    """Return the first sensors of some groups in words."""
    return sign.join(groups[key][0] for key in keys)


def _covers(keys: tuple[Key, ...], whole: Key) -> list[tuple[Key, ...]]:
    """Return the choices of sides that hold each support of a whole once, and no other."""
    return [
        chosen
        for size in range(2, len(keys) + 1)
        for chosen in combinations(keys, size)
        if (np.array(chosen, dtype=int).sum(axis=0) == np.array(whole, dtype=int)).all()
    ]
