# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Touches that do not end: what a sensor says beyond the prediction is another before and after.

A robust fit leaves out the instants in which a touch begins or ends, and takes what lasts between
for the truth: a cover or a cable that bears on one posture for half of a log moves readings as a
load would, and a matrix is found that is deaf to it, and to true loads along with it. Such a step
shows at the edges of what is left out. A matrix that is off makes a step there too, but one that
goes with the load: it is no larger than the matrix is off times the change of the load.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_types import AffineSettings

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

BESIDE = 0.5
"""Before and after what is left out, in which readings are compared [s]."""
FEWEST = 5
"""Instants on either side that tell a level."""
BY_A_MATRIX = 0.5
"""
Of the change of the load is what a matrix that is off may make of it, as a gain of one half is
where a matrix is told to be doubtful.
"""


class Step(NamedTuple):
    """What lasts of something that was left out."""

    start: float
    """Last instant before [s]."""
    stop: float
    """First instant after [s]."""
    change: Array
    """Of the reading beyond the prediction, shape (6,) [N, Nm]."""
    size: float
    """The same as one figure, moments over the length [N]."""
    load: float
    """Change of the prediction likewise [N]."""


def lasting_steps(
    times: Array, beyond: Array, predicted: Array, used: Mask, settings: AffineSettings
) -> tuple[Step, ...]:
    """
    Find instants that were left out, and after which readings do not come back.

    times (n,) [s]; beyond (n, 6) [N, Nm]; predicted (n, 6) [N, Nm]; used (n,).
    """
    present = np.logical_and.reduce(np.isfinite(beyond), axis=1)
    t, kept = times[present], used[present]
    levels = np.hstack([beyond[present], predicted[present]])
    edges = np.flatnonzero(np.diff(kept))
    found = []
    for last in edges[kept[edges]]:
        again = edges[edges > last]
        if not len(again):
            break
        first = int(again[0]) + 1
        before = kept & (t <= t[last]) & (t > t[last] - BESIDE)
        after = kept & (t >= t[first]) & (t < t[first] + BESIDE)
        if min(before.sum(), after.sum()) < FEWEST:
            continue
        change = levels[after].mean(axis=0) - levels[before].mean(axis=0)
        size, load = (
            float(np.linalg.norm(one / settings.units)) for one in (change[:6], change[6:])
        )
        if size > settings.least_touch and size > BY_A_MATRIX * load:
            found.append(Step(float(t[last]), float(t[first]), change[:6], size, load))
    return tuple(found)
