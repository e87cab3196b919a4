# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Matrices of FT sensors from a log in which one contact carries the robot.

Every sensor is fitted by itself to what the model says of the side without that contact. A touch
on that side spoils all sensors between it and the contact: what one of them notices is left out of
all. The weight of the workshop matrix is chosen for each sensor; another part of the log may be
named to test what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_fit import fit_affine, undisturbed_samples
from inertial_estimation.calibration.affine_types import AffineFit, AffineSettings
from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.lasting_steps import lasting_steps
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.affine_notes import doubts_of, in_words, notes_of
from inertial_estimation.logs.predicted_wrenches import Predicted
from inertial_estimation.logs.recording import TimeRange

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class AffineRequest:
    """Which sensors are fitted, and to what."""

    sensors: tuple[str, ...] = ()
    """Their names; empty: all whose predictions rest on no assumed joint."""
    time_range: TimeRange = field(default_factory=TimeRange)
    """The part of the log that they are fitted to."""
    test_range: TimeRange | None = None
    """The part that what was found is tested on; None: none."""
    settings: AffineSettings = field(default_factory=AffineSettings)


class Tested(NamedTuple):
    """What is left of another part of the log, where nothing else acts."""

    rms_before: Array
    """With the matrix as it was and its best offset of the fitted part, shape (6,) [N, Nm]."""
    rms: Array
    """With what was found, shape (6,) [N, Nm]."""
    n_samples: int
    n_disturbed: int
    """Instants in which something else acts, which do not count."""


class AffineResult(NamedTuple):
    """One sensor."""

    name: str
    fit: AffineFit
    tested: Tested | None
    residuals_before: Array
    """Of all instants with the matrix as it was, shape (n, 6) [N, Nm]."""
    residuals: Array
    """Of all instants with what was found, shape (n, 6) [N, Nm]."""
    notes: tuple[str, ...]
    """What whoever uses it must know."""
    doubts: tuple[str, ...]
    """Why nobody should use it; part of the notes."""


class AffineResults(NamedTuple):
    """What a log tells."""

    sensors: tuple[AffineResult, ...]
    refused: dict[str, str]
    """Sensors that nobody named and whose matrix the log does not tell, with the reason."""


def calibrate_affine(
    predicted: Predicted,
    calibrations: dict[str, SensorCalibration],
    request: AffineRequest,
) -> AffineResults:
    """Fit matrix and offset of FT sensors."""
    names = tuple(calibrations)
    rows = _chosen(request.sensors, names, predicted.assumed)
    wanted = np.array([
        predicted.wrenches[:, k] - _thermal(sensor, predicted.samples.ft_temperatures, k)
        for k, sensor in enumerate(calibrations.values())
    ])  # fmt: skip
    priors = [sensor.matrix for sensor in calibrations.values()]
    own = _Own(predicted, wanted, priors, names, request.settings)
    found: list[AffineResult] = []
    refused: dict[str, str] = {}
    for k in rows:
        try:
            found.append(_result(own, k, request))
        except LogError as error:
            if request.sensors or len(refused) == len(rows) - 1:
                raise
            refused[names[k]] = str(error)
    return AffineResults(tuple(found), refused)


class _Own:
    """All sensors of a log, and when nothing else acts on each."""

    def __init__(
        self,
        predicted: Predicted,
        wanted: Array,
        priors: Sequence[Array],
        names: Sequence[str],
        settings: AffineSettings,
    ) -> None:
        self.predicted, self.wanted, self.priors = predicted, wanted, priors
        self.names, self.settings = names, settings
        self._usable: dict[int, Mask] = {}

    def raw(self, k: int) -> Array:
        """Return raw readings of a sensor, (n, 6)."""
        found: Array = self.predicted.samples.ft_readings[:, k]
        return found

    def usable(self, k: int) -> Mask:
        """Tell when neither a sensor nor one that is further out on its side feels a touch."""
        found = self._alone(k).copy()
        for other in self.predicted.within(k):
            # A sensor that sleeps, or whose prediction is a guess, has no say.
            seen = np.isfinite(self.raw(other) + self.wanted[other]).all(axis=1)
            if seen.any() and not self.predicted.assumed[other]:
                found &= self._alone(other) | ~seen
        return found

    def _alone(self, k: int) -> Mask:
        """Tell when a sensor itself feels no touch."""
        if k not in self._usable:
            self._usable[k] = undisturbed_samples(
                self.raw(k), self.wanted[k], self.predicted.times, prior=self.priors[k],
                settings=self.settings, name=self.names[k],
            )  # fmt: skip
        return self._usable[k]


