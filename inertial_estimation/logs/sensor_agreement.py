# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Residuals of the sensors of a log against all others, and of the momentum against the wrenches.

Each states the noise that the settings state. Torques that no sensor informs are not checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product
from math import nan
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.dependence import (
    UninformedTorques,
    dependence_table,
    find_sides,
)
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.fault_equations import PERIOD, imu_sources, predicted_imus
from inertial_estimation.estimation.fault_hypotheses import find_faults
from inertial_estimation.estimation.faults import alike, with_gaps
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.momentum_check import (
    NOISE_FACTOR,
    PART,
    PERIOD_NS,
    WINDOW_NS,
    WINDOWS,
    MomentumCheck,
    is_doubtful,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.logs.log import spread
from inertial_estimation.logs.results import Replay
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose, wrench_transform
from inertial_estimation.model.tree import decompose
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.stream_statistics import StreamRates
from inertial_estimation.uncertainty.sensor_noise import MomentumNoise, NoiseModel, stream_noise

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these flags takes no part."""
MAX_SAMPLES = 200
"""Evenly spread over the log: the estimate is repeated without each FT sensor."""
MAX_SITUATIONS, MAX_DEPENDENCES = 4, 20
"""Most frequent ones whose residuals, and whose dependence, are computed."""
SEED = 0
"""Of the disturbance by noise."""
QUANTITIES = {
    'imu': (
        ('angular_velocity', 'rad/s', 'angular_velocities', slice(3)),
        ('acceleration', 'm/s^2', 'proper_accelerations', slice(3)),
    ),
    'ft': (
        ('force', 'N', 'ft_readings', slice(3)),
        ('moment', 'Nm', 'ft_readings', slice(3, 6)),
    ),
}
"""Name, unit, field of samples and axes of the quantities of a sensor."""
Record = dict[str, Any]
BIAS_FACTOR = 2.0
"""Of the noise, for a mean: that of ten instants scatters by less than a third of it."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
NORMAL = 1.4826
"""Standard deviation over median absolute deviation, of normal noise."""


class Situation(NamedTuple):
    """Samples in which the same contacts and sensors take part."""

    contacts: tuple[Contact, ...]
    """At the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    rows: Indices
    """Increasing, shape (n,)."""


def find_situations(replay: Replay) -> list[Situation]:
    """Group the samples with a motion source, the largest group first."""
    robot, estimate = replay.robot, replay.clean
    taking = (estimate.contact_quality & GONE) == 0, estimate.used_imus, estimate.used_fts
    found = []
    for masks, rows in alike(*taking):
        contacts, imus, fts = (np.flatnonzero(mask).tolist() for mask in masks)
        if imus or robot.fixed_frame:
            present = tuple(estimate.contacts[c].at_origin for c in contacts)
            found.append(Situation(present, tuple(imus), tuple(fts), rows))
    return sorted(found, key=lambda one: -len(one.rows))


class MomentumRecords:
    """The change of momentum against the wrenches in spans of ten seconds [T 2.84, 2.85]."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._robot, self._noise = robot, MomentumNoise(settings, robot)
        self._check, self._start, self._next_ns, self._seen_ns = MomentumCheck(robot), nan, 0, 0
        self._found: list[Record] = []
        self._newest: tuple[Replay, int] | None = None
        """Piece and row of the newest sample."""

    def add(self, part: Replay) -> None:
        """Take a piece of a log."""
        for row, stamp_ns in enumerate(part.recording.samples.stamp_ns.tolist()):
            if not self._next_ns - PERIOD_NS <= stamp_ns < self._next_ns:
                self._next_ns = stamp_ns + PERIOD_NS
                self._take(part, row)
                # Often enough that no window is forgotten.
                if not 0 <= stamp_ns - self._seen_ns < WINDOW_NS // 2:
                    self._seen_ns = stamp_ns
                    self._report(part, row, WINDOWS)
        self._newest = part.take(np.array([len(part.times) - 1])), 0

    def records(self) -> list[Record]:
        """Return the records of all spans, with what is left after the last whole one."""
        if self._newest is not None:
            self._take(*self._newest)
            self._report(*self._newest, 1)
        return self._found

    def _take(self, part: Replay, row: int) -> None:
        if self._start != self._start:
            self._start = float(part.times[row])
        self._check.add(part.recording.samples[row], part.estimate.at(row))

    def _report(self, part: Replay, row: int, least: int) -> None:
        """Close the span if it has some windows."""
        report = self._check.report()
        if report.windows < least:
            return
        deviation = self._noise.deviation(self._check, part.recording.rates)
        figures = {'unexplained': report.unexplained, 'change': report.change, 'noise': deviation}
        self._found.append({
            'from_s': self._start,
            'to_s': float(part.times[row]),
            'windows': report.windows,
            **{f'{name}_force_n': float(force) for name, (force, _) in figures.items()},
            **{f'{name}_moment_nm': float(moment) for name, (_, moment) in figures.items()},
            'doubtful': is_doubtful(report, deviation),
        })  # fmt: skip
        self._check, self._start = MomentumCheck(self._robot), nan


def sensor_records(replay: Replay, situations: Sequence[Situation]) -> list[Record]:
    """Return the residual of each sensor against the others."""
    robot, settings, judged = replay.robot, replay.settings, replay.judged
    samples = replay.recording.without_frozen()
    noise, whole = _noise(replay)
    motion, random = StateNoise.of(noise.joints, noise.imus), np.random.default_rng(SEED)
    # Evenly spread over the samples that are judged, over all if none is.
    rows = np.flatnonzero(judged if judged.any() else ~judged)
    chosen = rows[spread(len(rows), MAX_SAMPLES)]
    taken, residuals, others = [], [], []
    for situation in situations[:MAX_SITUATIONS]:
        rows = np.intersect1d(chosen, situation.rows)
        if len(rows):
            part = samples.take(rows)
            fts = part.ft_readings + noise.fts * random.normal(size=part.ft_readings.shape)
            disturbed = replace(motion.perturbed(part, random), ft_readings=fts)
            taken.append(rows)
            residuals.append(sensor_residuals(replay.estimator, part, situation.contacts))
            others.append(sensor_residuals(replay.estimator, disturbed, situation.contacts))
    if not taken:
        return []
    used = samples.take(np.concatenate(taken))
    wrenches = replay.calibration.apply(used.ft_readings, used.ft_temperatures)
    calibrated, sources = replace(used, ft_readings=wrenches), imu_sources(robot)
    # Neglected accelerations vary with the motion: only a constant residual is the sensor's.
    neglected = 'zero' in (
        settings.joint_states.acceleration_source, settings.angular_acceleration_source,
    )  # fmt: skip
    records = []
    for kind, sensors in (('imu', robot.imus), ('ft', robot.ft_sensors)):
        for (k, sensor), (quantity, unit, field, axes) in product(
            enumerate(sensors), QUANTITIES[kind]
        ):
            own, other = (
                np.concatenate([getattr(part, field)[:, k, axes] for part in found])
                for found in (residuals, others)
            )
            known = np.isfinite(own).all(axis=1)
            readings = getattr(calibrated, field)[known]
            change = np.inf if neglected and quantity == 'acceleration' else 0.0
            if kind == 'imu' and 0 <= sources[k] < len(sources) and known.any():
                change = max(change, rms_change(readings[:, sources[k]]))
            squares = np.sum((other - own)[known] ** 2, axis=1)
            size = float(np.sqrt(squares.mean())) if known.any() else np.nan
            verdict = judge_residual(
                own[known], readings[:, k, axes], size, whole=whole, change=change
            )
            # Without contacts, external wrenches appear in the residuals.
            judges = kind == 'imu' or bool(replay.clean.contacts)
            records.append({
                'sensor': sensor.name,
                'quantity': quantity,
                'unit': unit,
                'n_instants': int(known.sum()),
                'rms': verdict.rms,
                'noise': size,
                'doubtful': judges and verdict.doubtful,
            })  # fmt: skip
    return records


def fault_records(replay: Replay) -> list[Record]:
    """Return the fault that explains the residuals of a log, and those that do so as well."""
    log = replay.recording
    # They are compared at even times: only the samples next to these count.
    times = log.samples.stamp_ns - log.samples.stamp_ns[0]
    after = np.unique(times // round(1e9 * PERIOD), return_index=True)[1]
    log = log.take(np.unique([*np.maximum(after - 1, 0), *after, len(times) - 1]))
    samples, touches = log.without_frozen(), log.touches
    contacts = [*replay.estimator.contacts]
    contacts += [one for part in (touches.sets if touches else ()) for one in part]
    frames = dict.fromkeys(contact.frame for contact in contacts if contact.unknowns)
    readings = replay.calibration.apply(samples.ft_readings, samples.ft_temperatures)
    return [one._asdict() for one in find_faults(replay.robot, samples, readings, [*frames])]


def uninformed_torques(replay: Replay, situations: Sequence[Situation]) -> Iterator[Record]:
    """Yield torques that no FT sensor informs [T Theorem 4.2], the most frequent ones first."""
    robot, found = replay.robot, Counter[UninformedTorques]()
    for one in situations[:MAX_DEPENDENCES]:
        table = dependence_table(
            robot,
            one.contacts,
            imus=None if robot.fixed_frame else one.imus,
            fts=one.fts,
            acceleration_arrays=replay.settings.angular_acceleration_source == 'array',
        )
        found.update(dict.fromkeys(table.uninformed, len(one.rows)))
    for group, rows in found.most_common():
        yield {**asdict(group), 'sample_share': rows / len(replay.times)}


def _noise(replay: Replay) -> tuple[NoiseModel, bool]:
    """Return the noise behind the filters, and whether it is known for all of them."""
    robot, settings, rates = replay.robot, replay.settings, replay.recording.rates
    if rates is None:
        sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        rates = StreamRates(*(np.full(n, np.nan) for n in sizes))
    found = stream_noise(settings, robot, rates)
    assumed = np.isin(robot.joint_names, settings.joint_states.assumed)
    joints, imus, fts = (
        one.copy() for one in (found.model.joints, found.model.imus, found.model.fts)
    )
    # Where the noise behind a filter is unknown, that of the messages is taken.
    joints[~found.joints, 0, 0] = settings.joint_states.position_noise**2
    joints[assumed] = 0.0
    for k in np.flatnonzero(~found.imus):
        given = settings.imu_of(robot.imus[k].name)
        imus[k, 0, 0], imus[k, 1, 1] = given.gyroscope_noise**2, given.accelerometer_noise**2
    for k in np.flatnonzero(~found.fts):
        fts[k] = settings.ft_of(robot.ft_sensors[k].name).noise
    whole = (found.joints | assumed).all() and found.imus.all() and found.fts.all()
    return NoiseModel(joints, imus, fts), bool(whole)


class ResidualVerdict(NamedTuple):
    """Sizes of the vectors of a residual, and whether it casts doubt on the sensor."""

    rms: float
    change: float
    """Root mean square of the reading minus its mean: gravity at rest does not count."""
    doubtful: bool


def judge_residual(
    residuals: Array,
    readings: Array,
    noise: float,
    *,
    whole: bool = True,
    change: float = 0.0,
) -> ResidualVerdict:
    """Judge a residual by what noise explains; residuals (n, 3); readings (n, 3)."""
    n = len(residuals)
    if not n:
        return ResidualVerdict(np.nan, np.nan, doubtful=False)
    constant = float(np.linalg.norm(residuals.mean(axis=0)))
    rms, own = _rms(residuals), rms_change(readings)
    scatter = 0.0
    if not whole:
        # A few outliers do not move it.
        apart = np.abs(residuals - np.median(residuals, axis=0))
        scatter = NORMAL * float(np.linalg.norm(np.median(apart, axis=0)))
    # More than half of the power is the mean: a bias, or a wrong axis at rest.
    biased = 2.0 * constant**2 > rms**2 and constant > BIAS_FACTOR * max(noise, scatter)
    varies = rms > NOISE_FACTOR * noise and rms > PART * max(own, change)
    return ResidualVerdict(rms, own, n >= FEWEST and (biased or varies))


def rms_change(readings: Array) -> float:
    """Return the rms change of readings; readings (n, 3)."""
    return _rms(readings - readings.mean(axis=0))


def _rms(vectors: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))


class SensorResiduals(NamedTuple):
    """
    Prediction minus reading of every sensor, over some instants.

    NaN where the other sensors do not determine it, or the sensor has no reading.
    """

    angular_velocities: Array
    """Of each IMU in its own axes, shape (n, n_imus, 3) [rad/s]."""
    proper_accelerations: Array
    """
    Of each IMU in its own axes, shape (n, n_imus, 3) [m/s^2]; NaN where arrays of accelerometers
    are the source of angular accelerations: they would be compared with themselves.
    """
    ft_readings: Array
    """Of each FT sensor after calibration, as it counts wrenches, (n, n_fts, 6) [N, Nm]."""


def sensor_residuals(
    estimator: WrenchEstimator, samples: SampleBatch, contacts: Iterable[Contact] | None = None
) -> SensorResiduals:
    """Predict each sensor from the others."""
    samples = with_gaps(samples)
    active = ContactSet.reported(estimator.contacts if contacts is None else contacts)
    rates, accelerations = predicted_imus(estimator.robot, samples)
    n_fts = len(estimator.robot.ft_sensors)
    predicted = [_predicted_ft(estimator, samples, active, k) for k in range(n_fts)]
    fts = np.stack(predicted, axis=1) if predicted else np.empty((len(samples), 0, 6))
    kinds = np.array([imu.measures for imu in estimator.robot.imus], dtype=str)
    rates[:, kinds == 'accelerometer'] = accelerations[:, kinds == 'gyroscope'] = np.nan
    if estimator.motion.arrays:
        accelerations[:] = np.nan
    return SensorResiduals(
        rates - samples.angular_velocities,
        accelerations - samples.proper_accelerations,
        fts - estimator.calibration.apply(samples.ft_readings, samples.ft_temperatures),
    )


def _predicted_ft(
    estimator: WrenchEstimator, samples: SampleBatch, contacts: ContactSet, k: int
) -> Array:
    """Return the reading of an FT sensor predicted from all others, shape (n, 6)."""
    sensor = estimator.robot.ft_sensors[k]
    readings = samples.ft_readings.copy()
    readings[:, k] = np.nan
    without = replace(samples, ft_readings=readings)
    estimate = estimator.batch(without, contacts)
    known = np.flatnonzero(_is_known(estimator, estimate, k))
    predicted = np.full((len(samples), 6), np.nan)
    through = InternalWrenches(estimator).of(
        without.take(known), estimate.at(known), [sensor.joint]
    )
    S_Xf_L = wrench_transform(inverse_pose(sensor.child_H_sensor))
    predicted[known] = -sensor.direction * through[:, 0] @ S_Xf_L.T
    return predicted


def _is_known(estimator: WrenchEstimator, estimate: WrenchEstimate, k: int) -> Mask:
    """Return at which instants the wrench through a sensor that is left out is known, (n,)."""
    robot = estimator.robot
    links = np.array([robot.frame(contact.frame)[0] for contact in estimate.contacts], dtype=int)
    unknowns = [contact.unknowns for contact in estimate.contacts]
    has_unknowns = np.array(unknowns, dtype=int) > 0
    open_ = (estimate.contact_quality & Quality.UNDETERMINED) != 0
    known = np.zeros(len(open_), dtype=bool)
    child = robot.ft_sensors[k].child
    for (used,), rows in alike(estimate.used_fts):
        submodels = decompose(robot.links, robot.ft_sensors, np.flatnonzero(used).tolist())
        sides = find_sides(robot, submodels, links, unknowns)
        own = sides.members[child, links] & has_unknowns
        beyond = sides.links[child, links] == sides.away[child]
        one_side_free = not (own & beyond).any() or not (own & ~beyond).any()
        known[rows] = one_side_free | ~open_[np.ix_(rows, own)].any(axis=1)
    return known
