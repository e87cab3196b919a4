# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The filters of the settings: derivatives of joint positions and of angular velocities.

In the Kalman filter each channel has a constant acceleration but for white jerk. State of a
channel: value, first and second derivative. The gain depends on the interval and on the density of
the jerk over the variance of the values, so that all channels share it. Where the intervals are
equal it is the steady one, else the covariance is carried along. An instant in the past is
estimated from the later samples as well, by the smoother of Rauch, Tung and Striebel.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.savitzky_golay import (
    CUBIC,
    QUINTIC,
    REGULAR_TOLERANCE,
    Samples,
    SavitzkyGolayFilter,
)

MIN_NOISE = 1e-9
"""Least noise of angular velocities for the Kalman filter [rad/s]."""
JERK_RATIO = 10.0
"""Density of the third derivative of angular velocities over that of the jerk of joints [1/s]."""
SETTLING = 14.0
"""
Time until the start is forgotten, over the filter's time constant (interval / density)^(1/6).

The slowest mode decays with half the inverse of that constant: exp(-7) of it is left.
"""
MIN_SAMPLES = 7
REGULAR_RUN = 20
"""Equal intervals between two tests of the steady gain; no irregular stream has such a run."""
STEADY_TOLERANCE = 1e-6
"""Relative distance to the steady covariance at which the steady gain takes over."""
FIRST_VARIANCE = 1e8
"""
Variance of the derivatives at the first sample, over that of the values and powers of the rate.

It stands for no knowledge; more of it would be lost in the round-off of the covariance.
"""
KEPT_NS = 200_000_000
"""Time beyond the delay for which samples are kept: an instant may lie a gap before it [ns]."""
VALUE = np.array([[1.0], [0.0], [0.0]])
"""State of a value of 1 at rest, (3, 1)."""


class Gains(NamedTuple):
    """Matrices of one step of the filter."""

    transition: Array
    """Shape (3, 3)."""
    gain: Array
    """Gain of the innovation, shape (3, 1)."""
    predicted_covariance: Array
    """Before the correction, shape (3, 3)."""
    covariance: Array
    """After the correction, shape (3, 3)."""


class Step(NamedTuple):
    """One sample of the smoother."""

    stamp_ns: int
    state: Array
    """After the correction, shape (3, n_channels)."""
    predicted: Array
    """Before the correction."""
    gains: Gains
    back: Array
    """Gain of the smoother from this sample to the one before, shape (3, 3)."""


def model(interval: float, density: float) -> tuple[Array, Array]:
    """
    Return the transition of the state and the added covariance of an interval.

    interval [s]; density [1/s^5]; returns transition (3, 3); added (3, 3).
    """
    t = interval
    transition = np.array([[1.0, t, t * t / 2.0], [0.0, 1.0, t], [0.0, 0.0, 1.0]])
    t3, t4, t5 = t**3 / 6.0, t**4 / 8.0, t**5 / 20.0
    added = np.array([[t5, t4, t3], [t4, t**3 / 3.0, t * t / 2.0], [t3, t * t / 2.0, t]])
    return transition, density * added


def gains_of_step(covariance: Array, interval: float, density: float) -> Gains:
    """Return the optimal gains after a covariance (3, 3) and an interval [s]."""
    transition, added = model(interval, density)
    predicted = transition @ covariance @ transition.T + added
    gain = predicted[:, :1] / (predicted[0, 0] + 1.0)
    return Gains(transition, gain, predicted, predicted - gain * predicted[0])


@lru_cache(maxsize=64)
def steady_gains(interval_ns: int, density: float) -> Gains:
    """Return the gains of equal intervals [ns]: those of the algebraic Riccati equation."""
    from scipy.linalg import solve_discrete_are

    interval = 1e-9 * interval_ns
    # With the interval as unit of time all entries are near one another.
    transition, added = model(1.0, density * interval**5)
    units = np.array([1.0, 1.0 / interval, 1.0 / interval**2])
    scaled: Array = solve_discrete_are(transition.T, VALUE, added, np.eye(1))
    predicted = units[:, None] * scaled * units
    gain = predicted[:, :1] / (predicted[0, 0] + 1.0)
    return Gains(model(interval, density)[0], gain, predicted, predicted - gain * predicted[0])


def smoother_gain(covariance: Array, gains: Gains) -> Array:
    """Return the smoother's gain from a sample to the one before, which has a covariance."""
    back = np.linalg.solve(gains.predicted_covariance, gains.transition @ covariance)
    return np.asarray(back.T, np.float64)


