# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and temperature coefficients of FT sensors of a robot on a support [T section 4.7]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.affine import fit_affine, undisturbed_samples
from inertial_estimation.calibration.calibration_file import (
    Provenance,
    SensorCalibration,
    iso_date,
    stack_calibrations,
)
from inertial_estimation.calibration.residual_statistics import SCALE, constant_channels, names_of
from inertial_estimation.calibration.temperature import fit_temperature
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.findings import Finding
from inertial_estimation.model.arguments import indices
from inertial_estimation.sample import SampleBatch


class PredictedWrenches(NamedTuple):
    """Readings and predictions of all FT sensors."""

    samples: SampleBatch
    """With raw readings, NaN where a sensor was frozen."""
    times: Array
    """Shape (n,) [s]."""
    wrenches: Array
    """Predicted, (n, n_fts, 6), in each sensor's frame, NaN where unknown [N, Nm]."""
    assumed: Mask
    """Sensors whose predictions depend on assumed joints, shape (n_fts,)."""
    sides: Mask
    """Submodels on each sensor's side without the support, (n_fts, n_submodels)."""
    support: str
    """Frame of the only contact."""
    noise: Array
    """Standard deviations of the readings behind their filter, (n_fts, 6) [N, Nm]."""
    noisy: bool
    """True if all channels change with noise."""

    def require_live(self, k: int, name: str) -> None:
        """Refuse a sensor with a channel that never changes while others do."""
        dead = constant_channels(self.samples.ft_readings[:, k])
        if self.noisy and dead.any():
            raise LogError(f'{name}: channel {names_of(dead)} never changes')


class SensorFit(NamedTuple):
    """Fit of one sensor."""

    name: str
    fit: Any
    """`AffineFit` or `TemperatureFit`."""
    calibration: SensorCalibration
    used: Mask
    """Samples that were used, shape (n,)."""
    assumed: bool
    """True if the prediction depends on assumed joints."""
    findings: tuple[Finding, ...] = ()
    test: dict[str, Any] | None = None
    """Root mean squares before and after, (6,) [N, Nm], of undisturbed samples of another part."""


ASSUMED = 'depends on assumed joints'
"""Note of the provenance."""


def calibrate_affine(
    predicted: PredictedWrenches,
    calibrations: Mapping[str, SensorCalibration],
    inside: Mask,
    *,
    test: Mask | None = None,
    sensors: Sequence[str] = (),
) -> tuple[list[SensorFit], dict[str, str]]:
    """
    Fit matrices and offsets of FT sensors; also return sensors that cannot be fitted, and why.

    inside (n,): samples of the fitted part; test (n,): of the part that it is tested on; sensors:
    default all whose predictions depend on no assumed joint.
    """
    names = list(calibrations)
    rows = list(indices('sensors', sensors, 'FT sensor', names))
    left_out = () if rows else (names[k] for k in np.flatnonzero(predicted.assumed))
    refused = {name: f'{name}: its prediction {ASSUMED}' for name in left_out}
    rows = rows or np.flatnonzero(~predicted.assumed).tolist()
    if not rows:
        raise ConfigError('the predictions of all FT sensors depend on assumed joints: name '
                          "'sensors'", about=('sensors',))  # fmt: skip
    if not inside.any():
        raise LogError('no sample lies in the part that is fitted')
    raw, times = predicted.samples.ft_readings, predicted.times
    before = stack_calibrations(calibrations.values())
    priors, slopes = before.matrices, before.temperature_coefficients
    temperatures = predicted.samples.ft_temperatures
    warmth = np.nan if temperatures is None else temperatures - before.reference_temperatures
    by_warmth = np.broadcast_to(warmth, predicted.wrenches.shape[:2])[..., None] * slopes
    wanted = predicted.wrenches - np.where(slopes == 0.0, 0.0, by_warmth)

    @cache
    def undisturbed(k: int) -> Mask:
        return undisturbed_samples(raw[:, k], wanted[:, k], times, priors[k], names[k])

    found: list[SensorFit] = []
    for k in rows:
        try:
            predicted.require_live(k, names[k])
            usable = undisturbed(k).copy()
            # A touch on the side of a sensor disturbs all sensors between it and the support.
            within = ~(predicted.sides & ~predicted.sides[k]).any(axis=1)
            for other in np.flatnonzero(within & ~predicted.assumed).tolist():
                seen = np.isfinite(raw[:, other] + wanted[:, other]).all(axis=1)
                if other != k and seen.any():
                    usable &= undisturbed(other) | ~seen
            noise = float(np.sqrt(((predicted.noise[k] / SCALE) ** 2).mean()))
            fit = fit_affine(
                raw[inside, k], wanted[inside, k], times[inside], prior=priors[k],
                usable=usable[inside], noise=noise, name=names[k],
            )  # fmt: skip
        except LogError as error:
            if sensors or (k == rows[-1] and not found):
                raise
            refused[names[k]] = str(error)
            continue
        used = np.zeros(len(inside), dtype=bool)
        used[inside] = fit.used
        tested = None
        if test is not None:
            former = raw[:, k] @ priors[k].T - wanted[:, k]
            former -= former[used].mean(axis=0)
            after = raw[:, k] @ fit.matrix.T - fit.offset - wanted[:, k]
            at = test & usable & np.isfinite(after).all(axis=1)
            if not at.any():
                raise LogError('the test part holds no undisturbed sample', about=('test',))
            rms_before, rms = (np.sqrt((x[at] ** 2).mean(axis=0)) for x in (former, after))
            tested = {'rms_before': rms_before, 'rms': rms, 'samples': int(at.sum())}
        findings, assumed = tuple(fit.findings(names[k], wanted[used, k])), predicted.assumed[k]
        celsius = np.empty(0) if temperatures is None else temperatures[inside, k]
        celsius = celsius[np.isfinite(celsius)]
        step = Provenance(
            f'matrix and offset from the model, one support: {predicted.support}',
            iso_date(predicted.samples.stamp_ns[inside][0]), int(used.sum()),
            celsius.mean() if len(celsius) else np.nan, fit.rms,
            [*(one.text for one in findings), *[ASSUMED] * bool(assumed)],
        )  # fmt: skip
        changed = calibrations[names[k]].after(step, matrix=fit.matrix, offset=fit.offset)
        found.append(SensorFit(names[k], fit, changed, used, bool(assumed), findings, tested))
    return found, refused


