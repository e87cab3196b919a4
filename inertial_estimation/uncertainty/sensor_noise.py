# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Stated noise of every reading of a robot, also behind the filters of the settings.

Noise has zero mean, and that of different sensors is independent. Offsets, delays and errors of
the model are no noise. Signals from the same samples err together, so the noise of a joint is a
covariance of three signals, and so is that of an IMU; behind a filter the weights of its samples
determine it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from math import ceil, isnan

import numpy as np

from inertial_estimation.arrays import Array, Mask, read_only
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, ShapeError
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

IMPOSSIBLE = 1e-5
"""Correlations with an eigenvalue further below zero are no round-off."""
SAME_RATE = 0.02
"""Relative difference of rates that share their weights: 1 % of a derivative's noise."""
ROUND_OFF = 0.01
"""Part of a period by which a delay may exceed whole periods and count as them."""
USED = np.array([SensorState.FRESH, SensorState.PARTIAL], dtype=np.uint8)
"""States of readings that are used."""
NO_DERIVATIVES = np.array([[1.0], [0.0], [0.0]])
"""Weights of the newest sample where nothing is filtered."""


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """
    Noise of every reading of a robot; rows follow the robot.

    Raises
    ------
    ShapeError
        If an array has the wrong shape.
    ConfigError
        If a number is not finite, a standard deviation is negative, or a matrix is no covariance.

    """

    joints: Array
    """Covariance of position, velocity, acceleration, shape (n_joints, 3, 3) [rad or m, s]."""
    imus: Array
    """
    Covariance of angular velocity [rad/s], proper acceleration [m/s^2] and angular acceleration
    [rad/s^2] along each axis; the axes are alike and independent, shape (n_imus, 3, 3).
    """
    fts: Array
    """Standard deviation of the readings before calibration, shape (n_fts, 6) [N, Nm]."""

    def __post_init__(self) -> None:
        """Check all numbers and keep read-only copies."""
        for name, size in (('joints', (3, 3)), ('imus', (3, 3)), ('fts', (6,))):
            array = read_only(getattr(self, name))
            if array.shape[1:] != size:
                raise ShapeError(name, ('n', *size), array.shape)
            if not np.isfinite(array).all():
                raise ConfigError(f'{name} of the noise hold NaN or infinity')
            object.__setattr__(self, name, array)
        if (self.fts < 0.0).any():
            raise ConfigError('fts of the noise hold a negative standard deviation')
        covariance_root(self.joints)
        covariance_root(self.imus)

    @classmethod
    def uniform(cls, robot: Robot, *, joint: Array, imu: Array, ft: Array) -> NoiseModel:
        """
        Return the noise of a robot whose sensors of a kind are alike.

        Parameters
        ----------
        robot : Robot
            Number of joints, IMUs and FT sensors.
        joint : ndarray, shape (3, 3)
            Covariance of position, velocity and acceleration, such as from
            `joint_covariance`.
        imu : ndarray, shape (3, 3)
            Covariance of angular velocity, proper acceleration and angular acceleration, such as
            from `imu_covariance`.
        ft : ndarray, shape (6,)
            Standard deviation of the readings [N, Nm].

        Returns
        -------
        NoiseModel

        """
        return cls(
            joints=np.broadcast_to(joint, (len(robot.joint_names), 3, 3)),
            imus=np.broadcast_to(imu, (len(robot.imus), 3, 3)),
            fts=np.broadcast_to(ft, (len(robot.ft_sensors), 6)),
        )


def covariance_root(covariances: Array) -> Array:
    """Return lower triangular L with ``L L' = covariance``, also if singular; (..., 3, 3)."""
    variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    if (variances < 0.0).any() or not np.array_equal(covariances, covariances.swapaxes(-1, -2)):
        raise ConfigError('a covariance of the noise is not symmetric or has a negative variance')
    sizes = np.sqrt(variances)[..., None]
    scales = np.where(sizes > 0.0, sizes, 1.0)
    values, axes = np.linalg.eigh(covariances / scales / scales.swapaxes(-1, -2))
    if values.min(initial=0.0) < -IMPOSSIBLE:
        raise ConfigError('a covariance of the noise has correlations that are impossible')
    root = sizes * axes * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(np.linalg.qr(root.swapaxes(-1, -2), mode='r')).swapaxes(-1, -2)


