# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples at rest: those whose accelerometer reads the size of gravity and whose body hardly turns.

What is left out is counted by its reason. Whether somebody touches the body shows in the readings
of the FT sensor and is looked for in `raw_slopes`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.accelerometer_bias import Bias, accelerometer_bias
from inertial_estimation.errors import LogError, ShapeError
from inertial_estimation.model.arguments import numbers

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GRAVITY = 9.80665
"""Standard gravity [m/s^2]."""
UNIT_DOUBT = 0.1
"""
An accelerometer that is off by a larger share of gravity reads another unit, or no gravity.
"""
STILL_ACCELERATION = 0.3
"""
Beyond that from the median size a sample moves [m/s^2]. Biases that are not known and errors of
scale make the size depend on orientation by about a third of it.
"""
STILL_TURNING = 0.2
"""
Faster than that the body turns [rad/s]. The centripetal acceleration 1 m off the axis is then
0.04 m/s^2, less than what accelerometers are off by.
"""
NOT_FINITE, MOVING, TOUCHED = 'not finite', 'moving', 'touched'
"""Reasons to leave samples out."""


class QuietSamples(NamedTuple):
    """Which samples are at rest."""

    kept: Mask
    """Shape (n,)."""
    left_out: dict[str, int]
    """Samples by reason, all reasons."""
    gravity: float
    """Median size of the accelerometer's readings, less their bias [m/s^2]."""
    bias: Bias
    """Of the accelerometer, taken off; zero if it is not known or not worth a word."""


def quiet_samples(
    raw: Array,
    accelerations: Array,
    turning: Array | None = None,
    *,
    bias: Array | None = None,
    what: str = 'the log',
    still_acceleration: float = STILL_ACCELERATION,
    still_turning: float = STILL_TURNING,
) -> QuietSamples:
    """
    Tell which samples are at rest.

    raw (n, 6); accelerations (n, 3) [m/s^2]; turning (n, 3) [rad/s]; bias (3,) [m/s^2];
    still_acceleration, still_turning [m/s^2].
    """
    n = len(raw)
    for name, array, shape in (
        ('raw', raw, (n, 6)),
        ('accelerations', accelerations, (n, 3)),
        ('turning', turning, (n, 3)),
    ):
        if array is not None and array.shape != shape:
            raise ShapeError(name, shape, array.shape)
    finite = np.isfinite(raw).all(axis=1) & np.isfinite(accelerations).all(axis=1)
    if not finite.any():
        raise LogError(
            f'{what}: no sample has finite readings of both the FT sensor and the accelerometer'
        )
    off = _bias(accelerations[finite], bias)
    sizes = np.linalg.norm(accelerations - off.bias, axis=1)
    gravity = float(np.median(sizes[finite]))
    if abs(gravity - GRAVITY) > UNIT_DOUBT * GRAVITY:
        raise LogError(
            f'{what}: the accelerometer reads {gravity:.3g} at the median, expected about '
            f"{GRAVITY:.2f} m/s^2: state its 'unit', or take one that measures gravity",
            about=('unit',),
        )
    with np.errstate(invalid='ignore'):
        moves = np.abs(sizes - gravity) > still_acceleration
        if turning is not None:
            moves |= np.linalg.norm(turning, axis=1) > still_turning
    kept = finite & ~moves
    left_out = {NOT_FINITE: int((~finite).sum()), MOVING: int((finite & moves).sum()), TOUCHED: 0}
    return QuietSamples(kept, left_out, gravity, off)


def _bias(accelerations: Array, given: Array | None) -> Bias:
    """Return the bias that is taken off."""
    if given is not None:
        return Bias(numbers('bias', given, (3,)), np.zeros(3))
    found = accelerometer_bias(accelerations)
    return found if found.is_there else Bias(np.zeros(3), np.zeros(3))
