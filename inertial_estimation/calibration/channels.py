# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Dead channels of an FT sensor."""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array, Mask

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
MIN_READINGS = 7
"""Fewer may agree by chance where a sensor has coarse steps."""
ROUND_OFF = 1e-13
MIN_SLOPE_RATIO = 0.002
"""Slope by gravity over the median of the channels; gauges of 32 real sensors: 0.006 and more."""


def constant_channels(readings: Array) -> Mask:
    """Return the channels (6,) that never change while others do; readings (n, 6)."""
    known = readings[np.isfinite(readings).all(axis=1)]
    if len(known) < MIN_READINGS:
        return np.zeros(6, dtype=bool)
    constant: Mask = np.ptp(known, axis=0) <= ROUND_OFF * np.abs(known).max(axis=0)
    return constant & (not constant.all())


def still_channels(slopes: Array, units: Array) -> Mask:
    """Return channels (6,) that do not follow gravity; slopes (6, 3); units (6,), 0: unlike."""
    sizes = np.linalg.norm(slopes, axis=1) * units
    return np.asarray((units > 0.0) & (sizes < MIN_SLOPE_RATIO * np.median(sizes[units > 0.0])))


def names_of(channels: Mask) -> str:
    """Return the names of channels (6,), by number and as of a wrench."""
    return ', '.join(f'{k + 1} ({AXES[k]})' for k in np.flatnonzero(channels))
