# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise of samples behind the filters of the settings, and of the check of momentum."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import ceil, isnan

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    joint_differentiator,
    smoother,
)
from inertial_estimation.signals.stream_statistics import StreamRates
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    joint_covariance,
)

SAME_RATE = 0.02
"""Relative difference of rates that share their weights: 1 % of a derivative's noise."""
ROUND_OFF = 0.01
"""Part of a period by which a delay may exceed whole periods and count as them."""
USED = np.array([SensorState.FRESH, SensorState.PARTIAL], dtype=np.uint8)
"""States of readings that are used."""
NO_DERIVATIVES = np.array([[1.0], [0.0], [0.0]])
"""Weights of the newest sample where nothing is filtered."""


@dataclass(frozen=True, eq=False)
class StreamNoise:
    """Noise of the readings of the streams whose filters work at their rates."""

    model: NoiseModel
    joints: Mask
    """Joints that it is stated for, shape (n_joints,)."""
    imus: Mask
    """IMUs, shape (n_imus,)."""
    fts: Mask
    """FT sensors, shape (n_fts,)."""

    def covers(self, sample: Sample) -> bool:
        """Return true if it is stated for all readings of a sample."""
        states = sample.joint_states, sample.imu_states, sample.ft_states
        rests = states[0] is not None and bool((states[0] == SensorState.ASSUMED).all())
        return (rests or bool(self.joints.any())) and not any(
            (~known if state is None else np.isin(state, USED) & ~known).any()
            for known, state in zip((self.joints, self.imus, self.fts), states, strict=True)
        )


class StreamFilters:
    """
    Noise of single streams behind the filters of the settings; None where none is stated.

    The weights of a filter take milliseconds to compute and are kept.
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self._settings = settings
        sources = settings.joint_states.velocity_source, settings.joint_states.acceleration_source
        self._joints = joint_differentiator(settings, 1) if 'filter' in sources else None
        self._readings = smoother(settings) if settings.filter.smooth_readings else None
        self._gyroscopes: dict[float, Differentiator] = {}
        """By their noise."""
        self._derives = settings.angular_acceleration_source == 'filter'
        self._weights: dict[Differentiator, list[tuple[float, Array | None]]] = {}

    def joint(self, rate: float) -> Array | None:
        """Return the noise (3, 3) of a joint; rate [Hz]."""
        settings, weights = self._settings, self._at(self._joints, rate)
        if weights is None:
            return None
        from_messages = settings.joint_states.velocity_source == 'message'
        return joint_covariance(
            settings.joint_states.position_noise,
            weights,
            velocity=settings.joint_states.velocity_noise if from_messages else None,
            neglects_acceleration=settings.joint_states.acceleration_source == 'zero',
        )

    def imu(self, imu: Imu, rate: float) -> Array | None:
        """Return the noise (3, 3) of an IMU."""
        weights = self._at(self._of_imu(imu), rate)
        if weights is None:
            return None
        if not self._derives:
            weights = weights * NO_DERIVATIVES
        stated = self._settings.imu_of(imu.name)
        accelerometer = stated.accelerometer_noise * float(np.linalg.norm(weights[0]))
        return imu_covariance(stated.gyroscope_noise, accelerometer, weights)

    def ft(self, name: str, rate: float) -> Array | None:
        """Return the noise (6,) of an FT sensor."""
        weights = self._at(self._readings, rate)
        if weights is None:
            return None
        return float(np.linalg.norm(weights[0])) * np.array(self._settings.ft_of(name).noise)

    def learn_next(self, robot: Robot, rates: StreamRates) -> bool:
        """Compute the weights of one filter that are not known at its rate, if there is one."""
        filters = chain(
            [self._joints] * len(robot.joint_names),
            map(self._of_imu, robot.imus),
            [self._readings] * len(robot.ft_sensors),
        )
        n_known = sum(map(len, self._weights.values()))
        for one, rate in zip(filters, chain(*(own.tolist() for own in rates)), strict=True):
            self._at(one, rate)
            if sum(map(len, self._weights.values())) > n_known:
                return True
        return False

    def _of_imu(self, imu: Imu) -> Differentiator | None:
        """Return the filter of the readings of an IMU; None: they are not filtered."""
        unfiltered = not self._derives or imu.measures == 'accelerometer'
        if unfiltered or self._readings is not None:
            return self._readings
        noise = self._settings.imu_of(imu.name).gyroscope_noise
        if noise not in self._gyroscopes:
            self._gyroscopes[noise] = gyroscope_differentiator(self._settings, noise)
        return self._gyroscopes[noise]

    def _at(self, used: Differentiator | None, rate: float) -> Array | None:
        """Return the weights of a filter; None: no rate, or the filter fails at it."""
        if used is None:
            return NO_DERIVATIVES
        chosen = self._settings.filter
        if isnan(rate):
            return None
        known = self._weights.setdefault(used, [])
        for own, weights in known:
            if abs(own - rate) <= SAME_RATE * rate:
                return weights
        # The sample is that of the first joint state as far back as the delay.
        delay = ceil(chosen.delay * rate - ROUND_OFF) / rate
        found = None
        # Where the window never holds enough samples the stream is not used.
        with suppress(ConfigError):
            found = filter_weights(used, rate, delay=delay, smooth=chosen.smooth_readings)
        known.append((rate, found))
        return found


def stream_noise(
    settings: EstimatorSettings,
    robot: Robot,
    rates: StreamRates,
    filters: StreamFilters | None = None,
) -> StreamNoise:
    """Return the noise of all readings of a robot."""
    filters = filters or StreamFilters(settings)
    joints, imus, fts = (own.tolist() for own in rates)
    found: tuple[Sequence[Array | None], ...] = (
        [filters.joint(rate) for rate in joints],
        [filters.imu(imu, rate) for imu, rate in zip(robot.imus, imus, strict=True)],
        [filters.ft(one.name, rate) for one, rate in zip(robot.ft_sensors, fts, strict=True)],
    )
    # Zero where it is not known.
    of_joints, of_imus, of_fts = (
        np.array([np.zeros(shape) if one is None else one for one in own]).reshape(-1, *shape)
        for own, shape in zip(found, ((3, 3), (3, 3), (6,)), strict=True)
    )
    model = NoiseModel(of_joints, of_imus, of_fts)
    known = (np.array([one is not None for one in own], dtype=bool) for own in found)
    return StreamNoise(model, *known)


class MomentumNoise:
    """Noise of joint velocities, and of the check of momentum that uses them."""

    def __init__(self, settings: EstimatorSettings, robot: Robot) -> None:
        self._settings, self._names = settings, robot.joint_names
        self._filters = StreamFilters(settings)
        self._assumed = np.isin(robot.joint_names, settings.joint_states.assumed)

    def velocities(self, rates: StreamRates | None) -> Array:
        """Return the noise of joint velocities (n_joints,) [rad/s or m/s]; NaN: not known."""
        found = np.full(len(self._names), np.nan)
        for j, rate in enumerate([] if rates is None else rates.joints.tolist()):
            covariance = self._filters.joint(rate)
            found[j] = np.nan if covariance is None else np.sqrt(covariance[1, 1])
        # An assumed joint rests and has no rate.
        found[self._assumed] = 0.0
        return found

    def deviation(self, check: MomentumCheck, rates: StreamRates | None) -> Array:
        """Return about how much noise leaves unexplained, shape (2,) [N]."""
        gyroscope = self._settings.imu_of(check.imu).gyroscope_noise if check.imu else 0.0
        return check.deviation(gyroscope, self.velocities(rates))
