# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of an estimated signal with a reference that may lag behind it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array

MAX_LAG, LAG_STEP = 0.1, 0.0025
"""Lags that are tried, to both sides [s]."""
MAX_BRIDGE = 3.0
"""Intervals between samples that are interpolated, in usual ones."""
MIN_SAMPLES = 10


def compare(times: Array, estimate: Array, reference: Array) -> dict[str, float] | None:
    """
    Return errors of an estimate [Nm], and by how much the reference comes later [s].

    times (n,) [s]; estimate, reference (n,); None: too few samples, or a constant reference. The
    lag is where the error varies least; NaN: beyond the limit. All lags are judged on the same
    samples, those without a gap within the limit, of which there are `n_at_lag`.
    """
    both = np.isfinite(estimate) & np.isfinite(reference)
    if both.sum() < MIN_SAMPLES or np.ptp(reference[both]) == 0.0:
        return None
    error = (estimate - reference)[both]
    most = round(MAX_LAG / LAG_STEP)
    lags = LAG_STEP * np.arange(-most, most + 1)
    delayed = np.array([_interpolate(times - lag, times, estimate) for lag in lags])
    usable = np.isfinite(delayed).all(axis=0) & np.isfinite(reference)
    errors = delayed[:, usable] - reference[usable]
    best = int(np.argmin(errors.std(axis=1))) if usable.sum() >= MIN_SAMPLES else 0
    known = best not in (0, len(lags) - 1)
    changes = np.ptp(estimate[both]) > 0.0
    return {
        'n_samples': int(both.sum()),
        'mean_error_nm': float(error.mean()),
        'rms_nm': _rms(error),
        'correlation': float(np.corrcoef(estimate[both], reference[both])[0, 1])
        if changes
        else np.nan,
        'lag_s': float(lags[best]) if known else np.nan,
        'rms_at_lag_nm': _rms(errors[best]) if known else np.nan,
        'rms_without_lag_nm': _rms(errors[most]) if known else np.nan,
        'n_at_lag': int(usable.sum()),
    }


def changing(reference: Array) -> NDArray[np.bool_]:
    """Return the columns of a reference (n, m) that change: the others are not measured."""
    low, high = (f.reduce(reference, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
    return np.asarray(high > low)


def _interpolate(wanted: Array, times: Array, values: Array) -> Array:
    """Interpolate linearly between neighbours that are both numbers and close in time."""
    right = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
    before, after = times[right - 1], times[right]
    share = (wanted - before) / (after - before)
    near = after - before <= MAX_BRIDGE * float(np.median(np.diff(times)))
    result = values[right - 1] + share * (values[right] - values[right - 1])
    return np.where((share >= 0.0) & (share <= 1.0) & near, result, np.nan)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
