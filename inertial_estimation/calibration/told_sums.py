# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What of several sensors is told while the supports share the load in an unknown way, in words.

Sensors with the same supports beyond them carry the same unknown load: their difference is told.
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

    Parameters
    ----------
    names : sequence of str
        The sensors.
    beyond : ndarray of bool, shape (n, m)
        Which of m supports each of them has on one side; some, but not all.

    Returns
    -------
    tuple of str
        Such as ``l_leg - l_foot`` or ``l_leg + r_leg``; what follows from these is not said.

    """
    groups: dict[Key, list[str]] = {}
    for name, row in zip(names, beyond, strict=True):
        groups.setdefault(tuple(row.tolist()), []).append(name)
    differences = [f'{members[0]} - {name}' for members in groups.values() for name in members[1:]]
    sums = [' + '.join(groups[key][0] for key in keys) for keys in _covers(tuple(groups))]
    return (*differences, *sums)


def _covers(keys: tuple[Key, ...]) -> list[tuple[Key, ...]]:
    """Return the choices of sides that hold each support once."""
    return [
        chosen
        for size in range(2, len(keys) + 1)
        for chosen in combinations(keys, size)
        if (np.array(chosen, dtype=int).sum(axis=0) == 1).all()
    ]
