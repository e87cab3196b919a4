# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the sensors of a log should have read, given all others, minus what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.momentum_verdict import NOISE_FACTOR, PART
from inertial_estimation.estimation.sensor_residuals import SensorResiduals, sensor_residuals
from inertial_estimation.logs.check_figures import SensorResidualReport
from inertial_estimation.logs.replay import Replay, make_estimator
from inertial_estimation.logs.situations import Indices, Mask, Situation
from inertial_estimation.sample import Array
from inertial_estimation.uncertainty.momentum_noise import MomentumNoise

MOST_INSTANTS = 200
"""Evenly spread: each FT sensor is left out of the estimate of each of them."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
MOST_SITUATIONS = 4
"""Rarer ones have few of these instants, and each has plans of its own."""


def residual_reports(
    replay: Replay, situations: Sequence[Situation], judged: Mask
) -> tuple[tuple[SensorResidualReport, ...], int]:
    """
    Predict sensors from each other at some instants of a log.

    Parameters
    ----------
    replay : Replay
        Its readings, without those of frozen intervals.
    situations : sequence of Situation
        Which contacts are there when, from `find_situations`.
    judged : ndarray of bool, shape (n,)
        Samples that count; if none does, all do.

    Returns
    -------
    reports : tuple of SensorResidualReport
        Of each IMU and FT sensor.
    n_instants : int
        At how many instants it was tried.

    """
    robot = replay.robot
    samples = replay.recording.without_frozen(sensor.name for sensor in robot.ft_sensors)
    chosen = _choose(judged if judged.any() else np.ones_like(judged))
    estimator = make_estimator(robot, replay.settings, calibration=replay.calibration)
    found: list[tuple[SensorResiduals, Indices]] = []
    for situation in situations[:MOST_SITUATIONS]:
        rows = np.intersect1d(chosen, situation.rows)
        if len(rows):
            contacts = situation.parts.contacts
            found.append((sensor_residuals(estimator, samples.take(rows), contacts), rows))
    if not found:
        return (), 0
    rows = np.concatenate([rows for _, rows in found])
    rates, accelerations, fts = (
        np.concatenate(parts) for parts in zip(*(residuals for residuals, _ in found))
    )
    wrenches = replay.calibration.apply(samples.ft_readings[rows])
    noise = _Noise(replay)
    reports = []
    for k, imu in enumerate(robot.imus):
        for quantity, unit, values, readings in (
            ('angular_velocity', 'rad/s', rates, samples.angular_velocities[rows]),
            ('acceleration', 'm/s^2', accelerations, samples.proper_accelerations[rows]),
        ):
            what = _What(imu.name, 'imu', quantity, unit, noise.of_imu(imu.name, quantity))
            reports.append(_report(what, values[:, k], readings[:, k]))
    for k, sensor in enumerate(robot.ft_sensors):
        for quantity, unit, axes in (('force', 'N', slice(3)), ('moment', 'Nm', slice(3, 6))):
            what = _What(sensor.name, 'ft', quantity, unit, noise.of_fts[axes])
            reports.append(_report(what, fts[:, k, axes], wrenches[:, k, axes]))
    return tuple(reports), len(rows)


class _Noise:
    """About what noise leaves of a residual; for a warning no more is needed."""

    def __init__(self, replay: Replay) -> None:
        settings, robot = replay.settings, replay.robot
        self._settings = settings
        velocities = MomentumNoise(settings, robot).velocities(replay.recording.rates)
        self._joints = float(np.linalg.norm(velocities))
        given = [settings.ft_of(sensor.name).noise for sensor in robot.ft_sensors]
        self.of_fts: Array = np.linalg.norm(np.array(given).reshape(-1, 6), axis=0)
        """Of all FT sensors together, as one rests on the others, (6,) [N, Nm]."""
        if not replay.clean.contacts:
            # Nobody says that nothing touches the robot: what it feels is told as residuals.
            self.of_fts[:] = np.nan

    def of_imu(self, name: str, quantity: str) -> Array:
        """Return that of an IMU and of what it is predicted from, [rad/s] or [m/s^2]."""
        given = self._settings.imu_of(name)
        if quantity == 'acceleration':
            return np.full(6, given.accelerometer_noise)
        return np.array([*(given.gyroscope_noise,) * 6, self._joints])


class _What(NamedTuple):
    """Which readings are looked at."""

    sensor: str
    kind: str
    quantity: str
    unit: str
    noise: Array
    """Deviations that add up; NaN: not known."""


def _choose(judged: Mask) -> Indices:
    """Return instants that do for a mean."""
    rows = np.flatnonzero(judged)
    places = np.linspace(0, len(rows) - 1, min(len(rows), MOST_INSTANTS)).round()
    return np.asarray(rows[np.unique(places.astype(np.intp))])


def _report(what: _What, values: Array, readings: Array) -> SensorResidualReport:
    """Sum up residuals (n, 3) at the instants where there are some."""
    known = np.isfinite(values).all(axis=1)
    values, readings = values[known], readings[known]
    n = len(values)
    lengths, read = (np.linalg.norm(v, axis=1) for v in (values, readings))
    rms, rms_reading = (float(np.sqrt(np.mean(v**2))) if n else np.nan for v in (lengths, read))
    limit = NOISE_FACTOR * float(np.linalg.norm(what.noise))
    return SensorResidualReport(
        sensor=what.sensor,
        kind=what.kind,
        quantity=what.quantity,
        unit=what.unit,
        n_instants=n,
        mean=tuple(values.mean(axis=0).tolist()) if n else (np.nan,) * 3,
        rms=rms,
        largest=float(lengths.max()) if n else np.nan,
        rms_reading=rms_reading,
        doubtful=n >= FEWEST and rms > PART * rms_reading and rms > limit,
    )
