# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations of estimates from the noise of the sensors and errors of the parameters.

To first order: the results are smooth functions of the readings, and noise is small beside what
bends them. Errors of the inertial parameters are in it where their covariance is given; results
are linear in these. Other errors of the model, of offsets and of filters that lag are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.estimation.plan import LOST, Plan
from inertial_estimation.estimation.step import Step
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch, SensorState
from inertial_estimation.uncertainty.body_noise import BodyNoise
from inertial_estimation.uncertainty.motion_noise import (
    ParameterNoise,
    Parts,
    independent_parts,
)
from inertial_estimation.uncertainty.sensitivities import Disturbances, Roots, Sensitivities
from inertial_estimation.uncertainty.sensor_noise import NoiseModel, triangular_root

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Deviations(NamedTuple):
    """
    Standard deviations of the results of one instant, or of many.

    Rows follow those of `WrenchEstimate`. NaN: there is no estimate. Infinity: the estimate is the
    shortest of many that the sensors do not distinguish.
    """

    stamp_ns: int | NDArray[np.int64]
    """Stamp of the sample [ns]."""
    contacts: tuple[Contact, ...]
    wrenches: Array
    """Of each external wrench, in and about its frame, shape (n_contacts, 6) [N, Nm]."""
    torques: Array
    """Of the torque through each joint, shape (n_joints,) [Nm or N]."""
    external_torques: Array
    """Of the external torque of each joint, shape (n_joints,) [Nm or N]."""
    residuals: Array
    """
    Of the residual of each submodel, shape (n_submodels, 6) [N, Nm]: residuals of several times
    this size are no noise. Zero where one full wrench takes up all.
    """


