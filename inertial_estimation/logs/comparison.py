# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How an estimated signal compares with a reference that may lag behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]

MAX_LAG = 0.1
LAG_STEP = 0.0025
LONGEST_BRIDGE = 3.0
"""Neighbours further apart than this many usual intervals are not interpolated between."""
FEWEST = 10
"""Fewer instants than this tell nothing."""


class Comparison(NamedTuple):
    """An estimate against a reference, in the unit of the two."""

    n_samples: int
    """Instants where both are numbers."""
    mean_error: float
    rms: float
    correlation: float
    lag: float
    """
    How much the reference comes later: where the error varies least, whatever its mean.

    NaN if no lag up to `MAX_LAG` is best [s].
    """
    rms_at_lag: float
    """Likewise NaN."""
    rms_without_lag: float
    """On the instants of `rms_at_lag`, which are fewer than those of `rms`; likewise NaN."""
    n_at_lag: int
    """How many these are: no gap of the estimate within `MAX_LAG`, no end of the log."""


class _Lag(NamedTuple):
    """The last fields of a `Comparison`."""

    lag: float
    rms_at_lag: float
    rms_without_lag: float
    n_at_lag: int


def compare(times: Array, estimate: Array, reference: Array) -> Comparison | None:
    """
    Compare two signals and find by how much the reference comes later.

    times (n,) [s]; estimate, reference (n,).
    """
    both = np.isfinite(estimate) & np.isfinite(reference)
    if both.sum() < FEWEST or np.ptp(reference[both]) == 0.0:
        return None
    error = (estimate - reference)[both]
    return Comparison(
        n_samples=int(both.sum()),
        mean_error=float(error.mean()),
        rms=_rms(error),
        correlation=_correlation(estimate[both], reference[both]),
        **_find_lag(times, estimate, reference)._asdict(),
    )


def speaking(reference: Array) -> Mask:
    """
    Tell which joints have a torque of their own; a column that never changes is none.

    reference (n, n_joints) [Nm or N]; returns (n_joints,).
    """
    finite = np.isfinite(reference)
    low = np.where(finite, reference, np.inf).min(axis=0)
    high = np.where(finite, reference, -np.inf).max(axis=0)
    changing: Mask = high > low
    return changing


def _find_lag(times: Array, estimate: Array, reference: Array) -> _Lag:
    """Find the lag; every one is judged on the same instants."""
    most = round(MAX_LAG / LAG_STEP)
    lags = LAG_STEP * np.arange(-most, most + 1)
    delayed = np.array([_interpolate(times - lag, times, estimate) for lag in lags])
    usable = np.isfinite(delayed).all(axis=0) & np.isfinite(reference)
    none = _Lag(np.nan, np.nan, np.nan, int(usable.sum()))
    if none.n_at_lag < FEWEST:
        return none
    errors = delayed[:, usable] - reference[usable]
    best = int(np.argmin(errors.std(axis=1)))
    if best in (0, len(lags) - 1):
        return none
    return _Lag(float(lags[best]), _rms(errors[best]), _rms(errors[most]), none.n_at_lag)


def _interpolate(wanted: Array, times: Array, values: Array) -> Array:
    """Interpolate linearly between neighbours that are both numbers and close in time."""
    right = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
    before, after = times[right - 1], times[right]
    share = (wanted - before) / (after - before)
    known: NDArray[np.bool_] = (share >= 0.0) & (share <= 1.0)
    known &= after - before <= LONGEST_BRIDGE * float(np.median(np.diff(times)))
    result: Array = values[right - 1] + share * (values[right] - values[right - 1])
    result[~known] = np.nan
    return result


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _correlation(a: Array, b: Array) -> float:
    """Return the correlation, NaN where one of the two never changes."""
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return float('nan')
    return float(np.corrcoef(a, b)[0, 1])
