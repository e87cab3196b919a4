# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
When the residual of a sensor casts doubt, on made-up residuals.

Not covered: residuals of a robot, and what noise leaves of them (test_replay_checks.py).
"""

import numpy as np
import pytest

from inertial_estimation.estimation.sensor_residuals import judge_residual

NOISE = 0.1
"""Root mean square of the length of the noise, [m/s^2]."""
GRAVITY = np.array([0.0, 0.0, 9.81])
N = 100


def noise(rng, n=N):
    return NOISE / np.sqrt(3.0) * rng.normal(size=(n, 3))


def swing(size, n=N):
    """Return a motion whose mean is zero, of a root mean square."""
    phase = 2.0 * np.pi * np.arange(n) / n
    return size * np.sqrt(2.0) * np.sin(phase)[:, None] * [1.0, 0.0, 0.0]


def test_noise_alone_is_no_doubt_at_rest_or_in_motion(rng):
    for reading in (GRAVITY + noise(rng), GRAVITY + swing(5.0)):
        found = judge_residual(noise(rng), reading, NOISE)
        assert not found.doubtful
        assert found.rms == pytest.approx(NOISE, rel=0.2)


@pytest.mark.parametrize('moves', [0.0, 20.0])
def test_a_bias_is_a_doubt_whatever_gravity_and_motion_are(rng, moves):
    """Half a m/s^2 is a twentieth of gravity, and a fortieth of the change."""
    residuals = noise(rng) + np.array([0.0, 0.0, 0.5])
    found = judge_residual(residuals, GRAVITY + swing(moves), NOISE)
    assert found.is_constant and found.doubtful
    assert found.constant == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(('share', 'doubtful'), [(0.125, False), (0.5, True)])
def test_what_follows_the_motion_is_measured_by_its_change(rng, share, doubtful):
    """Filters that lag leave an eighth of it; a wrong sign or scale leaves more."""
    found = judge_residual(noise(rng) + swing(8.0 * share), GRAVITY + swing(8.0), NOISE)
    assert found.change == pytest.approx(8.0)
    assert not found.is_constant
    assert found.doubtful == doubtful


def test_the_change_of_what_a_still_sensor_is_predicted_from_counts(rng):
    still = noise(rng)
    residuals = noise(rng) + swing(0.5)
    assert judge_residual(residuals, still, NOISE).doubtful
    assert not judge_residual(residuals, still, NOISE, change=8.0).doubtful
    biased = residuals + np.array([0.0, 0.0, 1.0])
    assert judge_residual(biased, still, NOISE, change=np.inf).doubtful
