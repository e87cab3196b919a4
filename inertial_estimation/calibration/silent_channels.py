# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Channels of an FT sensor that may be why data are refused: silent but for noise, or copies.

A moment may be silent as the body hangs in line with the sensor, and readings without noise may be
multiples of each other, so that neither refuses anything by itself.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.dead_channels import AXES
from inertial_estimation.calibration.raw_slopes import UNKNOWNS, fit_slopes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FOLLOWS = 10.0
"""
Mean square of what gravity explains over that of the rest, from which a channel follows gravity:
noise reaches that once in 100 000 logs.
"""
FORCES = 3
"""The first of six."""
SAME = 1e-9
"""One less the correlation of two channels that are one."""


def silent(raw: Array, accelerations: Array) -> Mask:
    """
    Tell which channels do not follow gravity.

    raw (n, 6); accelerations (n, 3) [m/s^2]; returns (6,).
    """
    found = fit_slopes(raw, accelerations)
    left = raw - found.offset - accelerations @ found.slopes.T
    rest = (left**2).sum(axis=0) / max(len(raw) - UNKNOWNS, 1)
    explained = np.maximum(raw.var(axis=0) * len(raw) - (left**2).sum(axis=0), 0.0)
    return np.asarray(explained / (UNKNOWNS - 1) < FOLLOWS * rest)


def copies(raw: Array) -> set[tuple[int, int]]:
    """
    Return pairs of channels that say the same, but for gain and offset.

    raw (n, 6).
    """
    centred = raw - raw.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=0)
    units = centred / np.where(sizes > 0.0, sizes, 1.0)
    return {
        (a, b) for a, b in combinations(range(6), 2) if abs(units[:, a] @ units[:, b]) > 1.0 - SAME
    }


def blamed(channels: Mask, pairs: set[tuple[int, int]], where: str = '') -> str:
    """
    Say which channels to look at first.

    channels (6,).
    """
    said, beside = [], ''
    if channels.any() and not channels.all():
        dead = np.flatnonzero(channels)
        which = ', '.join(f'{k + 1} ({AXES[k]} of a wrench)' for k in dead)
        said.append(f'number {which} of six readings does not follow gravity{where}')
        if dead[-1] >= FORCES:
            beside = ', unless the body hangs in line with a sensor that tells wrenches'
    said += [
        f'numbers {a + 1} and {b + 1} of six readings say the same{where}'
        for a, b in sorted(pairs)
        if not (channels[a] or channels[b])
    ]
    if not said:
        return ''
    return (
        f"{', and '.join(said)}: look at the sensor's cable and topic first, or at "
        f"'readings'{beside}"
    )
