# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What each derivative filter costs and how much it errs, on the demo's motion and noise.

The joints follow the demo's reference, so that the true derivatives are known to the last digit.
A gyroscope turns like a joint. Errors are root mean squares over instants and channels; the lag is
by how much the truth must be shifted to come nearest to the result, beyond the delay that was
asked for. Durations are those of one update of 32 joints, as ratios to the usual filter's of the
same rate in the same interleaved run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from bench.timing import Array, Progress, Timed, interleave, ratio
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.derivatives import (
    Differentiator,
    differentiate_with,
    gyroscope_differentiator,
    joint_differentiator,
)
from inertial_estimation.simulation.motion import START, Motion
from inertial_estimation.simulation.noise import NoiseLevels
from inertial_estimation.simulation.scenario import ACCELERATION

RATES = (250, 1000)
"""Of the joint states [Hz]."""
DURATION = 3.0
"""Of the motion [s]."""
SETTLED = 0.5
"""Part of it that does not count: until each filter is filled [s]."""
JOINTS = 32
GYROSCOPES = 4
"""Of three channels each."""
ROUNDS = 20
BLOCK = 20
WINDOW = 0.12
"""The demo's [s]."""
CHOICES: tuple[EstimatorSettings, ...] = (
    *(
        EstimatorSettings(derivative_window=window, filter_delay=delay)
        for window, delay in (
            (WINDOW, 0.0), (0.06, 0.0), (0.2, 0.0),
            (WINDOW, 0.008), (WINDOW, 0.02), (WINDOW, 0.032), (WINDOW, 0.06),
        )
    ),
    *(
        EstimatorSettings(
            derivative_filter='kalman', derivative_joint_jerk=joint,
            derivative_gyroscope_jerk=gyroscope, filter_delay=delay,
        )
        for joint, gyroscope, delay in (
            (1.0, 10.0, 0.0), (3.0, 30.0, 0.0), (10.0, 100.0, 0.0),
            (3.0, 30.0, 0.02), (3.0, 30.0, 0.06),
        )
    ),
    *(
        EstimatorSettings(
            derivative_filter='adaptive_window', derivative_window=WINDOW,
            derivative_joint_noise=joint, derivative_gyroscope_noise=gyroscope,
            filter_delay=delay,
        )
        for joint, gyroscope, delay in (
            (1e-4, 3e-3, 0.0), (2e-4, 6e-3, 0.0), (1e-4, 3e-3, 0.02), (1e-4, 3e-3, 0.06),
        )
    ),
)  # fmt: skip
"""The filters that are compared, the usual one first."""
TITLE = 'Derivatives (kalman: jerk, adaptive_window: noise, of joints and gyroscopes)'
COLUMNS = (
    '[Hz]', 'filter', 'delay [ms]', 'velocity [rad/s]', 'lag [ms]', 'accel. [rad/s^2]', 'lag [ms]',
    'gyro [rad/s^2]', 'lag [ms]', 'update [us]', '/ first',
)  # fmt: skip


@dataclass(frozen=True)
class Score:
    """How well a derivative is found."""

    rms: float
    """Root mean square of the error [unit of the derivative]."""
    lag: float
    """How late the result comes, beyond the delay [s]."""


@dataclass(frozen=True)
class FilterScore:
    """What one filter does at one rate."""

    rate: int
    settings: EstimatorSettings
    velocity: Score
    """Of the joints [rad/s]."""
    acceleration: Score
    """Of the joints [rad/s^2]."""
    angular_acceleration: Score
    """Of the gyroscopes [rad/s^2]."""
    update: float
    """Median duration of an update of all joints [us]."""
    ratio: float
    """Duration over that of the first filter at the same rate."""

    @property
    def row(self) -> tuple[str, ...]:
        """The figures as a row of `COLUMNS`."""
        scores = (self.velocity, self.acceleration, self.angular_acceleration)
        cells = [cell for s in scores for cell in (f'{s.rms:.3g}', f'{1e3 * s.lag:.1f}')]
        delay = f'{1e3 * self.settings.filter_delay:g}'
        name = name_of(self.settings)
        return str(self.rate), name, delay, *cells, f'{self.update:.1f}', f'{self.ratio:.1f}'

    def as_dict(self) -> dict[str, float | str]:
        """Return the figures for a machine."""
        return {
            'rate_hz': self.rate,
            'filter': name_of(self.settings),
            'delay_s': self.settings.filter_delay,
            'velocity_rms': self.velocity.rms,
            'velocity_lag_s': self.velocity.lag,
            'acceleration_rms': self.acceleration.rms,
            'acceleration_lag_s': self.acceleration.lag,
            'angular_acceleration_rms': self.angular_acceleration.rms,
            'angular_acceleration_lag_s': self.angular_acceleration.lag,
            'update_us': self.update,
            'ratio': self.ratio,
        }


