# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Residuals of the sensors of a log against all others, and of the momentum against the wrenches.

Each record states the residual, the noise that the settings state, and whether it is doubtful.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import (
    WINDOW_NS,
    WINDOWS,
    MomentumCheck,
    is_doubtful,
)
from inertial_estimation.estimation.sensor_residuals import (
    imu_sources,
    judge_residual,
    rms_change,
    sensor_residuals,
)
from inertial_estimation.logs.results import Replay
from inertial_estimation.logs.situations import Situation
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.sensor_noise import NoiseModel, triangular_root
from inertial_estimation.uncertainty.stream_noise import MomentumNoise, stream_noise

MAX_SAMPLES = 200
"""Evenly spread over the log: the estimate is repeated without each FT sensor."""
MAX_SITUATIONS = 4
"""Most frequent ones that are looked at."""
SEED = 0
"""Of the disturbance by noise."""
Record = dict[str, Any]


def momentum_record(replay: Replay) -> Record | None:
    """Compare the change of momentum with the wrenches [T 2.84, 2.85], None: no window."""
    windows = list(_momentum_windows(replay))
    if not windows:
        return None
    spans, reports, noises = zip(*windows, strict=True)
    counts = np.array([report.windows for report in reports], dtype=float)

    def rms(values: Iterable[Array]) -> list[float]:
        return list(np.sqrt(counts @ np.array(list(values)) ** 2 / counts.sum()).tolist())

    unexplained = rms(report.unexplained for report in reports)
    change, noise = rms(report.change for report in reports), rms(noises)
    doubtful = map(is_doubtful, reports, noises)
    return {
        'windows': int(counts.sum()),
        'unexplained_force_n': unexplained[0],
        'unexplained_moment_nm': unexplained[1],
        'change_of_linear_momentum_n': change[0],
        'change_of_angular_momentum_nm': change[1],
        'noise_force_n': noise[0],
        'noise_moment_nm': noise[1],
        'doubtful_s': list(compress(spans, doubtful)),
    }


def _momentum_windows(replay: Replay) -> Iterator[tuple[tuple[float, float], Any, Array]]:
    """Yield time span, report and noise (2,) of about ten seconds each."""
    log, robot, estimate = replay.recording, replay.robot, replay.estimate
    samples, times = log.samples, log.times
    noise = MomentumNoise(replay.settings, robot)
    names = [name for name in WrenchEstimate._fields if name != 'contacts']
    check, first, seen_ns, last = MomentumCheck(robot), 0, 0, len(times) - 1
    for row, stamp_ns in enumerate(samples.stamp_ns.tolist()):
        fields: dict[str, Any] = {name: getattr(estimate, name)[row] for name in names}
        check.add(samples[row], WrenchEstimate(contacts=estimate.contacts, **fields))
        # Often enough that no window is forgotten.
        if row < last and 0 <= stamp_ns - seen_ns < WINDOW_NS // 2:
            continue
        seen_ns = stamp_ns
        report = check.report()
        if report.windows == WINDOWS or (row == last and report.windows):
            span = (float(times[first]), float(times[row]))
            yield span, report, noise.deviation(check, log.rates)
            check, first = MomentumCheck(robot), row + 1


class _Signal(NamedTuple):
    """A quantity of one sensor."""

    sensor: str
    kind: str
    quantity: str
    unit: str
    residuals: str
    """Field of `SensorResiduals`."""
    place: tuple[int, slice]
    """Of the sensor, and of the axes."""
    readings: Array
    """Shape (n, 3)."""
    source: Array | None = None
    """Readings of the sensor that it is predicted from, (n, 3)."""


def _signals(replay: Replay, samples: SampleBatch) -> Iterator[_Signal]:
    """Yield the quantities of all sensors."""
    robot, every = replay.robot, slice(3)
    sources = imu_sources(robot)
    for k, imu in enumerate(robot.imus):
        for quantity, unit, name in (
            ('angular_velocity', 'rad/s', 'angular_velocities'),
            ('acceleration', 'm/s^2', 'proper_accelerations'),
        ):
            values = getattr(samples, name)
            source = values[:, sources[k]] if 0 <= sources[k] < len(sources) else None
            yield _Signal(imu.name, 'imu', quantity, unit, name, (k, every), values[:, k], source)
    wrenches = replay.calibration.apply(samples.ft_readings, samples.ft_temperatures)
    for k, sensor in enumerate(robot.ft_sensors):
        for quantity, unit, axes in (('force', 'N', every), ('moment', 'Nm', slice(3, 6))):
            readings = wrenches[:, k, axes]
            yield _Signal(sensor.name, 'ft', quantity, unit, 'ft_readings', (k, axes), readings)


