# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives by a Kalman filter: each channel has a constant acceleration but for white jerk.

State of a channel: value, first and second derivative. The gain depends on the interval and on
the density of the jerk over the variance of the values, so that all channels share it.

While the intervals are equal the gain is the steady one. Where they are not, the covariance is
carried along with the true intervals: that is the optimal gain for any stamps, whereas the steady
gain of each single interval would give a sample that follows soon after another too little weight
and one after a gap too much. The covariance then converges to the steady one by itself.

For an instant in the past the later samples are used as well (`fixed_lag`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from inertial_estimation.sample import Array
from inertial_estimation.signals.fixed_lag import (
    UNIT,
    FixedLagSmoother,
    Gains,
    Step,
    gains_of_step,
    smoother_gain,
    steady_gains,
)
from inertial_estimation.signals.windows import REGULAR_TOLERANCE

SETTLING = 14.0
"""
Time until the start is forgotten, over the filter's time constant (interval / density)^(1/6).

The slowest mode decays with half the inverse of that constant: exp(-7) of it is left.
"""
LEAST_SAMPLES = 7
REGULAR_RUN = 20
"""Equal intervals after which the steady gain is looked at; no irregular stream has such a run."""
STEADY_TOLERANCE = 1e-6
"""Relative distance to the steady covariance at which the steady gain takes over."""
FIRST_VARIANCE = 1e8
"""
Variance of the derivatives at the first sample, over that of the values and powers of the rate.

It stands for no knowledge; more of it would be lost in the round-off of the covariance.
"""
KEPT_NS = 200_000_000
"""How far beyond the delay samples are kept: an instant may lie a gap before it [ns]."""


class KalmanFilter:
    """
    Kalman differentiator of many channels that share their stamps.

    It is ready once `LEAST_SAMPLES` samples span its settling time, and restarts after a longer
    gap.

    noise [unit]; jerk [unit/s^3/sqrt(Hz)]; delay [s].
    """

    def __init__(self, n_channels: int, noise: float, jerk: float, delay: float = 0.0) -> None:
        self.n_channels = n_channels
        self._density = (jerk / noise) ** 2
        self._kept_ns = round(1e9 * delay) + KEPT_NS if delay else 0
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._first_ns = self._newest_ns = self._count = 0
        self._interval = self._run = 0
        self._settling = float('nan')
        self._ready = self._all_begun = self._partial = False
        self._state = np.full((3, self.n_channels), np.nan)
        self._begun_ns = np.zeros(self.n_channels, dtype=np.int64)
        self._covariance = np.eye(3)
        self._steady: Gains | None = None
        self._smoother = FixedLagSmoother(self.n_channels, self._density, self._kept_ns)

    @property
    def ready(self) -> bool:
        """Whether the start is forgotten, so that `evaluate` returns numbers."""
        return self._ready

    @property
    def lack(self) -> str:
        if self._ready:
            return ''
        held = 1e-9 * (self._newest_ns - self._first_ns)
        return (
            f'{self._count} samples that span {held:.3g} s since the start or the last gap, the '
            f'Kalman filter needs {LEAST_SAMPLES} that span {self._settling:.3g} s'
        )

    def append(self, stamp_ns: int, values: Array) -> None:
        """Take one sample; `evaluate` then answers for its stamp; values (n_channels,)."""
        interval = stamp_ns - self._newest_ns
        if 1e-9 * interval > self._settling:
            self.reset()
        if self._count:
            self._step(stamp_ns, interval, values)
        else:
            self._begin(stamp_ns)
        self._newest_ns = stamp_ns
        self._count += 1
        if not self._ready and self._count > 1:
            self._settle()
        square = float(np.vdot(values, values))
        if not self._all_begun or square - square != 0.0:
            self._begin_channels(stamp_ns, values)

    def evaluate(self) -> Array:
        return self._settled(self._state[1:].copy(), self._newest_ns)

    def evaluate_at(self, stamp_ns: int) -> Array:
        """
        Return the state at an instant, from the samples before and after it.

        Returns (3, n_channels) [1/s].
        """
        if stamp_ns >= self._newest_ns:
            return self._settled(self._state.copy(), self._newest_ns)
        return self._settled(self._smoother.states_at(stamp_ns), stamp_ns)

    def _begin(self, stamp_ns: int) -> None:
        """Know nothing but the values of the first sample."""
        self._first_ns = stamp_ns
        rate = self._density**0.2
        self._covariance = np.diag([1.0, FIRST_VARIANCE * rate**2, FIRST_VARIANCE * rate**4])

    def _settle(self) -> None:
        """Find out whether the start is forgotten."""
        held = 1e-9 * (self._newest_ns - self._first_ns)
        interval = held / (self._count - 1)
        self._settling = SETTLING * float((interval / self._density) ** (1.0 / 6.0))
        self._ready = self._count >= LEAST_SAMPLES and held >= self._settling

    def _step(self, stamp_ns: int, interval: int, values: Array) -> None:
        """Carry the states to a sample and correct them by its values."""
        before = self._covariance
        gains = self._steady_for(interval)
        if gains is None:
            gains = gains_of_step(before, 1e-9 * interval, self._density)
            self._covariance = gains.covariance
        predicted = gains.transition @ self._state
        innovation = values - predicted[0]
        self._state = predicted + gains.gain * innovation
        if self._kept_ns:
            back = gains.back if gains.back is not None else smoother_gain(before, gains)
            step = Step(stamp_ns, self._state, predicted, gains, back)
            self._smoother.keep(step, innovation, steady=gains is self._steady)

    def _steady_for(self, interval: int) -> Gains | None:
        """Return the steady gains once the covariance has come to them."""
        if abs(interval - self._interval) > REGULAR_TOLERANCE * self._interval:
            self._interval, self._run, self._steady = interval, 1, None
            return None
        self._run += 1
        if self._steady is None and self._run % REGULAR_RUN == 0:
            steady = _steady(self._interval, self._density)
            if np.allclose(self._covariance, steady.covariance, rtol=STEADY_TOLERANCE, atol=0.0):
                self._steady, self._covariance = steady, steady.covariance
        return self._steady

    def _begin_channels(self, stamp_ns: int, values: Array) -> None:
        """Restart with each channel that has a value again; drop those that lost it."""
        finite = np.isfinite(values)
        self._begun_ns[~finite] = 0
        self._state[:, ~finite] = np.nan
        new = finite & (self._begun_ns == 0)
        self._begun_ns[new] = stamp_ns
        self._state[:, new] = UNIT * values[new]
        self._all_begun = bool(finite.all())
        self._partial = bool((self._begun_ns != self._first_ns).any())

    def _settled(self, values: Array, stamp_ns: int) -> Array:
        """Return values with NaN for the channels that have not settled at a stamp."""
        if not self._ready:
            values[:] = np.nan
        elif self._partial:
            young = 1e-9 * (stamp_ns - self._begun_ns) < self._settling
            values[:, young | (self._begun_ns == 0)] = np.nan
            self._partial = bool(young.any() or not self._all_begun)
        return values


@lru_cache(maxsize=64)
def _steady(interval_ns: int, density: float) -> Gains:
    return steady_gains(1e-9 * interval_ns, density)
