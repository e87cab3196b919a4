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
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.dependence import find_sides
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import (
    SampleShapes,
    alike,
    with_gaps,
)
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.momentum_check import NOISE_FACTOR, PART
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.pinocchio_model import free_floating_model, supports
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import (
    apply,
    inverse_pose,
    motion_cross,
    motion_transform,
    wrench_transform,
)
from inertial_estimation.model.tree import Source, assign_owners, decompose
from inertial_estimation.sample import SampleBatch


class ImuPrediction:
    """
    Predicts each IMU of a robot from another source of motion.

    That is the fixed link, or else the nearest other IMU that measures both quantities.

    sources (n_imus,).
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = free_floating_model(robot)
        self._data = self._model.createData()
        places = [(imu.link, imu.L_H_S) for imu in robot.imus]
        if robot.fixed_frame:
            places.append(robot.frame(robot.fixed_frame))
        joint_of, J_H_L = supports(robot)
        links = np.array([link for link, _ in places], dtype=np.intp)
        self._joints = joint_of[links].tolist()
        self._J_H_S = J_H_L[links] @ np.array([H for _, H in places]).reshape(-1, 4, 4)
        self._S_X_J = motion_transform(inverse_pose(self._J_H_S))
        self.sources = _sources(robot)
        self._between = _joints_between(robot, links, self.sources)

    def of(self, samples: SampleBatch) -> tuple[Array, Array]:
        """
        Predict the readings.

        Returns angular_velocities, proper_accelerations (n, n_imus, 3) [rad/s, m/s^2].
        """
        n_imus = len(self._robot.imus)
        poses, velocities, accelerations = self._relative(samples)
        v, a = self._measured(samples)
        # Motion of the root link at rest among the joints, as each source sees it [T 3.4].
        root_v = v - velocities
        root_a = a - accelerations - apply(motion_cross(root_v), velocities)
        k, m = np.arange(n_imus), self.sources
        S_X_M = motion_transform(inverse_pose(poses[:, k]) @ poses[:, m])
        carried = apply(S_X_M, root_v[:, m])
        v = carried + velocities[:, k]
        a = (
            apply(S_X_M, root_a[:, m])
            + accelerations[:, k]
            + apply(motion_cross(carried), velocities[:, k])
        )
        lost = self._lost(samples)
        linear = a[..., :3] + np.cross(v[..., 3:], v[..., :3])
        return np.where(lost, np.nan, v[..., 3:]), np.where(lost, np.nan, linear)

    def _relative(self, samples: SampleBatch) -> tuple[Array, Array, Array]:
        """Return poses, velocities, accelerations of the places relative to the root link."""
        n, n_places = len(samples), len(self._joints)
        poses = np.empty((n, n_places, 4, 4))
        motions = np.empty((2, n, n_places, 6))
        q = pin.neutral(self._model)
        v, a = np.zeros((2, self._model.nv))
        # What is missing must not reach what does not depend on it.
        rows = [np.nan_to_num(x, posinf=0.0, neginf=0.0) for x in _joint_rows(samples)]
        for i in range(n):
            q[7:], v[6:], a[6:] = (x[i] for x in rows)
            pin.forwardKinematics(self._model, self._data, q, v, a)
            poses[i] = [self._data.oMi[j].homogeneous for j in self._joints]
            motions[:, i] = [
                [part[j].vector for j in self._joints] for part in (self._data.v, self._data.a)
            ]
        velocities, accelerations = apply(self._S_X_J, motions)
        return poses @ self._J_H_S, velocities, accelerations

    def _measured(self, samples: SampleBatch) -> tuple[Array, Array]:
        """Return velocity and acceleration of the places as measured, their origins at rest."""
        v, a = np.zeros((2, len(samples), len(self._joints), 6))
        n_imus = len(self._robot.imus)
        v[:, :n_imus, 3:] = samples.angular_velocities
        a[:, :n_imus, :3] = samples.proper_accelerations
        a[:, :n_imus, 3:] = samples.angular_accelerations
        if self._robot.fixed_frame:
            a[:, n_imus, :3] = -self._robot.gravity
        return v, a

    def _lost(self, samples: SampleBatch) -> NDArray[np.bool_]:
        """Return which predictions lack a source or a joint on the way, shape (n, n_imus, 1)."""
        missing = ~np.asarray(np.isfinite(_joint_rows(samples)).all(axis=0))
        on_the_way = (missing[:, None, :] & self._between).any(axis=-1)
        return np.asarray(on_the_way | (self.sources < 0))[..., None]


def _joint_rows(samples: SampleBatch) -> Array:
    """Return positions, velocities and accelerations of the joints, shape (3, n, n_joints)."""
    return np.array([samples.positions, samples.velocities, samples.accelerations])


def _sources(robot: Robot) -> Indices:
    """Return for each IMU the row of what predicts it; the fixed link comes after all IMUs."""
    n_imus = len(robot.imus)
    if robot.fixed_frame:
        return np.full(n_imus, n_imus, dtype=np.intp)
    found = np.full(n_imus, -1, dtype=np.intp)
    whole = [m for m, imu in enumerate(robot.imus) if imu.measures == 'both']
    for k, imu in enumerate(robot.imus):
        others = [m for m in whole if m != k]
        if not others:
            continue
        sources = [Source(robot.imus[m].name, robot.imus[m].link, np.eye(4)) for m in others]
        owners = assign_owners(robot.links, sources, rigid_sensors=True)
        found[k] = others[owners[imu.link]]
    return found


def _joints_between(robot: Robot, links: Indices, source: Indices) -> NDArray[np.bool_]:
    """Return which joints lie between each IMU and what predicts it, shape (n_imus, n_joints)."""
    between = np.zeros((len(source), len(robot.joint_names)), dtype=bool)
    beyond = subtrees(robot)
    for child, link in enumerate(robot.links):
        if link.joint >= 0:
            is_beyond = np.isin(links, list(beyond[child]))
            between[:, link.joint] = is_beyond[: len(source)] != is_beyond[source]
    return between


BIAS_FACTOR = 2.0
"""Of the noise, for a mean: that of ten instants scatters by less than a third of it."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
NORMAL = 1.4826
"""Standard deviation over median absolute deviation, of normal noise."""