def name_of(settings: EstimatorSettings) -> str:
    """Return what tells a filter from the others."""
    kind = settings.derivative_filter
    if kind == 'kalman':
        jerks = settings.derivative_joint_jerk, settings.derivative_gyroscope_jerk
        return f'{kind} {jerks[0]:g}, {jerks[1]:g}'
    if kind == 'adaptive_window':
        noises = settings.derivative_joint_noise, settings.derivative_gyroscope_noise
        return f'{kind} {noises[0]:g}, {noises[1]:g}'
    return f'{kind} {settings.derivative_window:g} s, order {settings.derivative_order}'


def compare(
    rates: Sequence[int] = RATES,
    choices: Sequence[EstimatorSettings] = CHOICES,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> tuple[FilterScore, ...]:
    """Compare filters."""
    tell = progress or (lambda share: None)
    found = []
    for k, rate in enumerate(rates):
        signals = Signals.make(rate)
        calls = {str(n): Timed(_updates(signals, s), BLOCK) for n, s in enumerate(choices)}
        durations = interleave(calls, rounds)
        for n, settings in enumerate(choices):
            found.append(_score(rate, signals, settings, durations[str(n)], durations['0']))
            tell((k + (n + 1) / len(choices)) / len(rates))
    return tuple(found)


@dataclass(frozen=True)
class Signals:
    """The motion of all joints, and what encoders and gyroscopes say."""

    stamps_ns: NDArray[np.int64]
    truth: Array
    """Velocity, acceleration and jerk, shape (3, n, JOINTS) [rad/s, rad/s^2, rad/s^3]."""
    positions: Array
    """With noise, shape (n, JOINTS) [rad]."""
    rates: Array
    """What the gyroscopes say, shape (n, 3 * GYROSCOPES) [rad/s]."""

    @classmethod
    def make(cls, rate: int, seed: int = 0) -> Signals:
        """Return signals of a rate."""
        rng, levels = np.random.default_rng(seed), NoiseLevels()
        motion = Motion.random(np.zeros(JOINTS), np.full(JOINTS, ACCELERATION), rng)
        times = START + np.arange(round(DURATION * rate)) / rate
        angles = motion.frequencies * times[:, None, None] + motion.phases
        curves = [
            (motion.amplitudes * motion.frequencies**k * np.sin(angles + 0.5 * np.pi * k)).sum(-1)
            for k in range(4)
        ]
        turning = curves[1][:, : 3 * GYROSCOPES]
        return cls(
            np.round(1e9 * times).astype(np.int64),
            np.array(curves[1:]),
            curves[0] + levels.encoder * rng.standard_normal(curves[0].shape),
            turning + levels.gyroscope * rng.standard_normal(turning.shape),
        )


def _updates(signals: Signals, settings: EstimatorSettings) -> Callable[[], object]:
    """Return a call that goes on through the positions, again and again."""
    differentiator = joint_differentiator(settings, JOINTS)
    period_ns = int(signals.stamps_ns[1] - signals.stamps_ns[0])
    delay_ns = round(1e9 * settings.filter_delay)
    numbers, rows = count(1), list(signals.positions)

    def update() -> object:
        k = next(numbers)
        differentiator.append(k * period_ns, rows[k % len(rows)])
        if not delay_ns:
            return differentiator.evaluate()
        return differentiator.evaluate_at(k * period_ns - delay_ns)

    for _ in range(2 * len(rows) // 5):
        update()
    return update


def _score(
    rate: int, signals: Signals, settings: EstimatorSettings, durations: Array, usual: Array
) -> FilterScore:
    """Return the scores of one filter."""
    joints = joint_differentiator(settings, JOINTS)
    first, second = differentiate_with(
        joints, signals.stamps_ns, signals.positions, settings.filter_delay
    )
    angular = np.hstack([
        _first(gyroscope_differentiator(settings), signals, k, settings)
        for k in range(GYROSCOPES)
    ])  # fmt: skip
    velocity, acceleration, jerk = signals.truth
    turning = slice(angular.shape[1])
    return FilterScore(
        rate,
        settings,
        _compared(first, velocity, acceleration, rate),
        _compared(second, acceleration, jerk, rate),
        _compared(angular, acceleration[:, turning], jerk[:, turning], rate),
        float(np.median(durations)),
        ratio(durations, usual),
    )


def _first(
    differentiator: Differentiator, signals: Signals, k: int, settings: EstimatorSettings
) -> Array:
    """Return the angular acceleration of a gyroscope."""
    rows = signals.rates[:, 3 * k : 3 * k + 3]
    delay = settings.filter_delay
    return differentiate_with(differentiator, signals.stamps_ns, rows, delay)[0]


def _compared(found: Array, truth: Array, slope: Array, rate: int) -> Score:
    """Return error and lag; a lag shows as an error in proportion to the truth's slope."""
    known: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(found), axis=1)
    known[: round(SETTLED * rate)] = False
    error, slope = (found - truth)[known], slope[known]
    lag = -float((error * slope).sum() / (slope**2).sum())
    return Score(float(np.sqrt((error**2).mean())), lag)


def as_dict(scores: Sequence[FilterScore]) -> list[Mapping[str, float | str]]:
    """Return all figures for a machine."""
    return [score.as_dict() for score in scores]
