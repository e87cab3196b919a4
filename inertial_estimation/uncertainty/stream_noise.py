# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise of samples: that of messages behind the filters of the settings; live deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, isnan

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    joint_differentiator,
    smoother,
)
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.deviations import Deviations, Uncertainty
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    joint_covariance,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALIKE = 0.02
"""Rates that differ by less than this part share their weights: 1 % of a derivative's noise."""
ROUND_OFF = 0.01
"""Part of a period by which a delay may exceed whole periods and count as them."""
USED = np.array([SensorState.FRESH, SensorState.PARTIAL], dtype=np.uint8)
"""States of readings that something is taken from."""
Kind = tuple[str, float]
"""Of a filter, and the noise that it is for; 0: that of the joints, or any."""
GYROSCOPE = 'gyroscope'
UNFILTERED, JOINT, READING = ('', 0.0), ('joint', 0.0), ('reading', 0.0)
"""Kinds of filters: none, of joint positions, and of whole readings."""
NO_DERIVATIVES = np.array([[1.0], [0.0], [0.0]])
"""Weights of the newest sample where nothing is filtered."""


@dataclass(frozen=True, eq=False)
class StreamNoise:
    """Noise of the readings of the streams whose filters are known to work at their rates."""

    model: NoiseModel
    joints: Mask
    """Which joints it is stated for, shape (n_joints,)."""
    imus: Mask
    """Which IMUs, shape (n_imus,)."""
    fts: Mask
    """Which FT sensors, shape (n_fts,)."""

    def covers(self, sample: Sample) -> bool:
        """Tell whether it is stated for all readings of a sample."""
        states = sample.joint_states, sample.imu_states, sample.ft_states
        return bool(self.joints.any()) and not any(
            (~known if state is None else np.isin(state, USED) & ~known).any()
            for known, state in zip((self.joints, self.imus, self.fts), states, strict=True)
        )


