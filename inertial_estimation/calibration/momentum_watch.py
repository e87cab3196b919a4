# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
When the momentum of a robot contradicts its accelerations, which predictions rest on.

A filter that lags, velocities in another unit or IMUs that disagree show here, and FT sensors and
masses do not: see `estimation.momentum_check`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import PERIOD_NS, WINDOW_NS, MomentumCheck
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Mask = NDArray[np.bool_]
FIELDS = tuple(name for name in WrenchEstimate._fields if name != 'contacts')


def find_contradictions(
    robot: Robot, samples: SampleBatch, estimate: WrenchEstimate, limit: float
) -> Mask:
    """
    Tell in which windows of half a second the momentum contradicts the accelerations.

    limit [N]; returns (n,).
    """
    check = MomentumCheck(robot)
    stamps = samples.stamp_ns
    found = np.zeros(len(samples), dtype=bool)
    arrays = {name: np.asarray(getattr(estimate, name)) for name in FIELDS}
    windows, next_ns = 0, stamps[0] if len(stamps) else 0
    for k, stamp in enumerate(stamps.tolist()):
        if next_ns - PERIOD_NS <= stamp < next_ns:
            continue
        next_ns = stamp + PERIOD_NS
        rows = {name: array[k] for name, array in arrays.items()}
        check.add(samples[k], WrenchEstimate(contacts=estimate.contacts, **rows))
        if check.n_windows > windows:
            windows = check.n_windows
            begin = int(np.searchsorted(stamps, stamp - WINDOW_NS - PERIOD_NS))
            found[begin : k + 1] |= bool(check.last[0] > limit)
    return found