IMPULSE = 1e-9
"""The odd sample [unit]: small beside the noise, where a filter asks how large that is."""
FADED = 1e-3
"""Part of the largest weight below which weights are left out."""
MIN_ANSWERS = 16
MAX_SAMPLES = 1 << 16


def filter_weights(
    differentiator: Differentiator, rate: float, *, delay: float = 0.0, smooth: bool = False
) -> Array:
    """Return the weights of samples, (3, count) [1/s]: the answer to one odd sample; SI."""
    period_ns, delay_ns = round(1e9 / rate), round(1e9 * delay)
    differentiator.reset()
    stamps, zeros, n = count(period_ns, period_ns), np.zeros(differentiator.n_channels), 0
    while not differentiator.ready:
        if n > MAX_SAMPLES:
            raise ConfigError(f'samples every {1e-9 * period_ns:g} s: {differentiator.lack}')
        differentiator.append(next(stamps), zeros)
        n += 1
    # Until nothing of the beginning is left.
    for _ in range(n + 1):
        differentiator.append(next(stamps), zeros)
    answers: list[Array] = []
    faded = False
    while not faded:
        if len(answers) > MAX_SAMPLES:
            raise ConfigError(f'the derivative filter at {rate} Hz does not forget a sample')
        stamp_ns = next(stamps)
        differentiator.append(stamp_ns, zeros if answers else zeros + IMPULSE)
        answers.append(differentiator.evaluate_at(stamp_ns - delay_ns)[:, 0] / IMPULSE)
        # At powers of two: whether the second half is small beside all.
        n = len(answers)
        if n >= MIN_ANSWERS and not n & (n - 1):
            sizes = np.nan_to_num(np.abs(answers), nan=0.0)
            faded = bool((sizes[n // 2 :].max(axis=0) <= FADED * sizes.max(axis=0)).all())
    weights = np.array(answers)[::-1].T.copy()
    if not smooth:
        weights[0] = 0.0
        weights[0, -1 - round(delay_ns / period_ns)] = 1.0
    return weights


def joint_covariance(
    position: float,
    weights: Array,
    *,
    velocity: float | None = None,
    neglects_acceleration: bool = False,
) -> Array:
    """Return the noise (3, 3) of a joint; weights (3, count) of positions; velocity: reported."""
    own = np.array([1.0, velocity is None, not neglects_acceleration])
    weights = own[:, None] * weights
    covariance: Array = position**2 * (weights @ weights.T)
    if velocity is not None:
        covariance[1, 1] = velocity**2
    return covariance


def imu_covariance(gyroscope: float, accelerometer: float, weights: Array) -> Array:
    """Return the noise (3, 3) of an IMU; weights (3, count) of its gyroscope."""
    covariance = np.diag(np.square([0.0, accelerometer, 0.0]))
    covariance[::2, ::2] = gyroscope**2 * (weights[:2] @ weights[:2].T)
    return covariance


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
    """Noise of single streams behind the filters of the settings; None where none is stated."""

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
        given, weights = self._settings.joint_states, self._at(self._joints, rate)
        if weights is None:
            return None
        return joint_covariance(
            given.position_noise, weights,
            neglects_acceleration=given.acceleration_source == 'zero',
            velocity=given.velocity_noise if given.velocity_source == 'message' else None,
        )  # fmt: skip

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
    names = [one.name for one in robot.ft_sensors]
    found: tuple[Sequence[Array | None], ...] = (
        [*map(filters.joint, joints)], [*map(filters.imu, robot.imus, imus)],
        [*map(filters.ft, names, fts)],
    )  # fmt: skip
    # Zero where it is not known.
    stated = (
        np.array([np.zeros(shape) if one is None else one for one in own]).reshape(-1, *shape)
        for own, shape in zip(found, ((3, 3), (3, 3), (6,)), strict=True)
    )
    known = (np.array([one is not None for one in own], dtype=bool) for own in found)
    return StreamNoise(NoiseModel(*stated), *known)


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
