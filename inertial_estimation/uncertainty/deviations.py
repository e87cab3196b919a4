# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations of estimates from the noise of the sensors and errors of the parameters.

To first order: results are smooth functions of the readings, and noise is small beside what bends
them. Errors of the inertial parameters, in which results are linear, are included where their
covariance is given. Other errors of the model, of offsets and of filters that lag are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import inertial_estimation.uncertainty.sensor_noise as sensor_noise
from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.estimation.plan import LOST, Plan
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.model.arguments import numbers
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.stream_statistics import StreamRates
from inertial_estimation.uncertainty.motion_noise import LinkMotionNoise, ParameterNoise
from inertial_estimation.uncertainty.sensitivities import Sensitivities

LOOK_NS = 1_000_000_000
"""Period at which rates are checked [ns]."""
RATE_CHANGE = 0.05
"""Relative change of a rate from which noise is computed again: 2.5 % of a derivative's."""


class Deviations(NamedTuple):
    """
    Standard deviations, rows as those of `WrenchEstimate`; NaN: there is no estimate.

    Infinity: the estimate is the shortest of many that the sensors do not distinguish.
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
    """Of residuals, zero where a full wrench explains all, shape (n_submodels, 6) [N, Nm]."""


class Uncertainty:
    """
    Standard deviations of the results of an estimator.

    Parameters
    ----------
    estimator : WrenchEstimator
        Its results are meant.
    noise : NoiseModel
        Noise of the readings of its robot.
    parameter_roots : ndarray, shape (n_links, 10, r), optional
        Uncertainty of its inertial parameters, as for `set_parameter_roots`. Default: exact.

    Raises
    ------
    ModelError
        If the noise is that of another robot, or links with negative masses have a sum that is
        not positive, which Pinocchio's derivatives do not allow.

    """

    def __init__(
        self,
        estimator: WrenchEstimator,
        noise: sensor_noise.NoiseModel,
        parameter_roots: Array | None = None,
    ) -> None:
        robot = estimator.robot
        stated = tuple(len(rows) for rows in (noise.joints, noise.imus, noise.fts))
        needed = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        if stated != needed:
            what = f'the noise is for {stated} joints, IMUs and FT sensors'
            raise ModelError(f"{what}, robot '{robot.name}' has {needed}")
        self._estimator = estimator
        self._joints = sensor_noise.covariance_root(noise.joints)
        self._imus = sensor_noise.covariance_root(noise.imus)
        directions = np.array([sensor.direction for sensor in robot.ft_sensors]).reshape(-1, 1, 1)
        self._fts = directions * noise.fts[:, None, :]
        # What is laid out for a plan goes when the plan does.
        self._plans: WeakKeyDictionary[Plan, Sensitivities] = WeakKeyDictionary()
        self._motions: WeakKeyDictionary[MotionPlan, LinkMotionNoise] = WeakKeyDictionary()
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
            If a number is not finite; the covariance before stays.

        """
        if roots is not None:
            shape = len(self._estimator.robot.links), 10, *np.shape(roots)[2:3]
            roots = numbers('parameter_roots', roots, shape)
        self._roots = roots
        for sensitivities in self._plans.values():
            sensitivities.parameters = None

    @one_thread()
    def of(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> Deviations:
        """
        Return the standard deviations of the estimate of one sample.

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
        ShapeError, NameNotFound
            As `WrenchEstimator.update` does.

        """
        stamp_ns, estimator = sample.stamp_ns, self._estimator
        step, sample, ft_wrenches = estimator.prepare(sample, contacts)
        plan, joints = step.plan, self._joints
        if sample.joint_states is not None:
            # Assumed positions are exact.
            joints = joints * (sample.joint_states != SensorState.ASSUMED)[:, None, None]
        if plan not in self._plans:
            self._plans[plan] = Sensitivities(plan, estimator.rank_tolerance)
        sensitivities, links = self._plans[plan], None
        if not plan.motion.is_plain:
            if plan.motion not in self._motions:
                self._motions[plan.motion] = LinkMotionNoise(plan.motion, self._imus)
            motions = self._motions[plan.motion]
            links = motions.joints, motions.changes(sample, plan.dynamics.imus, joints)
        if self._roots is not None and sensitivities.parameters is None:
            sensitivities.parameters = ParameterNoise(estimator.robot, plan.dynamics, self._roots)
        ft_roots = estimator.calibration.matrices * self._fts
        roots = joints, self._imus[plan.dynamics.imus], ft_roots
        found = sensitivities.evaluate(step.columns, ft_wrenches, *roots, links)
        deviations = found.deviations
        n_active, n_joints = len(plan.active), len(plan.quality.torques)
        framed = deviations[: len(deviations) - 2 * n_joints].reshape(-1, 6)
        torques, external = deviations[6 * len(framed) :].reshape(2, n_joints).copy()
        wrenches = np.full((len(plan.contacts), 6), np.nan)
        wrenches[plan.active] = framed[:n_active]
        wrenches[plan.active[plan.known]] = 0.0
        residuals = np.full((len(plan.ranks), 6), np.nan)
        residuals[plan.residual_rows] = 0.0
        residuals[plan.residual_rows[sensitivities.residual_rows]] = framed[n_active:]
        if not plan.complete:
            kinds = wrenches, torques, external, residuals
            for values, flags in zip(kinds, plan.quality, strict=True):
                values[(flags & LOST) != 0] = np.nan
        return Deviations(stamp_ns, step.contacts, wrenches, torques, external, residuals)


class LiveUncertainty:
    """Standard deviations of estimates from the samples of an assembler."""

    def __init__(self, estimator: WrenchEstimator, settings: EstimatorSettings) -> None:
        self._estimator, self._settings = estimator, settings
        self._filters = sensor_noise.StreamFilters(settings)
        robot = estimator.robot
        sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        self._rates = StreamRates(*(np.full(size, np.nan) for size in sizes))
        self._found: tuple[sensor_noise.StreamNoise, Uncertainty] | None = None
        self._looked_ns = 0
        self._roots: Array | None = None

    def set_parameter_roots(self, roots: Array | None) -> None:
        """Set the covariance of the inertial parameters, as `Uncertainty` does."""
        if roots is self._roots:
            return
        self._roots = roots
        if self._found is not None:
            self._found[1].set_parameter_roots(roots)

    def of(
        self,
        sample: Sample,
        contacts: Iterable[Contact] | ContactSet | None,
        rates: Callable[[], StreamRates],
    ) -> Deviations | None:
        """Return the standard deviations of one estimate; None while noise is not known."""
        if self._found is None or not 0 <= sample.stamp_ns - self._looked_ns < LOOK_NS:
            self._look(sample, rates())
        if self._found is None:
            return None
        noise, uncertainty = self._found
        if noise.covers(sample):
            return uncertainty.of(sample, contacts)
        self._looked_ns = 0
        return None

    def _look(self, sample: Sample, rates: StreamRates) -> None:
        """Follow the rates of the readings that are used; one filter is computed at a time."""
        states = sample.joint_states, sample.imu_states, sample.ft_states
        usable = StreamRates(
            *(
                now if state is None else np.where(np.isin(state, sensor_noise.USED), now, before)
                for now, before, state in zip(rates, self._rates, states, strict=True)
            )
        )
        changed = any(
            (~(np.abs(now - before) <= RATE_CHANGE * before) & np.isfinite(now)).any()
            for now, before in zip(usable, self._rates, strict=True)
        )
        if self._found is None or changed:
            robot = self._estimator.robot
            if self._filters.learn_next(robot, usable):
                self._found = None
                return
            noise = sensor_noise.stream_noise(self._settings, robot, usable, self._filters)
            self._found = noise, Uncertainty(self._estimator, noise.model, self._roots)
            self._rates = usable
        self._looked_ns = sample.stamp_ns
