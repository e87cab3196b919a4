# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Newest known FT readings, since which others change."""

from math import isfinite

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.sample import Sample

KNOWN_NS = 100_000_000
"""Time for which a reading that is missing is compared with the last one: steps take longer."""


class KnownReadings:
    """Of each sensor the newest known reading, (n_fts, 6), NaN: too old, and its stamp [ns]."""

    def __init__(self, n_fts: int) -> None:
        self.readings: Array = np.full((n_fts, 6), np.nan)
        self.stamps_ns = [0] * n_fts

    def changes(self, sample: Sample) -> tuple[Array, float]:
        """Take a sample; return changes of its readings, (n_fts, 6), and their sum of squares."""
        readings, stamp_ns, known = sample.ft_readings, sample.stamp_ns, self.readings
        changes, self.readings = readings - known, readings
        square = float(np.vdot(changes, changes))
        if isfinite(square):
            self.stamps_ns = [stamp_ns] * len(readings)
            return changes, square
        self.readings = readings.copy()
        for k, is_missing in enumerate(np.isnan(readings[:, 0]).tolist()):
            if not is_missing:
                self.stamps_ns[k] = stamp_ns
            elif abs(stamp_ns - self.stamps_ns[k]) <= KNOWN_NS:
                self.readings[k] = known[k]
        return changes, square