class KalmanFilter:
    """
    Kalman differentiator of many channels that share their stamps.

    It is ready once `MIN_SAMPLES` samples span its settling time, and restarts after a longer
    gap.

    noise [unit]; jerk [unit/s^3/sqrt(Hz)]; delay [s].
    """

    def __init__(self, n_channels: int, noise: float, jerk: float, delay: float = 0.0) -> None:
        self.n_channels = n_channels
        self._density = (jerk / noise) ** 2
        self._kept_ns = round(1e9 * delay) + KEPT_NS if delay else 0
        self.reset()

    def reset(self) -> None:
        self._first_ns = self._newest_ns = self._count = 0
        self._interval = self._run = 0
        self._settling = float('nan')
        self.ready = self._all_begun = self._partial = False
        self._state = np.full((3, self.n_channels), np.nan)
        self._begun_ns = np.zeros(self.n_channels, dtype=np.int64)
        self._covariance = np.eye(3)
        self._steady: Gains | None = None
        self._steps: deque[Step] = deque()
        self._innovations = Samples(self.n_channels)
        self._steady_back, self._lag_weights = np.eye(3), np.empty((3, 0))
        self._steady_steps = 0

    @property
    def lack(self) -> str:
        if self.ready:
            return ''
        held = 1e-9 * (self._newest_ns - self._first_ns)
        return (
            f'{self._count} samples that span {held:.3g} s since the start or the last gap, the '
            f'Kalman filter needs {MIN_SAMPLES} that span {self._settling:.3g} s'
        )

    def append(self, stamp_ns: int, values: Array) -> None:
        interval = stamp_ns - self._newest_ns
        if 1e-9 * interval > self._settling:
            self.reset()
        if self._count:
            self._step(stamp_ns, interval, values)
        else:
            self._first_ns = stamp_ns
            rate = self._density**0.2
            self._covariance = np.diag([1.0, FIRST_VARIANCE * rate**2, FIRST_VARIANCE * rate**4])
        self._newest_ns = stamp_ns
        self._count += 1
        if not self.ready and self._count > 1:
            held = 1e-9 * (stamp_ns - self._first_ns)
            constant = (held / (self._count - 1) / self._density) ** (1.0 / 6.0)
            self._settling = SETTLING * float(constant)
            self.ready = self._count >= MIN_SAMPLES and held >= self._settling
        square = float(np.vdot(values, values))
        if not self._all_begun or square - square != 0.0:
            self._begin_channels(stamp_ns, values)

    def evaluate_at(self, stamp_ns: int) -> Array:
        if stamp_ns >= self._newest_ns:
            return self._settled(self._state.copy(), self._newest_ns)
        return self._settled(self._smoothed(stamp_ns), stamp_ns)

    def _step(self, stamp_ns: int, interval: int, values: Array) -> None:
        """Carry the states to a sample and correct them by its values."""
        before, gains = self._covariance, self._steady_for(interval)
        if gains is None:
            gains = gains_of_step(before, 1e-9 * interval, self._density)
            self._covariance = gains.covariance
        predicted = gains.transition @ self._state
        innovation = values - predicted[0]
        self._state = predicted + gains.gain * innovation
        if self._kept_ns:
            steady = gains is self._steady
            back = self._steady_back if steady else smoother_gain(before, gains)
            self._steady_steps = self._steady_steps + 1 if steady else 0
            steps = self._steps
            steps.append(Step(stamp_ns, self._state, predicted, gains, back))
            while steps[0].stamp_ns < stamp_ns - self._kept_ns:
                steps.popleft()
            self._innovations.push(stamp_ns, innovation, len(steps) - 1)

    def _steady_for(self, interval: int) -> Gains | None:
        """Return the steady gains once the covariance has come to them."""
        if abs(interval - self._interval) > REGULAR_TOLERANCE * self._interval:
            self._interval, self._run, self._steady = interval, 1, None
            return None
        self._run += 1
        if self._steady is None and self._run % REGULAR_RUN == 0:
            steady = steady_gains(self._interval, self._density)
            if np.allclose(self._covariance, steady.covariance, rtol=STEADY_TOLERANCE, atol=0.0):
                self._steady, self._covariance = steady, steady.covariance
                self._steady_back = smoother_gain(steady.covariance, steady)
                self._lag_weights = np.empty((3, 0))
        return self._steady

    def _begin_channels(self, stamp_ns: int, values: Array) -> None:
        """Restart with each channel that has a value again; drop those that lost it."""
        finite = np.isfinite(values)
        self._begun_ns[~finite] = 0
        self._state[:, ~finite] = np.nan
        new = finite & (self._begun_ns == 0)
        self._begun_ns[new] = stamp_ns
        self._state[:, new] = VALUE * values[new]
        self._all_begun = bool(finite.all())
        self._partial = bool((self._begun_ns != self._first_ns).any())

    def _settled(self, values: Array, stamp_ns: int) -> Array:
        """Return values with NaN for the channels that have not settled at a stamp."""
        if not self.ready:
            values[:] = np.nan
        elif self._partial:
            young = 1e-9 * (stamp_ns - self._begun_ns) < self._settling
            values[:, young | (self._begun_ns == 0)] = np.nan
            self._partial = bool(young.any() or not self._all_begun)
        return values

    # Smoother

    def _smoothed(self, stamp_ns: int) -> Array:
        """Return the states at an instant before the newest sample, (3, n_channels)."""
        steps = self._steps
        earlier = (k for k, step in enumerate(reversed(steps)) if step.stamp_ns < stamp_ns)
        before = next(earlier, len(steps))
        if before == len(steps) and (not steps or steps[0].stamp_ns != stamp_ns):
            return np.full((3, self.n_channels), np.nan)
        lag = before - 1
        smoothed = self._weighted(lag) if lag <= self._steady_steps else self._swept(lag)
        later = steps[-1 - lag]
        if later.stamp_ns == stamp_ns:
            return smoothed
        # Between two samples: one step to the instant, and back from the later sample.
        step = steps[-1 - before]
        interval = 1e-9 * (stamp_ns - step.stamp_ns)
        there = gains_of_step(step.gains.covariance, interval, self._density)
        rest = model(1e-9 * (later.stamp_ns - stamp_ns), self._density)[0]
        back = smoother_gain(there.predicted_covariance, later.gains._replace(transition=rest))
        states: Array = there.transition @ step.state + back @ (smoothed - later.predicted)
        return states

    def _weighted(self, lag: int) -> Array:
        """Return the states of an earlier sample since which all gains were steady."""
        state = self._steps[-1 - lag].state
        if lag > self._lag_weights.shape[1]:
            newest = self._steps[-1]
            columns = [newest.back @ newest.gains.gain]
            while len(columns) < 2 * lag:
                columns.append(newest.back @ columns[-1])
            self._lag_weights = np.hstack(columns)
        smoothed: Array = state + self._lag_weights[:, :lag] @ self._innovations.newest(lag)[1]
        return smoothed

    def _swept(self, lag: int) -> Array:
        """Return the states of an earlier sample, step by step from the newest."""
        steps = reversed(self._steps)
        later = next(steps)
        smoothed = later.state.copy()
        for _ in range(lag):
            step = next(steps)
            smoothed = step.state + later.back @ (smoothed - later.predicted)
            later = step
        return smoothed


