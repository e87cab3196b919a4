# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Temperature coefficients of an FT sensor from predicted wrenches.

wrench = matrix raw + k (T - T0) - offset: k and offset are linear in what is missing of the
predicted wrench. The temperature must change, and neither evenly with time, as an offset drifts,
nor with the load, as with a wrong matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Finding

MAX_EXPLAINED = 0.95
"""Share of the temperature's variance that time, or the load, may explain."""
MIN_RANGE = 2.0
"""Between the coldest and the warmest twentieth of the samples [K]."""
ROUND_OFF = 1e-9


class TemperatureFit(NamedTuple):
    """Temperature coefficients of a sensor."""

    coefficients: Array
    """Added per kelvin above the reference, shape (6,) [N/K, Nm/K]."""
    deviations: Array
    """Of the coefficients, shape (6,)."""
    reference: float
    """Temperature at which nothing is added [degrees Celsius]."""
    offset: Array
    """That belongs to the coefficients, subtracted, shape (6,) [N, Nm]."""
    offset_deviations: Array
    """Shape (6,)."""
    range: tuple[float, float]
    """Temperatures of the coldest and the warmest twentieth [degrees Celsius]."""
    rms_before: Array
    rms: Array
    """Residual without and with coefficients, shape (6,) [N, Nm]."""
    used: Mask
    """Samples that were used, shape (n,)."""
    n_disturbed: int
    """Samples with values that were left out as touched."""

    def findings(self, subject: str, predicted: Array, noise: Array) -> Iterator[Finding]:
        """Yield contradictions; predicted (n, 6), used samples; noise (6,) [N, Nm]."""
        size = np.sqrt((predicted**2).mean(axis=0) + self.rms_before**2)
        share = self.n_disturbed / (self.n_disturbed + len(predicted))
        yield from stats.contradictions(subject, 'prediction', self.rms, size, noise, share)


def fit_temperature(
    wrenches: Array,
    predicted: Array,
    temperatures: Array,
    times: Array,
    *,
    name: str = 'the sensor',
) -> TemperatureFit:
    """
    Fit temperature coefficients and offset of one sensor.

    Least squares of wrench + k (T - T0) - offset - predicted, with the mean temperature T0.

    Parameters
    ----------
    wrenches : ndarray, shape (n, 6)
        matrix raw, NaN where there are none [N, Nm].
    predicted : ndarray, shape (n, 6)
        Wrench without offset; zero throughout for a constant load [N, Nm].
    temperatures : ndarray, shape (n,)
        Of the sensor [degrees Celsius].
    times : ndarray, shape (n,)
        In order [s].
    name : str
        Name of the sensor in errors.

    Returns
    -------
    TemperatureFit

    Raises
    ------
    ShapeError
        If the arrays do not belong together.
    LogError
        If the temperature is not in degrees Celsius, hardly changes, or is linear in time or load,
        or the log is too short.

    """
    n = len(times)
    stats.require_shape('wrenches', wrenches, n, 6)
    stats.require_shape('predicted', predicted, n, 6)
    stats.require_shape('temperatures', temperatures, n)
    missing = predicted - wrenches
    known = np.isfinite(missing).all(axis=1) & np.isfinite(temperatures)
    if not known.any():
        raise LogError(f'no sample has a reading, a predicted wrench and a temperature of {name}')
    if reason := stats.implausible(temperatures[known]):
        raise LogError(f'{name}: {reason}')
    used = known.copy()
    used[known] = stats.undisturbed(
        (temperatures - temperatures[known].mean())[known, None], missing[known] / stats.SCALE,
        times[known],
    )  # fmt: skip
    n_disturbed = int(known.sum() - used.sum())
    warmth, target = temperatures[used], missing[used]
    low, high = (float(limit) for limit in np.quantile(warmth, [0.05, 0.95]))
    if high - low < MIN_RANGE:
        span = f'between {low:.2f} and {high:.2f} degrees Celsius, limit {MIN_RANGE:g} K'
        raise LogError(f'the temperature of {name} stays {span}')
    mean = float(warmth.mean())
    for what, columns in (('time', times[used, None]), ('load', predicted[used])):
        sizes, centred = columns.std(axis=0), warmth - mean
        moving = sizes > ROUND_OFF * np.maximum(np.abs(columns).max(axis=0), ROUND_OFF)
        others = ((columns - columns.mean(axis=0)) / np.where(moving, sizes, np.inf))[:, moving]
        left = centred - others @ np.linalg.lstsq(others, centred, rcond=ROUND_OFF)[0]
        if (share := 1.0 - (left @ left) / (centred @ centred)) > MAX_EXPLAINED:
            part = f'{share:.3f} of the variance of the temperature, limit {MAX_EXPLAINED:g}'
            raise LogError(f'{name}: {what} explains {part}')
    blocks = stats.contiguous_blocks(times[used])
    columns = np.column_stack([warmth - mean, -np.ones(len(warmth))])
    found, covariances = stats.fit_by_blocks(columns, target, blocks)
    deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)).T
    return TemperatureFit(
        coefficients=found[0], deviations=deviations[0], reference=mean, offset=found[1],
        offset_deviations=deviations[1], range=(low, high), rms_before=target.std(axis=0),
        rms=np.sqrt(((columns @ found - target) ** 2).mean(axis=0)), used=used,
        n_disturbed=n_disturbed,
    )  # fmt: skip
