# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The benchmark of derivative filters measures what it says.

Not covered: the durations; they say something about a machine, not about the code.
"""

import json

import numpy as np
import pytest

from inertial_estimation.benchmark import derivatives
from inertial_estimation.benchmark.derivatives import (
    CHOICES,
    COLUMNS,
    Score,
    Signals,
    compare,
    name_of,
)
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.simulation.noise import NoiseLevels

# rad/s and rad/s^2: what central differences of 1 ms leave of motion at some Hz.
DIFFERENCES = 1e-3


def test_the_truth_is_the_derivative_of_the_motion():
    signals = Signals.make(1000)
    velocity, acceleration, jerk = signals.truth
    for values, slope in ((velocity, acceleration), (acceleration, jerk)):
        found = np.gradient(values, 1e-3, axis=0)[1:-1]
        np.testing.assert_allclose(found, slope[1:-1], atol=DIFFERENCES)
    steps = np.diff(signals.positions, axis=0) - 1e-3 * 0.5 * (velocity[1:] + velocity[:-1])
    assert steps.std() == pytest.approx(np.sqrt(2.0) * NoiseLevels().encoder, rel=0.01)
    noise = signals.rates - velocity[:, : signals.rates.shape[1]]
    assert noise.std() == pytest.approx(NoiseLevels().gyroscope, rel=0.02)


def test_a_shifted_truth_has_the_lag_of_its_shift():
    times = np.arange(4000) / 1000.0
    angle = 6.0 * times[:, None]
    late = np.sin(angle - 6.0 * 0.01)
    score = derivatives._compared(late, np.sin(angle), 6.0 * np.cos(angle), 1000)
    assert score.lag == pytest.approx(0.01, rel=1e-2)
    assert isinstance(score, Score)
    assert score.rms == pytest.approx(0.06 / np.sqrt(2.0), rel=1e-2)


def test_a_short_run_fills_every_row():
    shares = []
    choices = [
        EstimatorSettings(),
        EstimatorSettings(filter_delay=0.05),
        EstimatorSettings(derivative_filter='kalman'),
        EstimatorSettings(derivative_filter='adaptive_window'),
    ]
    scores = compare((250,), choices, rounds=1, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert all(len(score.row) == len(COLUMNS) for score in scores)
    for score in scores:
        for part in (score.velocity, score.acceleration, score.angular_acceleration):
            assert 0.0 < part.rms < np.inf
            assert np.isfinite(part.lag)
    usual, delayed = scores[:2]
    assert usual.ratio == 1.0
    # The middle of a window knows far better than its end.
    assert delayed.acceleration.rms < 0.5 * usual.acceleration.rms
    json.dumps(derivatives.as_dict(scores), allow_nan=False)


def test_choices_are_told_apart():
    names = [(name_of(choice), choice.filter_delay) for choice in CHOICES]
    assert len(set(names)) == len(names)
