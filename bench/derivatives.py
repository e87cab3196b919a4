# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Compare derivative filters on the demo's motion and noise: error, lag and time.

The lag is how far the truth must be shifted to come nearest to the result, beyond the delay.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from bench.report import Array, Table, Timed, interleave, ratio
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.derivatives import joint_differentiator
from inertial_estimation.simulation.motion import START, Motion
from inertial_estimation.simulation.noise import NoiseLevels
from inertial_estimation.simulation.scenario import ACCELERATION

RATES, DURATION, SETTLED, JOINTS, SEEDS = (250, 1000), 3.0, 0.5, 32, 5
SETTINGS = (
    *(
        {'filter.window': window, 'filter.delay': delay}
        for window, delay in ((0.12, 0.0), (0.06, 0.0), (0.2, 0.0), (0.12, 0.02), (0.12, 0.06))
    ),
    {'filter.kind': 'quintic', 'filter.window': 0.24, 'filter.delay': 0.12},
    *(
        {'filter.kind': 'kalman', 'filter.joint_jerk': jerk, 'filter.delay': delay}
        for jerk, delay in ((1.0, 0.0), (3.0, 0.0), (10.0, 0.0), (3.0, 0.02), (3.0, 0.06))
    ),
)
COLUMNS = (
    'filter', 'rate [Hz]', 'velocity [rad/s]', 'lag [ms]', 'acceleration [rad/s^2]', 'lag [ms]',
    'update [us]', '/ first',
)  # fmt: skip


def measure(rounds: int = 20) -> tuple[list[Table], list]:
    """Compare filters at all rates."""
    rows = []
    for rate in RATES:
        logs = [_signals(rate, seed) for seed in range(SEEDS)]
        choices = [EstimatorSettings.from_dict(one) for one in SETTINGS]
        calls = {str(k): Timed(_updates(*logs[0][:2], one), 20) for k, one in enumerate(choices)}
        times = interleave(calls, rounds)
        for k, (given, settings) in enumerate(zip(SETTINGS, choices, strict=True)):
            scores = []
            for stamps, positions, curves in logs:
                found = _derivatives(stamps, positions, settings)
                both = zip(found, curves[1:], curves[2:])
                scores.append([x for one in both for x in _score(*one, rate)])
            scores = np.sort(scores, axis=0).T
            spread = (f'{np.median(x):.2g} [{x[0]:.2g}, {x[-1]:.2g}]' for x in scores)
            name = ' '.join(str(value) for value in given.values())
            median = float(np.median(times[str(k)]))
            rows.append((name, rate, *spread, median, ratio(times[str(k)], times['0'])))
    title = f'Window or kind, parameters, delay; median and range of {SEEDS} seeds'
    return [Table(title, COLUMNS, rows)], []


def _signals(rate: int, seed: int) -> tuple[Array, Array, Array]:
    """Return stamps, noisy positions, and the true positions and three derivatives."""
    rng = np.random.default_rng(seed)
    motion = Motion.random(np.zeros(JOINTS), np.full(JOINTS, ACCELERATION), rng)
    times = START + np.arange(round(DURATION * rate)) / rate
    angles = motion.frequencies * times[:, None, None] + motion.phases
    curves = [
        (motion.amplitudes * motion.frequencies**k * np.sin(angles + 0.5 * np.pi * k)).sum(-1)
        for k in range(4)
    ]
    noise = NoiseLevels().encoder * rng.standard_normal(curves[0].shape)
    return np.round(1e9 * times).astype(np.int64), curves[0] + noise, np.array(curves)


def _derivatives(stamps: Array, positions: Array, settings: EstimatorSettings) -> Array:
    """Return first and second derivatives at the stamps, NaN where there are none."""
    filter_, delay_ns = joint_differentiator(settings, JOINTS), round(1e9 * settings.filter.delay)
    found, asked = np.full((2, *positions.shape), np.nan), 0
    for stamp, row in zip(stamps.tolist(), positions):
        filter_.append(stamp, row)
        while asked < len(stamps) and stamps[asked] <= stamp - delay_ns:
            found[:, asked] = filter_.evaluate_at(int(stamps[asked]))[1:]
            asked += 1
    return found


def _updates(stamps: Array, positions: Array, settings: EstimatorSettings):
    """Return a call that goes through the positions again and again."""
    filter_, numbers = joint_differentiator(settings, JOINTS), count(1)
    period_ns, delay_ns = int(stamps[1] - stamps[0]), round(1e9 * settings.filter.delay)

    def update() -> object:
        k = next(numbers)
        filter_.append(k * period_ns, positions[k % len(positions)])
        return filter_.evaluate_at(k * period_ns - delay_ns)

    for _ in range(2 * len(positions) // 5):
        update()
    return update


def _score(found: Array, truth: Array, slope: Array, rate: int) -> tuple[float, float]:
    """Return rms error and lag [ms]; a lag is an error in proportion to the slope of the truth."""
    known = np.isfinite(found).all(axis=1)
    known[: round(SETTLED * rate)] = False
    error, slope = (found - truth)[known], slope[known]
    lag = -float((error * slope).sum() / (slope**2).sum())
    return float(np.sqrt((error**2).mean())), 1e3 * lag