class Uncertainty:
    """
    Standard deviations of the results of an estimator.

    Parameters
    ----------
    estimator : WrenchEstimator
        Whose results they are.
    noise : NoiseModel
        Noise of the readings of its robot.
    parameter_roots : ndarray, shape (n_links, 10, r), optional
        How sure its inertial parameters are, as for `set_parameter_roots`. Default: exact.

    Raises
    ------
    ModelError
        If the noise is that of another robot, or masses are negative so that links weigh less
        than nothing together, which Pinocchio's derivatives do not allow.

    """

    def __init__(
        self,
        estimator: WrenchEstimator,
        noise: NoiseModel,
        parameter_roots: Array | None = None,
    ) -> None:
        robot = estimator.robot
        _check_rows(robot, noise)
        self._estimator = estimator
        self._noise = noise
        self._joints = triangular_root(noise.joints)
        self._imus = triangular_root(noise.imus)
        directions = np.array([sensor.direction for sensor in robot.ft_sensors]).reshape(-1, 1, 1)
        self._fts = directions * noise.fts[:, None, :]
        self._kept: WeakKeyDictionary[Plan, Sensitivities] = WeakKeyDictionary()
        self._checked: WeakKeyDictionary[Plan, Array] = WeakKeyDictionary()
        self._bodies: WeakKeyDictionary[MotionPlan, dict[bool, BodyNoise]] = WeakKeyDictionary()
        self.set_parameter_roots(parameter_roots)

    def set_parameter_roots(self, roots: Array | None) -> None:
        """
        Set the covariance of the inertial parameters, independent of the sensors' noise.

        Parameters
        ----------
        roots : ndarray, shape (n_links, 10, r), or None
            The rows of the links of a submodel are a root F of the covariance F F' of their
            parameters [kg, kg m, kg m^2], such as `Refit.parameter_roots`; different submodels
            are independent. Zeros, and None: exact.

        Raises
        ------
        ShapeError
            If the shape is another.
        ModelError
            If a number is not finite; what was known before stays.

        """
        self._parts: Parts = (
            () if roots is None else independent_parts(self._estimator.robot, roots)
        )
        self._parameters: WeakKeyDictionary[Plan, ParameterNoise] = WeakKeyDictionary()

    def of(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> Deviations:
        """
        Return the standard deviations of the estimate of one instant.

        Parameters
        ----------
        sample : Sample
            As for `WrenchEstimator.update`.
        contacts : iterable of Contact, or ContactSet, optional
            Likewise.

        Returns
        -------
        Deviations

        Raises
        ------
        ShapeError, FrameNotFound
            As `WrenchEstimator.update` does.

        """
        solver, disturbances = self._evaluate(sample, contacts, combined=True)
        residual_rows = self._sensitivities(solver.plan).loads.residual_rows
        return _sorted(sample.stamp_ns, solver, residual_rows, disturbances.deviations)

    def disturbances(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> Disturbances:
        """
        Return what each source of noise does to the results of one instant.

        From it follow covariances of results and the shares of the sensors; a noise model of ones
        gives the derivatives of the results by all readings.
        """
        return self._evaluate(sample, contacts, combined=False)[1]

    def of_batch(
        self, samples: SampleBatch, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> Deviations:
        """Return the standard deviations of many instants; every array has a leading axis."""
        each = [self.of(samples[k], contacts) for k in range(len(samples))]
        wrenches, torques, external, residuals = (
            np.array([deviations[k] for deviations in each]) for k in range(2, 6)
        )
        return Deviations(
            samples.stamp_ns, each[0].contacts, wrenches, torques, external, residuals
        )

    def _evaluate(
        self,
        sample: Sample,
        contacts: Iterable[Contact] | ContactSet | None,
        *,
        combined: bool,
    ) -> tuple[Step, Disturbances]:
        """Return the solver that a sample goes to and what noise does to its results."""
        solver, sample = self._estimator.prepare(sample, contacts)
        plan, joints = solver.plan, self._joint_roots(sample)
        serving, changes = plan.dynamics.imus, None
        if plan.motion is not None:
            bodies = self._body_noise(plan.motion, combined)
            changes = bodies.changes(sample, serving, joints)
        parameter_changes = self._parameter_changes(plan) if self._parts else None
        calibration = self._estimator.calibration
        fts = calibration.matrices * self._fts
        roots = Roots(joints, self._imus[serving], fts, changes, parameter_changes)
        readings = calibration.apply(sample.ft_readings, sample.ft_temperatures)
        sensitivities = self._sensitivities(plan)
        return solver, sensitivities.evaluate(plan.dynamics, solver.columns, readings, roots)

    def _parameter_changes(self, plan: Plan) -> Array:
        """Return what errors of the inertial parameters do to the generalised forces."""
        found = self._parameters.get(plan)
        if found is None:
            found = self._parameters[plan] = ParameterNoise(plan.dynamics, self._parts)
        return found.changes(plan.dynamics)

    def _joint_roots(self, sample: Sample) -> Array:
        """Return the roots of the joints' covariances; assumed positions err by themselves."""
        if sample.joint_states is None:
            return self._joints
        assumed = sample.joint_states == SensorState.ASSUMED
        if not assumed.any():
            return self._joints
        joints: Array = self._joints * ~assumed[:, None, None]
        joints[assumed, 0, 0] = self._noise.assumed_positions[assumed]
        return joints

    def _body_noise(self, motion: MotionPlan, combined: bool) -> BodyNoise:
        """Return what was laid out for a plan of motions; it goes when the plan does."""
        kept = self._bodies.setdefault(motion, {})
        if combined not in kept:
            estimator = self._estimator
            kept[combined] = BodyNoise(
                estimator.robot, motion, estimator.motion.arrays, self._imus, combined=combined
            )
        return kept[combined]

    def _sensitivities(self, plan: Plan) -> Sensitivities:
        """Return what was laid out for a plan; it goes when the plan does."""
        if self._checked.get(plan) is not plan.dynamics.parameters:
            _check_masses(plan)
            self._checked[plan] = plan.dynamics.parameters
        found = self._kept.get(plan)
        if found is None:
            found = self._kept[plan] = Sensitivities(plan, self._estimator.rank_tolerance)
        return found


def _sorted(stamp_ns: int, solver: Step, residual_rows: Indices, deviations: Array) -> Deviations:
    """Sort deviations by kind, with NaN where there is no estimate."""
    plan = solver.plan
    n_active, n_joints = len(plan.active), len(plan.quality.torques)
    framed = deviations[: -2 * n_joints or None].reshape(-1, 6)
    torques, external = deviations[len(framed) * 6 :].reshape(2, n_joints).copy()
    wrenches = np.full((len(plan.contacts), 6), np.nan)
    wrenches[plan.active] = framed[:n_active]
    wrenches[plan.active[plan.known]] = 0.0
    residuals = np.full((len(plan.ranks), 6), np.nan)
    residuals[plan.residual_rows] = 0.0
    residuals[plan.residual_rows[residual_rows]] = framed[n_active:]
    if not plan.complete:
        kinds = wrenches, torques, external, residuals
        for values, flags in zip(kinds, plan.quality, strict=True):
            values[(flags & LOST) != 0] = np.nan
    return Deviations(stamp_ns, solver.contacts, wrenches, torques, external, residuals)


def _check_rows(robot: Robot, noise: NoiseModel) -> None:
    """Raise if the noise is not that of this robot."""
    for kind, rows, names in (
        ('joints', noise.joints, robot.joint_names),
        ('IMUs', noise.imus, robot.imus),
        ('FT sensors', noise.fts, robot.ft_sensors),
    ):
        if len(rows) != len(names):
            raise ModelError(
                f"the noise is for {len(rows)} {kind}, robot '{robot.name}' has {len(names)}"
            )


def _check_masses(plan: Plan) -> None:
    """Raise where Pinocchio's sums of inertias would divide by a mass that is not positive."""
    model = plan.dynamics.forest.model
    masses = [inertia.mass for inertia in model.inertias]
    for k in range(model.njoints - 1, 0, -1):
        parent = model.parents[k]
        parts = masses[k], masses[parent]
        masses[parent] = sum(parts)
        if parent and any(parts) and masses[parent] <= 0.0:
            raise ModelError(
                f"the links beyond '{model.names[parent]}' of the forest weigh "
                f'{masses[parent]:.3g} kg together: standard deviations need positive sums'
            )
