# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the sensors of a log should have read, given all others, minus what they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.relative_motion import ImuPrediction
from inertial_estimation.estimation.residual_verdict import judge_residual, rms_change
from inertial_estimation.estimation.sensor_residuals import SensorResiduals, sensor_residuals
from inertial_estimation.logs.check_figures import SensorResidualReport
from inertial_estimation.logs.replay import Replay, make_estimator
from inertial_estimation.logs.residual_noise import Disturbance
from inertial_estimation.logs.situations import Indices, Mask, Situation
from inertial_estimation.sample import Array, SampleBatch

MOST_INSTANTS = 200
"""Evenly spread: each FT sensor is left out of the estimate of each of them."""
MOST_SITUATIONS = 4
"""Rarer ones have few of these instants, and each has plans of its own."""


def residual_reports(
    replay: Replay, situations: Sequence[Situation], judged: Mask
) -> tuple[tuple[SensorResidualReport, ...], int]:
    """
    Predict sensors from each other at some instants of a log.

    judged (n,).
    """
    robot = replay.robot
    samples = replay.recording.without_frozen(sensor.name for sensor in robot.ft_sensors)
    chosen = _choose(judged if judged.any() else np.ones_like(judged))
    found = _predict(replay, situations[:MOST_SITUATIONS], samples, chosen)
    if found is None:
        return (), 0
    # Without contacts nobody says that nothing touches the robot: what it feels is a residual.
    feels = not replay.clean.contacts
    readings = samples.take(found.rows)
    wrenches = replay.calibration.apply(readings.ft_readings, readings.ft_temperatures)
    reports = list(_of_imus(replay, found, readings))
    for k, sensor in enumerate(robot.ft_sensors):
        for quantity, unit, axes in (('force', 'N', slice(3)), ('moment', 'Nm', slice(3, 6))):
            what = _What(sensor.name, 'ft', quantity, unit, judges=not feels)
            residual = found.of('ft_readings', k, axes)
            reports.append(_report(what, residual, wrenches[:, k, axes]))
    return tuple(reports), len(found.rows)


def _of_imus(
    replay: Replay, found: _Found, readings: SampleBatch
) -> Iterator[SensorResidualReport]:
    """Yield what is left of angular velocity and acceleration of each IMU."""
    robot, settings = replay.robot, replay.settings
    sources = ImuPrediction(robot).sources
    # What is neglected varies with the motion, and no sensor is to blame.
    neglects = 'zero' in (settings.acceleration_source, settings.angular_acceleration_source)
    for k, imu in enumerate(robot.imus):
        for quantity, unit, name, values in (
            ('angular_velocity', 'rad/s', 'angular_velocities', readings.angular_velocities),
            ('acceleration', 'm/s^2', 'proper_accelerations', readings.proper_accelerations),
        ):
            source = values[:, sources[k]] if 0 <= sources[k] < len(sources) else None
            what = _What(imu.name, 'imu', quantity, unit, source)
            if neglects and quantity == 'acceleration':
                what = what._replace(may_vary=True)
            yield _report(what, found.of(name, k), values[:, k])


class _What(NamedTuple):
    """Which readings are looked at."""

    sensor: str
    kind: str
    quantity: str
    unit: str
    source: Array | None = None
    """Readings that it is predicted from, shape (n, 3); None: no such sensor."""
    may_vary: bool = False
    """Whether only what is constant speaks against the sensor."""
    judges: bool = True
    """Whether what is left may speak against the sensor at all."""


class _Residual(NamedTuple):
    """What is left of a sensor's reading, and what noise adds to it, each (n, 3)."""

    values: Array
    noise: Array
    is_whole: bool
    """Whether it is all noise."""


class _Found(NamedTuple):
    """Residuals of all sensors at some instants of the log."""

    rows: Indices
    residuals: tuple[SensorResiduals, ...]
    disturbed: tuple[SensorResiduals, ...]
    """The same with noise added to the readings."""
    is_whole: bool
    """Whether it is all noise."""

    def of(self, name: str, k: int, axes: slice = slice(3)) -> _Residual:
        """Return the residual of one sensor."""
        values = [getattr(part, name)[:, k, axes] for part in self.residuals]
        others = [getattr(part, name)[:, k, axes] for part in self.disturbed]
        joined = np.concatenate(values)
        return _Residual(joined, np.concatenate(others) - joined, self.is_whole)


def _predict(
    replay: Replay, situations: Sequence[Situation], samples: SampleBatch, chosen: Indices
) -> _Found | None:
    """Predict the sensors at the chosen instants that lie in one of the situations."""
    estimator = make_estimator(replay.robot, replay.settings, calibration=replay.calibration)
    disturbance = Disturbance(replay)
    rows: list[Indices] = []
    found: list[SensorResiduals] = []
    disturbed: list[SensorResiduals] = []
    for situation in situations:
        own = np.intersect1d(chosen, situation.rows)
        if not len(own):
            continue
        part, contacts = samples.take(own), situation.parts.contacts
        rows.append(own)
        found.append(sensor_residuals(estimator, part, contacts))
        disturbed.append(sensor_residuals(estimator, disturbance.of(part), contacts))
    if not rows:
        return None
    whole = disturbance.is_whole
    return _Found(np.concatenate(rows), tuple(found), tuple(disturbed), whole)


def _choose(judged: Mask) -> Indices:
    """Return instants that do for a mean."""
    rows = np.flatnonzero(judged)
    places = np.linspace(0, len(rows) - 1, min(len(rows), MOST_INSTANTS)).round()
    return np.asarray(rows[np.unique(places.astype(np.intp))])


def _report(what: _What, residual: _Residual, readings: Array) -> SensorResidualReport:
    """Sum up residuals at the instants where there are some."""
    known = np.isfinite(residual.values).all(axis=1)
    values, readings, noise = residual.values[known], readings[known], residual.noise[known]
    n = len(values)
    size = float(np.sqrt(np.mean(np.sum(noise**2, axis=1)))) if n else np.nan
    change = np.inf if what.may_vary else 0.0
    if n and what.source is not None:
        change = max(change, rms_change(what.source[known]))
    verdict = judge_residual(values, readings, size, whole=residual.is_whole, change=change)
    return SensorResidualReport(
        sensor=what.sensor,
        kind=what.kind,
        quantity=what.quantity,
        unit=what.unit,
        n_instants=n,
        mean=tuple(values.mean(axis=0).tolist()) if n else (np.nan,) * 3,
        rms=verdict.rms,
        largest=float(np.linalg.norm(values, axis=1).max()) if n else np.nan,
        rms_reading=float(np.sqrt(np.mean(np.sum(readings**2, axis=1)))) if n else np.nan,
        rms_change=verdict.change,
        noise=verdict.noise,
        noise_is_whole=residual.is_whole,
        constant=verdict.is_constant,
        doubtful=what.judges and verdict.doubtful,
    )