def _chosen(asked: Sequence[str], names: Sequence[str], assumed: Mask) -> list[int]:
    """Return the rows of the sensors to fit."""
    for name in asked:
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'sensors' names '{name}'")
    if asked:
        return [names.index(name) for name in names if name in asked]
    rows = [k for k in range(len(names)) if not assumed[k]]
    if not rows:
        raise ConfigError(
            'what every FT sensor should say rests on joints that nobody reports: name those that '
            "shall be fitted all the same in 'sensors'",
            about=('sensors',),
        )
    return rows


def _thermal(sensor: SensorCalibration, temperatures: Array | None, k: int) -> Array:
    """Return what temperature adds to a sensor's wrench, (n, 6) or (6,) [N, Nm]."""
    if not sensor.temperature_coefficients.any():
        return np.zeros(6)
    if temperatures is None:
        raise LogError(
            'a sensor has temperature coefficients, but the log has no temperatures: record them, '
            'or leave the coefficients out'
        )
    warmth = temperatures[:, k] - sensor.reference_temperature
    found: Array = warmth[:, None] * sensor.temperature_coefficients
    return found


def _result(own: _Own, k: int, request: AffineRequest) -> AffineResult:
    """Fit one sensor, and test it."""
    own.predicted.require_live(k, own.names[k])
    times, raw, wanted = own.predicted.times, own.raw(k), own.wanted[k]
    inside = request.time_range.mask(times)
    if not inside.any():
        raise LogError(
            f'no sample lies between {request.time_range.start} s and {request.time_range.stop} s'
        )
    usable = own.usable(k)
    fit = fit_affine(
        raw[inside], wanted[inside], times[inside], prior=own.priors[k],
        usable=usable[inside], settings=_with_noise(request.settings, own.predicted.noise[k]),
        name=own.names[k],
    )  # fmt: skip
    kept = np.zeros(len(times), dtype=bool)
    kept[inside] = fit.used
    before = raw @ own.priors[k].T - wanted
    before = before - before[kept].mean(axis=0)
    after = raw @ fit.matrix.T - fit.offset - wanted
    tested = None
    if request.test_range is not None:
        tested = _test(request.test_range.mask(times), usable, before, after)
    steps = lasting_steps(
        times[inside], before[inside], wanted[inside], fit.used, request.settings
    )
    doubts = doubts_of(fit, wanted[inside][fit.used], request.settings)
    notes = (*doubts, *notes_of(fit, bool(own.predicted.assumed[k])), *map(in_words, steps))
    return AffineResult(own.names[k], fit, tested, before, after, notes, doubts)


def _with_noise(settings: AffineSettings, noise: Array) -> AffineSettings:
    """Return settings with the noise of one sensor, unless it is given."""
    if settings.noise is not None:
        return settings
    return replace(settings, noise=float(np.sqrt(((noise / settings.units) ** 2).mean())))


def _test(mask: Mask, usable: Mask, before: Array, after: Array) -> Tested:
    """Return what is left of a part of the log."""
    present = mask & np.isfinite(after).all(axis=1)
    counted = present & usable
    if not counted.any():
        raise LogError(
            "'test_range' holds no sample with a reading in which nothing else acts: choose "
            'another one',
            about=('test_range',),
        )
    return Tested(
        np.sqrt((before[counted] ** 2).mean(axis=0)),
        np.sqrt((after[counted] ** 2).mean(axis=0)),
        int(counted.sum()),
        int(present.sum() - counted.sum()),
    )


def calibration_of(
    result: AffineResult, before: SensorCalibration, *, support: str, date: str, temperature: float
) -> SensorCalibration:
    """
    Return what a sensor is calibrated with from now on.

    temperature [degrees Celsius].
    """
    fit = result.fit
    step = Provenance(
        method=f'matrix and offset from the model, one support: {support}',
        date=date,
        n_samples=int(fit.used.sum()),
        temperature=temperature,
        spread=tuple(float(x) for x in fit.rms),
        notes=result.notes,
    )
    return SensorCalibration(
        fit.matrix,
        fit.offset,
        before.temperature_coefficients,
        before.reference_temperature,
        (*before.provenance, step),
    )
