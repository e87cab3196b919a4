# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Residuals of a sensor that are no noise, on generated residuals.

Not covered: residuals of a robot (test_sensor_residuals.py).
"""

import numpy as np
import pytest

from inertial_estimation.estimation.sensor_residuals import judge_residual

NOISE = 0.1
"""Root mean square of the length of the noise [m/s^2]."""
GRAVITY, N = np.array([0.0, 0.0, 9.81]), 100


def noise(rng):
    return NOISE / np.sqrt(3.0) * rng.normal(size=(N, 3))


def swing(size):
    """Return a motion of zero mean with a root mean square."""
    phase = 2.0 * np.pi * np.arange(N) / N
    return size * np.sqrt(2.0) * np.sin(phase)[:, None] * [1.0, 0.0, 0.0]


def test_noise_is_not_doubtful(rng):
    for reading in (GRAVITY + noise(rng), GRAVITY + swing(5.0)):
        found = judge_residual(noise(rng), reading, NOISE)
        assert not found.doubtful
        assert found.rms == pytest.approx(NOISE, rel=0.2)


@pytest.mark.parametrize('moves', [0.0, 20.0])
def test_a_bias_is_doubtful_at_rest_and_in_motion(rng, moves):
    residuals = noise(rng) + np.array([0.0, 0.0, 0.5])
    found = judge_residual(residuals, GRAVITY + swing(moves), NOISE)
    assert found.is_constant and found.doubtful
    assert found.constant == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(('share', 'doubtful'), [(0.125, False), (0.5, True)])
def test_residuals_in_motion_are_compared_with_its_change(rng, share, doubtful):
    """Filters that lag leave an eighth of it; a wrong sign or scale leaves more."""
    found = judge_residual(noise(rng) + swing(8.0 * share), GRAVITY + swing(8.0), NOISE)
    assert found.change == pytest.approx(8.0)
    assert not found.is_constant
    assert found.doubtful == doubtful
    # A still sensor beside moving ones has their change.
    still = noise(rng)
    assert judge_residual(noise(rng) + swing(0.5), still, NOISE).doubtful
    assert not judge_residual(noise(rng) + swing(0.5), still, NOISE, change=8.0).doubtful
