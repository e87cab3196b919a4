# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise of the check of momentum, from the stated noise of readings."""

from __future__ import annotations

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.stream_noise import StreamFilters


class MomentumNoise:
    """What noise makes of joint velocities, and of the check of momentum that takes them."""

    def __init__(self, settings: EstimatorSettings, robot: Robot) -> None:
        self._settings, self._names = settings, robot.joint_names
        self._filters = StreamFilters(settings)
        self._assumed = np.isin(robot.joint_names, settings.joint_states.assumed)

    def velocities(self, rates: StreamRates | None) -> Array:
        """
        Return what noise makes of joint velocities.

        Returns (n_joints,) [rad/s or m/s].
        """
        found = np.full(len(self._names), np.nan)
        if rates is not None:
            own = rates.joints.tolist()
            # Joints of one message share a rate.
            known = {rate: self._filters.joint(rate) for rate in set(own)}
            for j, covariance in enumerate(map(known.get, own)):
                found[j] = np.nan if covariance is None else np.sqrt(covariance[1, 1])
        # An assumed joint stands still and has no rate.
        found[self._assumed] = 0.0
        return found

    def deviation(self, check: MomentumCheck, rates: StreamRates | None) -> Array:
        """
        Return about how much noise leaves unexplained.

        Returns (2,) [N].
        """
        gyroscope = self._settings.imu_of(check.imu).gyroscope_noise if check.imu else 0.0
        return check.deviation(gyroscope, self.velocities(rates))