def calibrate_temperature(
    predicted: PredictedWrenches,
    calibrations: Mapping[str, SensorCalibration],
    *,
    sensors: Sequence[str] = (),
) -> list[SensorFit]:
    """Fit temperature coefficients of FT sensors; default: of those whose temperature is known."""
    names, times, held = list(calibrations), predicted.times, predicted.samples.ft_temperatures
    temperatures = np.full((len(times), len(names)), np.nan)
    for k, values in enumerate(() if held is None else held.T):
        # Samples hold the newest message; a sensor warms up steadily between two of them.
        news = np.flatnonzero(np.isfinite(values) & (values != np.append(np.nan, values[:-1])))
        if len(news):
            smooth = np.interp(times, times[news], values[news])
            temperatures[:, k] = np.where(np.isfinite(values), smooth, np.nan)
    known: Mask = np.logical_or.reduce(np.isfinite(temperatures), axis=0)
    rows = list(indices('sensors', sensors, 'FT sensor', names)) or np.flatnonzero(known).tolist()
    if not rows or not known[rows].all():
        of = ', '.join(names[k] for k in rows if not known[k]) or 'any FT sensor'
        raise ConfigError(f'no temperature of {of}: ft.<name>.temperature_topic names its topic')
    found = []
    for k in rows:
        name, load = names[k], predicted.wrenches[:, k]
        predicted.require_live(k, name)
        wrenches = predicted.samples.ft_readings[:, k] @ calibrations[name].matrix.T
        fit = fit_temperature(wrenches, load, temperatures[:, k], times, name=name)
        (low, high), assumed = fit.range, bool(predicted.assumed[k])
        step = Provenance(
            'temperature coefficients and offset from the model, one support: '
            f'{predicted.support}', iso_date(predicted.samples.stamp_ns[0]),
            int(fit.used.sum()), 0.5 * (low + high), fit.rms,
            [f'from {low:.1f} to {high:.1f} degrees Celsius', *[ASSUMED] * assumed],
        )  # fmt: skip
        changed = calibrations[name].after(
            step, offset=fit.offset, temperature_coefficients=fit.coefficients,
            reference_temperature=fit.reference,
        )  # fmt: skip
        findings = tuple(fit.findings(name, load[fit.used], predicted.noise[k]))
        found.append(SensorFit(name, fit, changed, fit.used, assumed, findings))
    return found
