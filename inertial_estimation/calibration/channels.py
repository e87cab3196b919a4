# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Dead and saturated channels of an FT sensor."""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.raw_slopes import RawSlopes, fit_slopes
from inertial_estimation.errors import LogError

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
MIN_READINGS = 7
"""Fewer may agree by chance where a sensor has coarse steps."""
ROUND_OFF = 1e-13
MIN_SLOPE_RATIO = 0.002
"""Slope by gravity over the median of the channels; gauges of 32 real sensors: 0.006 and more."""
MIN_SATURATED_SAMPLES, MIN_SATURATED_SHARE = 10, 0.03
"""Samples at the largest or smallest value from which a channel may be saturated."""
MIN_EXPECTED_SPREAD, MIN_EXPECTED_STEPS = 0.05, 2.0
"""Spread that gravity predicts for these samples: share of the channel's, and converter steps."""
MIN_EXPECTED_LEVEL = 0.5
"""Predicted level of these samples, from the median of the channel (0) to its end (1)."""


def constant_channels(readings: Array) -> Mask:
    """Return the channels (6,) that never change while others do; readings (n, 6)."""
    known = readings[np.isfinite(readings).all(axis=1)]
    if len(known) < MIN_READINGS:
        return np.zeros(6, dtype=bool)
    constant: Mask = np.ptp(known, axis=0) <= ROUND_OFF * np.abs(known).max(axis=0)
    return constant & (not constant.all())


def names_of(channels: Mask) -> str:
    """Return the names of channels (6,), by number and as of a wrench."""
    return ', '.join(f'{k + 1} ({AXES[k]})' for k in np.flatnonzero(channels))


def require_live(
    raw: Array, accelerations: Array, matrix: Array | None, length_scale: float, what: str
) -> None:
    """
    Refuse a channel that never changes, or does not follow gravity while others do.

    raw (n, 6); accelerations (n, 3) [m/s^2]; matrix (6, 6); length_scale [m].
    """
    if (np.ptp(raw, axis=0) == 0.0).all():
        return  # A frozen sensor, which `AffineSubspace.require_gap` reports.
    constant = constant_channels(raw)
    if constant.any():
        raise LogError(f'{what}: channel {names_of(constant)} never changes', about=('readings',))
    sizes = np.linalg.norm(fit_slopes(raw, accelerations).slopes, axis=1)
    if matrix is None or np.array_equal(matrix, np.eye(6)):
        sizes = sizes[:3]
    else:
        scale = np.repeat([1.0, 1.0 / length_scale], 3)
        sizes = sizes * np.linalg.norm(scale[:, None] * matrix, axis=0)
    still = np.resize(sizes < MIN_SLOPE_RATIO * np.median(sizes), 6) & (np.arange(6) < len(sizes))
    if still.any():
        raise LogError(
            f'{what}: channel {names_of(still)} does not follow gravity', about=('readings',)
        )


def require_unsaturated(raw: Array, accelerations: Array, slopes: RawSlopes, what: str) -> None:
    """
    Refuse a channel that stays at one end of its values while gravity leads beyond it.

    raw (n, 6); accelerations (n, 3) [m/s^2].
    """
    expected = slopes.offset + accelerations @ slopes.slopes.T
    for k, channel in enumerate(raw.T):
        values, middle = np.unique(channel), np.median(channel)
        if len(values) < MIN_SATURATED_SAMPLES:
            continue
        steps = MIN_EXPECTED_STEPS * float(np.diff(values).min())
        least = max(MIN_EXPECTED_SPREAD * channel.std(), steps)
        for end in (values[-1], values[0]):
            at = channel == end
            if at.sum() < MIN_SATURATED_SAMPLES or at.mean() < MIN_SATURATED_SHARE:
                continue
            # By gravity, not by a push.
            level = np.median(expected[at, k] - middle) / (end - middle)
            if level > MIN_EXPECTED_LEVEL and expected[at, k].std() > least:
                raise LogError(
                    f'{what}: channel {k + 1} ({AXES[k]}) is saturated at {end:.6g} in '
                    f'{at.mean():.0%} of the samples'
                )
