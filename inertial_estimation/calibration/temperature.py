# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How the reading of an FT sensor goes with its temperature.

wrench = matrix raw + k (T - T0) - offset: coefficients k and offset are linear in what is missing
of the predicted wrench. A coefficient is told only by a temperature that changes, and that changes
otherwise than time and load do: a sensor that warms up evenly drifts in the same way as one whose
offset walks, and one that is warm where its load is large as one whose matrix is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.blocks import contiguous_blocks, covariances_by_blocks
from inertial_estimation.calibration.outliers import finite_rows, mild_weights, undisturbed
from inertial_estimation.errors import LogError, ModelError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROBUST_STEPS = 10
MOST_LEFT_OUT = 0.5
LEAST_TOUCH = np.repeat([3.0, 0.3], 3)
"""What the best fit misses by less is no touch [N, Nm]."""
COLDEST, HOTTEST = -60.0, 150.0
"""
Of the temperatures that an FT sensor has, by far [degrees Celsius]. Those of rooms are 290 and
more in kelvin.
"""
SAME = 1e-9
"""A spread below this part of the values is round-off."""


@dataclass(frozen=True)
class TemperatureSettings:
    """When a log tells temperature coefficients."""

    least_range: float = 2.0
    """Between the coldest and the warmest twentieth of the samples [K]."""
    most_explained: float = 0.95
    """Part of the temperature's variance that time, or the load, may explain."""
    n_blocks: int = 10
    """Contiguous parts of the log, the draws that deviations rest on."""
    reach: float = 0.1
    """How long a touch lasts before and after what shows of it [s]."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 0.0 < self.least_range < np.inf:
            raise ModelError(
                f"'least_range' is {self.least_range}, expected kelvins above 0",
                about=('least_range',),
            )
        if not 0.0 < self.most_explained < 1.0:
            raise ModelError(f"'most_explained' is {self.most_explained}, expected 0 to 1")


class TemperatureFit(NamedTuple):
    """Temperature coefficients of a sensor."""

    coefficients: Array
    """Added per kelvin above the reference, shape (6,) [N/K, Nm/K]."""
    deviations: Array
    """Of them, from blocks of the log, shape (6,) [N/K, Nm/K]."""
    reference: float
    """Temperature at which nothing is added [degrees Celsius]."""
    offset: Array
    """That goes with them, subtracted, shape (6,) [N, Nm]."""
    offset_deviations: Array
    """Of it, shape (6,) [N, Nm]."""
    range: tuple[float, float]
    """Temperatures that a twentieth of the samples is below, and above [degrees Celsius]."""
    explained_by_time: float
    """Part of the temperature's variance that a straight line over time explains."""
    explained_by_load: float
    """Part that the predicted wrench explains."""
    rms_before: Array
    """What is left without coefficients, shape (6,) [N, Nm]."""
    rms: Array
    """What is left with them, shape (6,) [N, Nm]."""
    used: Mask
    """Samples that were used, shape (n,)."""
    n_disturbed: int
    """Samples with values that were left out as something else acts in them."""


def implausible(temperatures: Array) -> str:
    """
    Say what is wrong with temperatures that no FT sensor has.

    temperatures (n,) [degrees Celsius].
    """
    usual = float(np.median(temperatures))
    if COLDEST <= usual <= HOTTEST:
        return ''
    return (
        f'its temperature is {usual:.2f}, expected {COLDEST:g} to {HOTTEST:g} degrees Celsius: if '
        'it is in kelvin, let its driver subtract 273.15, as sensor_msgs/Temperature says'
    )