class StreamFilters:
    """
    Noise of what a sample holds, behind the filters of the settings.

    What a filter makes of its samples takes milliseconds to find out. It is kept. A window that
    adapts has no noise that could be stated: how long it is depends on the motion.
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self._settings = settings
        sources = settings.joint_states.velocity_source, settings.joint_states.acceleration_source
        self._joints = JOINT if 'filter' in sources else UNFILTERED
        self._readings = READING if settings.filter.smooth_readings else UNFILTERED
        self._derives = settings.angular_acceleration_source == 'filter'
        self._weights: dict[Kind, list[tuple[float, Array | None]]] = {}

    def joint(self, rate: float) -> Array | None:
        """
        Return the noise of a joint.

        rate [Hz]; returns (3, 3).
        """
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
        """
        Return the noise of an IMU.

        rate [Hz]; returns (3, 3).
        """
        weights = self._at(self._kind_of(imu), rate)
        if weights is None:
            return None
        if not self._derives:
            weights = weights * NO_DERIVATIVES
        stated = self._settings.imu_of(imu.name)
        accelerometer = stated.accelerometer_noise * _size(weights[0])
        return imu_covariance(stated.gyroscope_noise, accelerometer, weights)

    def ft(self, name: str, rate: float) -> Array | None:
        """
        Return the noise of an FT sensor.

        rate [Hz]; returns (6,).
        """
        weights = self._at(self._readings, rate)
        return (
            None
            if weights is None
            else _size(weights[0]) * np.array(self._settings.ft_of(name).noise)
        )

    def learn_next(self, robot: Robot, rates: StreamRates) -> bool:
        """Find out what one filter does that is not known yet at its rate, if there is one."""
        kinds = (
            [self._joints] * len(robot.joint_names),
            [self._kind_of(imu) for imu in robot.imus],
            [self._readings] * len(robot.ft_sensors),
        )
        for kind, rate in zip(chain(*kinds), chain(*(own.tolist() for own in rates)), strict=True):
            if kind != UNFILTERED and not isnan(rate) and self._kept(kind, rate) is None:
                self._at(kind, rate)
                return True
        return False

    def _kind_of(self, imu: Imu) -> Kind:
        """Return the kind of filter that the readings of an IMU go through."""
        derives = self._derives and imu.measures != 'accelerometer'
        if derives and self._readings == UNFILTERED:
            return GYROSCOPE, self._settings.imu_of(imu.name).gyroscope_noise
        return self._readings

    def _at(self, kind: Kind, rate: float) -> Array | None:
        """Return the weights of a kind of filter; None: there is no rate, or none it works at."""
        if kind == UNFILTERED:
            return NO_DERIVATIVES
        if isnan(rate):
            return None
        kept = self._kept(kind, rate)
        if kept is None:
            kept = rate, self._learn(kind, rate)
            self._weights.setdefault(kind, []).append(kept)
        return kept[1]

    def _kept(self, kind: Kind, rate: float) -> tuple[float, Array | None] | None:
        """Return a rate like this and its weights, if they are known."""
        known = self._weights.get(kind, ())
        return next((kept for kept in known if abs(kept[0] - rate) <= ALIKE * rate), None)

    def _learn(self, kind: Kind, rate: float) -> Array | None:
        """Return what a kind of filter makes of its samples; None: it does not work."""
        settings = self._settings
        if settings.filter.kind == 'adaptive_window':
            return None
        differentiator: Differentiator
        if kind == JOINT:
            differentiator = joint_differentiator(settings, 1)
        elif kind[0] == GYROSCOPE:
            differentiator = gyroscope_differentiator(settings, kind[1])
        else:
            differentiator = smoother(settings)
        # The instant is that of a joint state, the first one that lies so far back.
        delay = ceil(settings.filter.delay * rate - ROUND_OFF) / rate
        smooth = settings.filter.smooth_readings
        try:
            return filter_weights(differentiator, rate, delay=delay, smooth=smooth)
        except ConfigError:
            # Its window never holds samples enough: the stream stays warming and is not used.
            return None


def stream_noise(
    settings: EstimatorSettings,
    robot: Robot,
    rates: StreamRates,
    filters: StreamFilters | None = None,
) -> StreamNoise:
    """Return the noise of all readings of a robot."""
    filters = filters or StreamFilters(settings)
    joints = [filters.joint(rate) for rate in rates.joints.tolist()]
    imus = [filters.imu(s, r) for s, r in zip(robot.imus, rates.imus.tolist(), strict=True)]
    fts = [
        filters.ft(s.name, r) for s, r in zip(robot.ft_sensors, rates.fts.tolist(), strict=True)
    ]
    model = NoiseModel(
        joints=_stacked(joints, (3, 3)),
        imus=_stacked(imus, (3, 3)),
        fts=_stacked(fts, (6,)),
        assumed_positions=np.zeros(len(joints)),
    )
    known = (np.array([one is not None for one in own], dtype=bool) for own in (joints, imus, fts))
    return StreamNoise(model, *known)


def _stacked(found: Sequence[Array | None], shape: tuple[int, ...]) -> Array:
    """Return the noise of each stream; zero where it is not known."""
    rows = [np.zeros(shape) if one is None else one for one in found]
    return np.array(rows).reshape(-1, *shape)


def _size(weights: Array) -> float:
    """Return what independent samples of unit noise add up to."""
    return float(np.sqrt(weights @ weights))


LOOK_NS = 1_000_000_000
"""Period at which rates are checked [ns]."""
CHANGED = 0.05
"""A rate that changes by a larger part changes the noise: 2.5 % of that of a derivative."""


class LiveUncertainty:
    """Standard deviations of estimates from the samples of an assembler."""

    def __init__(self, estimator: WrenchEstimator, settings: EstimatorSettings) -> None:
        self._estimator, self._settings = estimator, settings
        self._filters = StreamFilters(settings)
        robot = estimator.robot
        sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        self._rates = StreamRates(*(np.full(size, np.nan) for size in sizes))
        self._found: tuple[StreamNoise, Uncertainty] | None = None
        self._looked_ns = 0
        self._roots: Array | None = None

    def set_parameter_roots(self, roots: Array | None) -> None:
        """
        Say how sure the inertial parameters are.

        roots (n_links, 10, r).
        """
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
        """Return the standard deviations of the estimate of one instant."""
        found = self._found
        if found is None or not 0 <= sample.stamp_ns - self._looked_ns < LOOK_NS:
            found = self._look(sample, rates())
            if found is None:
                return None
        noise, uncertainty = found
        if noise.covers(sample):
            return uncertainty.of(sample, contacts)
        self._looked_ns = 0
        return None

    def _look(self, sample: Sample, rates: StreamRates) -> tuple[StreamNoise, Uncertainty] | None:
        """Return the noise at these rates; None while filters are to be learnt."""
        usable = self._usable(sample, rates)
        if self._found is None or any(map(_differ, usable, self._rates)):
            robot = self._estimator.robot
            if self._filters.learn_next(robot, usable):
                return None
            noise = stream_noise(self._settings, robot, usable, self._filters)
            self._found = noise, Uncertainty(self._estimator, noise.model, self._roots)
            self._rates = usable
        self._looked_ns = sample.stamp_ns
        return self._found

    def _usable(self, sample: Sample, rates: StreamRates) -> StreamRates:
        """Return the rates of what is used, else those before."""
        states = sample.joint_states, sample.imu_states, sample.ft_states
        return StreamRates(
            *(
                now if state is None else np.where(np.isin(state, USED), now, before)
                for now, before, state in zip(rates, self._rates, states, strict=True)
            )
        )


def _differ(now: Array, before: Array) -> bool:
    """Tell whether a rate has come, or changed by much."""
    like = np.abs(now - before) <= CHANGED * before
    return bool((~like & np.isfinite(now)).any())
