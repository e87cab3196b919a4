# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Dead and saturated channels of an FT sensor."""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import LogError

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
MIN_READINGS = 7
"""Fewer may agree by chance where a sensor has coarse steps."""
ROUND_OFF = 1e-13
MIN_SLOPE_RATIO = 0.002
"""Slope by gravity over the median of the channels; gauges of 32 real sensors: 0.006 and more."""
MIN_SATURATED_SAMPLES, MIN_SATURATED_SHARE = 10, 0.03
"""Samples at the largest or smallest value from which a channel may be saturated."""
MIN_SPREAD, MIN_EXPECTED_STEPS = 0.05, 2.0
"""Spread that gravity predicts for these samples: share of the channel's, and converter steps."""


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


def require_unsaturated(raw: Array, expected: Array, what: str) -> None:
    """
    Refuse a channel that stays at its largest or smallest value while gravity changes it.

    raw (n, 6); expected (n, 6): by gravity, not by a push.
    """
    least = max(MIN_SATURATED_SAMPLES, MIN_SATURATED_SHARE * len(raw))
    for k, channel in enumerate(raw.T):
        values = np.unique(channel)
        limit = max(MIN_SPREAD * channel.std(), MIN_EXPECTED_STEPS * np.diff(values).min())
        for end in values[[0, -1]]:
            at = channel == end
            if at.sum() >= least and expected[at, k].std() > limit:
                raise LogError(
                    f'{what}: channel {k + 1} ({AXES[k]}) is saturated at {end:.6g} in '
                    f'{at.mean():.0%} of the samples'
                )


def names_of(channels: Mask) -> str:
    """Return the names of channels (6,), by number and as of a wrench."""
    return ', '.join(f'{k + 1} ({AXES[k]})' for k in np.flatnonzero(channels))
