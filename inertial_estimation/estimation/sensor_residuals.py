# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What every IMU and FT sensor should have read, given all others, minus what it read.

A sensor is predicted from the rest by its model [T 4.1, 4.2, 4.4]. That takes redundancy: an IMU
needs another source of motion, an FT sensor a side on which the contacts leave nothing open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.arguments import SampleShapes, check_numbers, check_sample
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike, with_gaps
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.relative_motion import ImuPrediction
from inertial_estimation.estimation.sides import find_sides
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.arguments import check_kind
from inertial_estimation.model.spatial import inverse_pose, wrench_transform
from inertial_estimation.model.submodels import decompose
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


class SensorResiduals(NamedTuple):
    """
    Prediction minus reading of every sensor, over some instants.

    NaN where the rest of the sensors does not tell, or the sensor reads nothing.
    """

    angular_velocities: Array
    """Of each IMU in its own axes, shape (n, n_imus, 3) [rad/s]."""
    proper_accelerations: Array
    """
    Of each IMU in its own axes, shape (n, n_imus, 3) [m/s^2]; NaN where arrays of accelerometers
    tell the angular acceleration: they would be held against themselves.
    """
    ft_readings: Array
    """Of each FT sensor after calibration, as it counts wrenches, (n, n_fts, 6) [N, Nm]."""


def sensor_residuals(
    estimator: WrenchEstimator, samples: SampleBatch, contacts: Iterable[Contact] | None = None
) -> SensorResiduals:
    """Predict each sensor from the others."""
    check_kind('estimator', estimator, WrenchEstimator, 'WrenchEstimator(robot) makes one')
    check_sample(samples, (0,))
    SampleShapes(estimator.robot).check(samples, (len(samples),))
    check_numbers(samples)
    samples = with_gaps(samples)
    felt = ContactSet.felt(estimator.contacts if contacts is None else contacts)
    rates, accelerations = ImuPrediction(estimator.robot).of(samples)
    predicted = [_predicted_ft(estimator, samples, felt, k) for k in _fts(estimator)]
    fts = np.stack(predicted, axis=1) if predicted else np.empty((len(samples), 0, 6))
    silent = {
        kind: np.array([imu.measures == kind for imu in estimator.robot.imus], dtype=bool)
        for kind in ('accelerometer', 'gyroscope')
    }
    if estimator.motion.arrays:
        accelerations[:] = np.nan
    rates[:, silent['accelerometer']] = accelerations[:, silent['gyroscope']] = np.nan
    return SensorResiduals(
        rates - samples.angular_velocities,
        accelerations - samples.proper_accelerations,
        fts - estimator.calibration.apply(samples.ft_readings, samples.ft_temperatures),
    )


def _fts(estimator: WrenchEstimator) -> range:
    """Return the rows of the FT sensors."""
    return range(len(estimator.robot.ft_sensors))


def _predicted_ft(
    estimator: WrenchEstimator, samples: SampleBatch, contacts: ContactSet, k: int
) -> Array:
    """Return what an FT sensor should read by all others, shape (n, 6)."""
    sensor = estimator.robot.ft_sensors[k]
    readings = samples.ft_readings.copy()
    readings[:, k] = np.nan
    without = replace(samples, ft_readings=readings)
    estimate = estimator.batch(without, contacts)
    through = InternalWrenches(estimator).of(without, estimate, [sensor.joint])[:, 0]
    S_Xf_L = wrench_transform(inverse_pose(sensor.child_H_sensor))
    predicted = -sensor.direction * through @ S_Xf_L.T
    predicted[~_is_known(estimator, estimate, k)] = np.nan
    return np.asarray(predicted)


def _is_known(estimator: WrenchEstimator, estimate: WrenchEstimate, k: int) -> NDArray[np.bool_]:
    """Tell at which instants the wrench through a sensor that is left out is known, (n,)."""
    robot = estimator.robot
    links = np.array([robot.frame(contact.frame)[0] for contact in estimate.contacts], dtype=int)
    unknowns = [contact.unknowns for contact in estimate.contacts]
    asking = np.array(unknowns, dtype=int) > 0
    open_ = (estimate.contact_quality & Quality.UNDETERMINED) != 0
    known = np.zeros(len(open_), dtype=bool)
    child = robot.ft_sensors[k].child
    for used, rows in alike(estimate.used_fts):
        submodels = decompose(robot.links, robot.ft_sensors, np.flatnonzero(used).tolist())
        side = find_sides(robot, submodels, links.tolist(), unknowns)[child]
        own = np.isin(links, submodels[side.submodel].links) & asking
        beyond = np.isin(links, list(side.links)) == side.away
        one_side_free = not (own & beyond).any() or not (own & ~beyond).any()
        known[rows] = one_side_free | ~open_[np.ix_(rows, own)].any(axis=1)
    return known