Differentiator = SavitzkyGolayFilter | KalmanFilter
"""A filter of many channels that share their stamps."""


def joint_differentiator(settings: EstimatorSettings, n_channels: int) -> Differentiator:
    """Return the filter of joint positions."""
    noise, jerk = settings.joint_states.position_noise, settings.filter.joint_jerk
    return _differentiator(settings, n_channels, noise, jerk)


def gyroscope_differentiator(settings: EstimatorSettings, noise: float) -> Differentiator:
    """Return the filter of one gyroscope; noise [rad/s]."""
    jerk = JERK_RATIO * settings.filter.joint_jerk
    return _differentiator(settings, 3, max(noise, MIN_NOISE), jerk)


def _differentiator(
    settings: EstimatorSettings, n_channels: int, noise: float, jerk: float
) -> Differentiator:
    """Return a filter for signals with some noise and jerk."""
    if settings.filter.kind == 'kalman':
        return KalmanFilter(n_channels, noise, jerk, settings.filter.delay)
    return smoother(settings, n_channels)


def smoother(settings: EstimatorSettings, n_channels: int = 6) -> SavitzkyGolayFilter:
    """Return the filter of the readings of an FT sensor or IMU."""
    order = QUINTIC if settings.filter.kind == 'quintic' else CUBIC
    return SavitzkyGolayFilter(n_channels, settings.filter.window, order)
