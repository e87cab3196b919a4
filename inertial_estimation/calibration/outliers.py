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

    Parameters
    ----------
    values : ndarray, shape (n, m)
        Anything.

    Returns
    -------
    ndarray of bool, shape (n,)

    """
    found: Mask = np.logical_and.reduce(np.isfinite(values), axis=1)
    return found


def scales(residuals: Array) -> Array:
    """
    Return a deviation of each column that few bad samples do not change.

    Parameters
    ----------
    residuals : ndarray, shape (n, m)
        Of a fit.

    Returns
    -------
    ndarray, shape (m,)
        What four of five absolute values stay below, as a standard deviation of normal noise.

    """
    found: Array = np.quantile(np.abs(residuals), SHARE, axis=0) / NORMAL
    return found


def distances(residuals: Array, least: Array | float = 0.0) -> Array:
    """
    Return the largest residual of each sample in robust deviations of its column.

    Parameters
    ----------
    residuals : ndarray, shape (n, m)
        Of a fit.
    least : float or ndarray, shape (m,), optional
        No deviation is taken to be smaller.

    Returns
    -------
    ndarray, shape (n,)

    """
    size = np.maximum(scales(residuals), least)
    # A column may be exact, as without noise: round-off is no outlier.
    floor = 1e-9 * max(1.0, float(np.abs(residuals).max(initial=0.0)))
    found: Array = (np.abs(residuals) / np.maximum(size, floor)).max(axis=1)
    return found


def mild_weights(residuals: Array) -> Array:
    """
    Return weights with which samples far off no longer pull [Huber].

    Parameters
    ----------
    residuals : ndarray, shape (n, m)
        Of the fit so far.

    Returns
    -------
    ndarray, shape (n,)
        1 up to `MILD` deviations, then falling with their inverse.

    """
    found: Array = np.minimum(1.0, MILD / np.maximum(distances(residuals), MILD))
    return found


def undisturbed(times: Array, residuals: Array, reach: float, least: Array | float = 0.0) -> Mask:
    """
    Tell which samples are neither far off nor beside one that is.

    Parameters
    ----------
    times : ndarray, shape (n,)
        In order [s].
    residuals : ndarray, shape (n, m)
        Of a robust fit.
    reach : float
        How far a touch reaches before and after what shows of it [s].
    least : float or ndarray, shape (m,), optional
        Residuals below this are no touch, however small those of the others are.

    Returns
    -------
    ndarray of bool, shape (n,)

    """
    bad = times[distances(residuals, np.asarray(least) / FAR) > FAR]
    if not len(bad):
        return np.ones(len(times), dtype=bool)
    after = np.searchsorted(bad, times, side='left')
    next_ = bad[np.minimum(after, len(bad) - 1)]
    last = bad[np.maximum(after - 1, 0)]
    found: Mask = np.minimum(np.abs(next_ - times), np.abs(times - last)) > reach
    return found