def sensor_records(
    replay: Replay, situations: Sequence[Situation], judged: Mask
) -> tuple[list[Record], int]:
    """Return the residual of each sensor against the others, and the number of samples."""
    robot, settings = replay.robot, replay.settings
    samples = replay.recording.without_frozen(sensor.name for sensor in robot.ft_sensors)
    estimator = build_estimator(settings, robot, calibration=replay.calibration)
    noise, whole = _noise(replay)
    assumed = np.isin(robot.joint_names, settings.joint_states.assumed)
    random = np.random.default_rng(SEED)
    # Evenly spread over the samples that are judged, over all if none is.
    rows = np.flatnonzero(judged if judged.any() else np.ones_like(judged))
    places = np.linspace(0, len(rows) - 1, min(len(rows), MAX_SAMPLES)).round()
    chosen = rows[np.unique(places.astype(np.intp))]
    parts = []
    for situation in situations[:MAX_SITUATIONS]:
        rows = np.intersect1d(chosen, situation.rows)
        if len(rows):
            part, contacts = samples.take(rows), situation.contacts
            disturbed = _disturbed(part, noise, assumed, random)
            both = (sensor_residuals(estimator, one, contacts) for one in (part, disturbed))
            parts.append((rows, *both))
    if not parts:
        return [], 0
    taken, residuals, others = zip(*parts, strict=True)
    used = samples.take(np.concatenate(taken))
    # Neglected accelerations vary with the motion: only a constant residual is the sensor's.
    neglected = 'zero' in (
        settings.joint_states.acceleration_source, settings.angular_acceleration_source,
    )  # fmt: skip
    records = []
    for one in _signals(replay, used):
        k, axes = one.place
        own, other = (
            np.concatenate([getattr(part, one.residuals)[:, k, axes] for part in found])
            for found in (residuals, others)
        )
        change = np.inf if neglected and one.quantity == 'acceleration' else 0.0
        record = _record(one, own, other - own, whole=whole, change=change)
        # Without contacts, external wrenches appear in the residuals.
        judges = one.kind == 'imu' or bool(replay.clean.contacts)
        records.append(record | {'doubtful': judges and record['doubtful']})
    return records, len(used)


def _record(
    signal: _Signal, residuals: Array, noise: Array, *, whole: bool, change: float
) -> Record:
    """Return the record of residuals (n, 3), with the effect of noise on them (n, 3)."""
    known = np.isfinite(residuals).all(axis=1)
    values, readings, n = residuals[known], signal.readings[known], int(known.sum())
    size = float(np.sqrt(np.mean(np.sum(noise[known] ** 2, axis=1)))) if n else np.nan
    if n and signal.source is not None:
        change = max(change, rms_change(signal.source[known]))
    verdict = judge_residual(values, readings, size, whole=whole, change=change)
    return {
        **{key: getattr(signal, key) for key in ('sensor', 'kind', 'quantity', 'unit')},
        'n_instants': n,
        'mean': values.mean(axis=0).tolist() if n else [np.nan] * 3,
        'rms': verdict.rms,
        'largest': float(np.linalg.norm(values, axis=1).max()) if n else np.nan,
        'rms_reading': float(np.sqrt(np.mean(np.sum(readings**2, axis=1)))) if n else np.nan,
        'rms_change': verdict.change,
        'noise': size,
        'noise_is_whole': whole,
        'constant': verdict.is_constant,
        'doubtful': verdict.doubtful,
    }


def _noise(replay: Replay) -> tuple[NoiseModel, bool]:
    """Return the noise behind the filters, and whether it is known for all of them."""
    robot, rates, settings = replay.robot, replay.recording.rates, replay.settings
    imus = [settings.imu_of(imu.name) for imu in robot.imus]
    joint = np.diag([settings.joint_states.position_noise**2, 0.0, 0.0])
    signals = [np.diag([i.gyroscope_noise**2, i.accelerometer_noise**2, 0.0]) for i in imus]
    fts = [settings.ft_of(sensor.name).noise for sensor in robot.ft_sensors]
    n = len(robot.joint_names)
    # Where the noise behind a filter is unknown, that of the messages is taken.
    messages = NoiseModel(
        joints=np.broadcast_to(joint, (n, 3, 3)),
        imus=np.array(signals).reshape(-1, 3, 3),
        fts=np.array(fts).reshape(-1, 6),
    )
    if rates is None:
        return messages, False
    found = stream_noise(settings, robot, rates)
    assumed = np.isin(robot.joint_names, settings.joint_states.assumed)
    known = np.concatenate([found.joints | assumed, found.imus, found.fts])
    model = replace(
        found.model,
        joints=np.where(found.joints[:, None, None], found.model.joints, messages.joints),
        imus=np.where(found.imus[:, None, None], found.model.imus, messages.imus),
        fts=np.where(found.fts[:, None], found.model.fts, messages.fts),
    )
    return model, bool(known.all())


def _disturbed(
    samples: SampleBatch, model: NoiseModel, assumed: Mask, random: np.random.Generator
) -> SampleBatch:
    """Return samples with noise added; assumed (n_joints,)."""
    n = len(samples)

    def draw(covariances: Array) -> Array:
        white = random.normal(size=(n, len(covariances), 3))
        return np.asarray(np.einsum('sab,nsb->nsa', triangular_root(covariances), white))

    joints = draw(model.joints)
    joints[:, assumed] = 0.0
    imus = np.stack([draw(model.imus) for _ in range(3)], axis=-2)
    fts = random.normal(size=samples.ft_readings.shape) * model.fts
    return replace(
        samples,
        positions=samples.positions + joints[..., 0],
        velocities=samples.velocities + joints[..., 1],
        accelerations=samples.accelerations + joints[..., 2],
        angular_velocities=samples.angular_velocities + imus[..., 0],
        proper_accelerations=samples.proper_accelerations + imus[..., 1],
        angular_accelerations=samples.angular_accelerations + imus[..., 2],
        ft_readings=samples.ft_readings + fts,
    )
