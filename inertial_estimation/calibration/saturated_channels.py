# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Channels of an FT sensor that stay at the end of their range while gravity goes on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.dead_channels import AXES
from inertial_estimation.calibration.raw_slopes import RawSlopes
from inertial_estimation.errors import LogError

Array = NDArray[np.float64]

MOST_AT_END = 0.03
"""Share of samples with the very largest or smallest value, from which it is looked at."""
FEWEST_AT_END = 10
GOES_ON = 0.05
"""
Of the spread of a channel, that of what gravity makes of these samples. A pose that is held makes
none, whatever it is.
"""
LED = 0.5
"""Of the way from the middle to the end, that gravity makes of it there."""
STEPS = 2.0
"""
Least steps of the converter that it is, as a coarse one has many samples at each value: half of a
step to both sides has a spread of 0.3.
"""


def require_unsaturated(raw: Array, accelerations: Array, slopes: RawSlopes, what: str) -> None:
    """
    Refuse a channel that stays at one end of its values while gravity goes on.

    raw (n, 6); accelerations (n, 3) [m/s^2].
    """
    expected = slopes.offset + accelerations @ slopes.slopes.T
    for k in range(6):
        values = np.unique(raw[:, k])
        if len(values) < FEWEST_AT_END:
            continue
        least = max(GOES_ON * raw[:, k].std(), STEPS * float(np.diff(values).min()))
        for end, which in ((values[-1], 'largest'), (values[0], 'smallest')):
            at = raw[:, k] == end
            if at.sum() < FEWEST_AT_END or at.mean() < MOST_AT_END:
                continue
            # Gravity leads there, not somebody who pushes.
            middle = np.median(raw[:, k])
            led = np.median(expected[at, k] - middle) / (end - middle) > LED
            if led and expected[at, k].std() > least:
                raise LogError(
                    f'{what}: number {k + 1} ({AXES[k]} of a wrench) of six readings is at its '
                    f'{which} value, {end:.6g}, in {at.mean():.0%} of the samples while gravity '
                    'goes on: its range ends there; tilt the body less that way, or hang a '
                    'lighter one on'
                )
