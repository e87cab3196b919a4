# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Touches that nobody reports, from readings that jump while the robot is still.

In a pose that is held, readings minus prediction stay as they are, whatever offsets and masses
are. A touch that comes and goes stands out from their median; one that lasts for most of the pose
is the median, and is found by nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FORCE, MOMENT = 0.01, 0.003
"""Smaller steps are no touch, over the robot's weight; moments [m]."""
LEAST_FORCE, LEAST_MOMENT = 1.0, 0.1
"""Nor are these, on a robot that weighs next to nothing [N, Nm]."""
OUTLYING = 6.0
"""Robust standard deviations: one in a billion of a normal noise is further out."""
OF_NORMAL = 1.4826
"""Standard deviation of a normal noise over the median of its absolute values."""
REACH_NS = 100_000_000
"""Around an instant that stands out, the touch comes and goes."""


def find_touches(
    differences: Array, labels: NDArray[np.intp], stamp_ns: NDArray[np.int64], weight: float
) -> Mask:
    """
    Tell when something touches a robot that is still.

    differences (n, n_fts, 6) [N, Nm]; labels (n,); stamp_ns (n,) [ns]; weight [N]; returns (n,).
    """
    force = max(FORCE * weight, LEAST_FORCE)
    moment = max(MOMENT * weight, LEAST_MOMENT)
    least = np.repeat([force, moment], 3)
    found = np.zeros(len(differences), dtype=bool)
    for k in range(differences.shape[1]):
        known: Mask = np.logical_and.reduce(np.isfinite(differences[:, k]), axis=1)
        for pose in range(labels.max(initial=-1) + 1):
            rows = np.flatnonzero(known & (labels == pose))
            if not len(rows):
                continue
            off = np.abs(differences[rows, k] - np.median(differences[rows, k], axis=0))
            limit = np.maximum(OUTLYING * OF_NORMAL * np.median(off, axis=0), least)
            found[rows[(off > limit).any(axis=1)]] = True
    at = stamp_ns[found]
    near = np.searchsorted(at, stamp_ns - REACH_NS, 'left')
    past = np.searchsorted(at, stamp_ns + REACH_NS, 'right')
    return np.asarray(past > near)
