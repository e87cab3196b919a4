# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Temperature coefficients of FT sensors from a log with temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.temperature import (
    TemperatureFit,
    TemperatureSettings,
    fit_temperature,
)
from inertial_estimation.errors import CallError, LogError, NameNotFound
from inertial_estimation.logs.predicted_wrenches import Predicted
from inertial_estimation.logs.raw_streams import read_temperature_topic

Array = NDArray[np.float64]

FARTHEST = 10.0
"""A temperature is not known so long before the first and after the last message [s]."""


class ThermalResult(NamedTuple):
    """One sensor."""

    name: str
    fit: TemperatureFit
    residuals_before: Array
    """Of all instants without coefficients, shape (n, 6) [N, Nm]."""
    residuals: Array
    """Of all instants with them, shape (n, 6) [N, Nm]."""
    notes: tuple[str, ...]
    """What whoever uses it must know."""


def read_temperatures(
    bag: str | Path, topics: Mapping[str, str], names: Sequence[str], stamps_ns: NDArray[np.int64]
) -> Array:
    """
    Return the temperatures of FT sensors at the instants of samples.

    stamps_ns (n,) [ns]; returns (n, n_fts) [degrees Celsius].
    """
    found = np.full((len(stamps_ns), len(names)), np.nan)
    for name, topic in topics.items():
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'topics' names '{name}'")
        stream = read_temperature_topic(bag, topic)
        known = np.isfinite(stream.values[:, 0])
        origin = int(stream.stamps_ns[0])
        times, values = stream.times(origin)[known], stream.values[known, 0]
        if not len(times):
            raise LogError(f"topic '{topic}' of the bag holds no finite temperature")
        order = np.argsort(times, kind='stable')
        at = (stamps_ns - origin) / 1e9
        near = (at > times.min() - FARTHEST) & (at < times.max() + FARTHEST)
        found[near, names.index(name)] = np.interp(at[near], times[order], values[order])
    return found


def calibrate_temperature(
    predicted: Predicted,
    temperatures: Array,
    calibrations: Mapping[str, SensorCalibration],
    settings: TemperatureSettings | None = None,
    reference: float | None = None,
    sensors: Sequence[str] = (),
) -> tuple[ThermalResult, ...]:
    """
    Fit temperature coefficients, with the offset that goes with them.

    temperatures (n, n_fts) [degrees Celsius]; reference [degrees Celsius].
    """
    names: list[str] = list(calibrations)
    known = [bool(np.isfinite(temperatures[:, k]).any()) for k in range(len(names))]
    for name in sensors:
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'sensors' names '{name}'")
        if not known[names.index(name)]:
            raise CallError(
                f"'sensors' names '{name}', of which the log has no temperature: name its topic, "
                "sensor_msgs/Temperature, with 'topics', or leave it out",
                about=('sensors', 'topics'),
            )
    wanted = sensors or names
    rows = [k for k, name in enumerate(names) if known[k] and name in wanted]
    if not rows:
        raise CallError(
            "no FT sensor of the log has a temperature: name 'topics' of sensor_msgs/Temperature",
            about=('topics',),
        )
    return tuple(
        _result(predicted, temperatures[:, k], list(calibrations.items())[k], int(k), settings,
                reference)
        for k in rows
    )  # fmt: skip


def _result(
    predicted: Predicted,
    temperatures: Array,
    sensor: tuple[str, SensorCalibration],
    k: int,
    settings: TemperatureSettings | None,
    reference: float | None,
) -> ThermalResult:
    """Fit one sensor."""
    name, calibration = sensor
    predicted.require_live(k, name)
    wrenches = predicted.samples.ft_readings[:, k] @ calibration.matrix.T
    fit = fit_temperature(
        wrenches, predicted.wrenches[:, k], temperatures, predicted.times,
        reference=reference, settings=settings, name=name,
    )  # fmt: skip
    missing = wrenches - predicted.wrenches[:, k]
    warm = (temperatures - fit.reference)[:, None] * fit.coefficients
    notes = ('rests on joints that nobody reports',) if predicted.assumed[k] else ()
    before = missing - missing[fit.used].mean(axis=0)
    return ThermalResult(name, fit, before, missing + warm - fit.offset, notes)


def calibration_of(
    result: ThermalResult, before: SensorCalibration, *, support: str, date: str
) -> SensorCalibration:
    """Return what a sensor is calibrated with from now on."""
    fit = result.fit
    step = Provenance(
        method=f'temperature coefficients and offset from the model, one support: {support}',
        date=date,
        n_samples=int(fit.used.sum()),
        temperature=0.5 * sum(fit.range),
        spread=tuple(float(x) for x in fit.rms),
        notes=(f'from {fit.range[0]:.1f} to {fit.range[1]:.1f} degrees Celsius', *result.notes),
    )
    return SensorCalibration(
        before.matrix, fit.offset, fit.coefficients, fit.reference, (*before.provenance, step)
    )
