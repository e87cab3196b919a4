# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Residual of every IMU and FT sensor: prediction from all others minus reading.

A sensor is predicted by its model [T 3.4, 3.7, 4.1, 4.2, 4.4, 4.15]. That takes redundancy: an IMU
needs another source of motion, an FT sensor a side on which the contacts leave nothing unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.dependence import find_sides
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike, with_gaps
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.momentum_check import NOISE_FACTOR, PART
from inertial_estimation.estimation.wrench_estimator import SampleShapes, WrenchEstimator
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import accelerometer, gyroscope
from inertial_estimation.model.spatial import inverse_pose, wrench_transform
from inertial_estimation.model.tree import Source, assign_owners, decompose
from inertial_estimation.sample import SampleBatch


def imu_sources(robot: Robot) -> Indices:
    """
    Return the row of the IMU that predicts each IMU, (n_imus,).

    That is the nearest other one that measures both quantities, -1 if there is none; with a fixed
    link, which comes after all IMUs, it is that.
    """
    n_imus = len(robot.imus)
    if robot.fixed_frame:
        return np.full(n_imus, n_imus, dtype=np.intp)
    found = np.full(n_imus, -1, dtype=np.intp)
    whole = [m for m, imu in enumerate(robot.imus) if imu.measures == 'both']
    for k, imu in enumerate(robot.imus):
        others = [m for m in whole if m != k]
        if others:
            sources = [Source(robot.imus[m].name, robot.imus[m].link, np.eye(4)) for m in others]
            owners = assign_owners(robot.links, sources, rigid_sensors=True)
            found[k] = others[owners[imu.link]]
    return found


def predicted_imus(robot: Robot, samples: SampleBatch) -> Array:
    """Return predicted angular velocities and proper accelerations, (2, n, n_imus, 3)."""
    found = np.full((2, len(samples), len(robot.imus), 3), np.nan)
    poses, sources = poses_in_parents(robot, samples.positions), imu_sources(robot)
    for m in sorted({*sources.tolist()} - {-1}):
        motions = link_motions(robot, samples, poses, [m])
        for k in np.flatnonzero(sources == m):
            imu = robot.imus[k]
            w, dw, a = motions[imu.link]
            found[0, :, k] = gyroscope(w, imu.L_H_S)
            found[1, :, k] = accelerometer(w, np.hstack([a, dw]), imu.L_H_S)
    return found


BIAS_FACTOR = 2.0
"""Of the noise, for a mean: that of ten instants scatters by less than a third of it."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
NORMAL = 1.4826
"""Standard deviation over median absolute deviation, of normal noise."""


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
    SampleShapes(estimator.robot).check(samples)
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