def fit_temperature(
    wrenches: Array,
    predicted: Array,
    temperatures: Array,
    times: Array,
    *,
    reference: float | None = None,
    settings: TemperatureSettings | None = None,
    name: str = 'the sensor',
) -> TemperatureFit:
    """
    Fit temperature coefficients and offset of one sensor.

    Least squares of wrench + k (T - T0) - offset - predicted.

    Parameters
    ----------
    wrenches : ndarray, shape (n, 6)
        matrix raw, NaN where there are none [N, Nm].
    predicted : ndarray, shape (n, 6)
        What the sensor should say; zero throughout for a load that stays [N, Nm].
    temperatures : ndarray, shape (n,)
        Of the sensor [degrees Celsius].
    times : ndarray, shape (n,)
        In order [s].
    reference : float, optional
        T0. Default: the mean temperature of the log.
    settings : TemperatureSettings, optional
        What is asked of the log.
    name : str, optional
        What the sensor is called, for messages.

    Returns
    -------
    TemperatureFit

    Raises
    ------
    ShapeError
        If the arrays do not belong together.
    LogError
        If the temperature cannot be one, hardly changes, goes with time or with the load, the log
        is too short, or most of it is disturbed.

    """
    chosen = settings or TemperatureSettings()
    n = len(times)
    for what, array, shape in (
        ('wrenches', wrenches, (n, 6)),
        ('predicted', predicted, (n, 6)),
        ('temperatures', temperatures, (n,)),
    ):
        if array.shape != shape:
            raise ShapeError(what, shape, array.shape)
    known = finite_rows(np.column_stack([wrenches, predicted, temperatures]))
    if not known.any():
        raise LogError(f'no instant has a reading, a predicted wrench and a temperature of {name}')
    if said := implausible(temperatures[known]):
        raise LogError(f'{name}: {said}')
    _require_range(temperatures[known], chosen, name)
    missing = predicted - wrenches
    used = known.copy()
    used[known] = _undisturbed(missing[known], temperatures[known], times[known], chosen)
    n_disturbed = int(known.sum() - used.sum())
    if n_disturbed > MOST_LEFT_OUT * known.sum():
        raise LogError(
            f'{n_disturbed} of {known.sum()} samples of {name} are far from what the others say: '
            'choose a part of the log in which nothing touches it'
        )
    told = temperatures[used]
    limits = _require_range(told, chosen, name)
    by_time = _explained(told, times[used, None])
    by_load = _explained(told, predicted[used])
    _require_apart(by_time, by_load, chosen, name)
    zero = float(told.mean()) if reference is None else reference
    columns = np.column_stack([told - zero, -np.ones(len(told))])
    found, deviations = _solve(columns, missing[used], times[used], chosen)
    return TemperatureFit(
        coefficients=found[0],
        deviations=deviations[0],
        reference=zero,
        offset=found[1],
        offset_deviations=deviations[1],
        range=limits,
        explained_by_time=by_time,
        explained_by_load=by_load,
        rms_before=missing[used].std(axis=0),
        rms=np.sqrt(((columns @ found - missing[used]) ** 2).mean(axis=0)),
        used=used,
        n_disturbed=n_disturbed,
    )


def _require_range(
    temperatures: Array, settings: TemperatureSettings, name: str
) -> tuple[float, float]:
    """Return where most temperatures are; raise if that is too narrow."""
    low, high = (float(limit) for limit in np.quantile(temperatures, [0.05, 0.95]))
    if high - low < settings.least_range:
        raise LogError(
            f'the temperature of {name} stays between {low:.2f} and {high:.2f} degrees Celsius, '
            f"by less than 'least_range', {settings.least_range:g} K, which tells no coefficient: "
            'record the sensor as it warms up',
            about=('least_range',),
        )
    return low, high


def _require_apart(
    by_time: float, by_load: float, settings: TemperatureSettings, name: str
) -> None:
    """Raise if temperature is not to be told from time or load."""
    if by_time > settings.most_explained:
        raise LogError(
            f'the temperature of {name} goes evenly with time, which explains {by_time:.3f} of '
            f'its variance, more than {settings.most_explained:g}: a drift of the offset would '
            'look the same; record a longer log in which it also cools down, or settles'
        )
    if by_load > settings.most_explained:
        raise LogError(
            f'the temperature of {name} goes with its load, which explains {by_load:.3f} of its '
            f'variance, more than {settings.most_explained:g}: a wrong matrix would look the '
            'same; move through the same loads while cold and while warm'
        )


def _explained(values: Array, by: Array) -> float:
    """Return the part of a variance that a linear combination of columns explains."""
    centred = values - values.mean()
    others = by - by.mean(axis=0)
    moving = others.std(axis=0) > SAME * np.maximum(np.abs(by).max(axis=0), SAME)
    if not moving.any():
        return 0.0
    scaled = others[:, moving] / others[:, moving].std(axis=0)
    left = centred - scaled @ np.linalg.lstsq(scaled, centred, rcond=SAME)[0]
    return float(1.0 - (left @ left) / (centred @ centred))


def _solve(
    columns: Array, missing: Array, times: Array, settings: TemperatureSettings
) -> tuple[Array, Array]:
    """Return coefficients and offset, (2, 6), and deviations of both."""
    blocks = contiguous_blocks(times, settings.n_blocks)
    # Orthogonal columns: a reference far from the temperatures of the log costs no digits.
    Q, R = np.linalg.qr(columns)
    found: Array = np.linalg.solve(R, Q.T @ missing)
    left = missing - columns @ found
    inverse = np.linalg.inv(R)
    covariances = inverse @ covariances_by_blocks(Q, left, blocks) @ inverse.T
    deviations: Array = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)).T
    return found, deviations


def _undisturbed(
    missing: Array, temperatures: Array, times: Array, settings: TemperatureSettings
) -> Mask:
    """Tell which samples nothing else acts in, by a fit on which they do not pull."""
    centred = temperatures - temperatures.mean()
    columns = np.column_stack([centred, np.ones(len(centred))])
    root = np.ones(len(centred))
    left = missing
    for _ in range(ROBUST_STEPS):
        weighted = root[:, None] * columns
        found = np.linalg.lstsq(weighted, root[:, None] * missing, rcond=None)[0]
        left = missing - columns @ found
        root = np.sqrt(mild_weights(left))
    return undisturbed(times, left, settings.reach, LEAST_TOUCH)
