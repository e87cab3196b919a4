# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples that touches or knocks spoil: left out together with those beside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHARE, NORMAL = 0.8, 1.2816
"""
Part of the samples that tells the deviation, and their largest over it, of normal noise.

Not the half: models miss more in some postures than in others, and a robot that stands still for
half of a log is no reason to take its movements for touches.
"""
FAR = 6.0
"""Times the robust deviation from which a sample is far off."""
MILD = 2.0
"""Times the robust deviation up to which a sample counts in full while spoiled ones are sought."""


def finite_rows(values: Array) -> Mask:
    """
    Tell which rows hold neither NaN nor infinity.

    values (n, m); returns (n,).
    """
    found: Mask = np.logical_and.reduce(np.isfinite(values), axis=1)
    return found


def scales(residuals: Array) -> Array:
    """
    Return a deviation of each column that few bad samples do not change.

    residuals (n, m); returns (m,).
    """
    found: Array = np.quantile(np.abs(residuals), SHARE, axis=0) / NORMAL
    return found


def distances(residuals: Array, least: Array | float = 0.0) -> Array:
    """
    Return the largest residual of each sample in robust deviations of its column.

    residuals (n, m); least (m,); returns (n,).
    """
    size = np.maximum(scales(residuals), least)
    # A column may be exact, as without noise: round-off is no outlier.
    floor = 1e-9 * max(1.0, float(np.abs(residuals).max(initial=0.0)))
    found: Array = (np.abs(residuals) / np.maximum(size, floor)).max(axis=1)
    return found


def mild_weights(residuals: Array) -> Array:
    """
    Return weights with which samples far off no longer pull [Huber].

    residuals (n, m); returns (n,).
    """
    found: Array = np.minimum(1.0, MILD / np.maximum(distances(residuals), MILD))
    return found


def undisturbed(times: Array, residuals: Array, reach: float, least: Array | float = 0.0) -> Mask:
    """
    Tell which samples are neither far off nor beside one that is.

    times (n,) [s]; residuals (n, m); reach [s]; least (m,); returns (n,).
    """
    bad = times[distances(residuals, np.asarray(least) / FAR) > FAR]
    if not len(bad):
        return np.ones(len(times), dtype=bool)
    after = np.searchsorted(bad, times, side='left')
    next_ = bad[np.minimum(after, len(bad) - 1)]
    last = bad[np.maximum(after - 1, 0)]
    found: Mask = np.minimum(np.abs(next_ - times), np.abs(times - last)) > reach
    return found