class ResidualVerdict(NamedTuple):
    """Sizes of a residual over some instants, of its vectors, and whether it casts doubt."""

    rms: float
    constant: float
    """Length of the mean: what a bias leaves, or a wrong axis at rest."""
    change: float
    """Root mean square of the reading minus its mean: gravity at rest does not count."""
    noise: float
    """Part of the residual that noise explains."""
    doubtful: bool

    @property
    def is_constant(self) -> bool:
        """True if more than half of the residual's power is its mean."""
        return 2.0 * self.constant**2 > self.rms**2


def judge_residual(
    residuals: Array,
    readings: Array,
    noise: float,
    *,
    whole: bool = True,
    change: float = 0.0,
) -> ResidualVerdict:
    """Judge the residual of a sensor; residuals (n, 3); readings (n, 3)."""
    n = len(residuals)
    if not n:
        return ResidualVerdict(np.nan, np.nan, np.nan, np.nan, doubtful=False)
    constant = float(np.linalg.norm(residuals.mean(axis=0)))
    rms, own = _rms(residuals), rms_change(readings)
    found = ResidualVerdict(rms, constant, own, noise, doubtful=False)
    least = BIAS_FACTOR * (noise if whole else max(noise, _scatter(residuals)))
    biased = found.is_constant and constant > least
    varies = rms > NOISE_FACTOR * noise and rms > PART * max(own, change)
    return found._replace(doubtful=n >= FEWEST and (biased or varies))


def rms_change(readings: Array) -> float:
    """Return how much readings change; readings (n, 3)."""
    return _rms(readings - readings.mean(axis=0))


def _rms(vectors: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))


def _scatter(vectors: Array) -> float:
    """Return a root mean square about the median that a few outliers do not move."""
    deviations = np.median(np.abs(vectors - np.median(vectors, axis=0)), axis=0)
    return NORMAL * float(np.linalg.norm(deviations))


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
    SampleShapes(estimator.robot).check_batch(samples)
    samples = with_gaps(samples)
    active = ContactSet.reported(estimator.contacts if contacts is None else contacts)
    rates, accelerations = ImuPrediction(estimator.robot).of(samples)
    n_fts = len(estimator.robot.ft_sensors)
    predicted = [_predicted_ft(estimator, samples, active, k) for k in range(n_fts)]
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
    """Return at which instants the wrench through a sensor that is left out is known, (n,)."""
    robot = estimator.robot
    links = np.array([robot.frame(contact.frame)[0] for contact in estimate.contacts], dtype=int)
    unknowns = [contact.unknowns for contact in estimate.contacts]
    has_unknowns = np.array(unknowns, dtype=int) > 0
    open_ = (estimate.contact_quality & Quality.UNDETERMINED) != 0
    known = np.zeros(len(open_), dtype=bool)
    child = robot.ft_sensors[k].child
    for used, rows in alike(estimate.used_fts):
        submodels = decompose(robot.links, robot.ft_sensors, np.flatnonzero(used).tolist())
        side = find_sides(robot, submodels, links.tolist(), unknowns)[child]
        own = np.isin(links, submodels[side.submodel].links) & has_unknowns
        beyond = np.isin(links, list(side.links)) == side.away
        one_side_free = not (own & beyond).any() or not (own & ~beyond).any()
        known[rows] = one_side_free | ~open_[np.ix_(rows, own)].any(axis=1)
    return known
