# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sensor noise has the deviation it is said to have, kind by kind, and is the same for a seed.

Not covered: noise that is not white; the estimator's answer to noise.
"""

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError
from inertial_estimation.simulation.noise import NoiseLevels, SensorNoise
from inertial_estimation.simulation.truth import Snapshot

DRAWS = 2000
SIGMAS = 5.0
"""Deviations of a mean, or of a deviation, that chance reaches once in a million."""
LEVELS = {
    'force': 0.15,
    'torque': 0.005,
    'encoder': 1e-4,
    'gyroscope': 3e-3,
    'accelerometer': 0.03,
}


@pytest.fixture
def snapshot() -> Snapshot:
    """Return a snapshot of three joints, two IMUs, two FT sensors and one contact."""
    rng = np.random.default_rng(7)
    shapes = [(3,)] * 4 + [(2, 3)] * 3 + [(2, 6), (1, 6)]
    return Snapshot(8_000_000, *(rng.standard_normal(shape) for shape in shapes), np.eye(4))


def errors(sample, snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Return reading minus truth of each kind of sensor."""
    wrenches = sample.ft_readings - snapshot.ft_wrenches
    return {
        'force': wrenches[:, :3],
        'torque': wrenches[:, 3:],
        'encoder': sample.positions - snapshot.positions,
        'gyroscope': sample.angular_velocities - snapshot.angular_velocities,
        'accelerometer': sample.proper_accelerations - snapshot.proper_accelerations,
    }


@pytest.mark.parametrize('kind', list(LEVELS))
def test_noise_is_white_and_as_strong_as_stated(kind: str, snapshot: Snapshot) -> None:
    noise = SensorNoise(seed=1)
    drawn = np.array([errors(noise.apply(snapshot), snapshot)[kind] for _ in range(DRAWS)])
    level, n = LEVELS[kind], drawn.size
    np.testing.assert_allclose(drawn.mean(), 0.0, atol=SIGMAS * level / np.sqrt(n))
    np.testing.assert_allclose(drawn.std(), level, rtol=SIGMAS / np.sqrt(2.0 * n))
    flat = drawn.reshape(DRAWS, -1) / level
    across = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    along = np.mean(flat[1:] * flat[:-1], axis=0)
    assert max(np.abs(across).max(), np.abs(along).max()) < SIGMAS / np.sqrt(DRAWS)


@pytest.mark.parametrize('kind', list(LEVELS))
def test_a_kind_switched_off_is_exact_and_leaves_the_others_alone(kind, snapshot) -> None:
    without = SensorNoise(NoiseLevels(**{kind: 0.0}), seed=3)
    usual = SensorNoise(seed=3)
    for _ in range(3):
        quiet, noisy = (errors(noise.apply(snapshot), snapshot) for noise in (without, usual))
        assert not quiet.pop(kind).any()
        assert noisy.pop(kind).all()
        for other, error in quiet.items():
            np.testing.assert_array_equal(error, noisy[other])


def test_a_seed_fixes_the_noise(snapshot: Snapshot) -> None:
    one, same, other = (SensorNoise(seed=seed).apply(snapshot) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.ft_readings, same.ft_readings)
    assert (one.ft_readings != other.ft_readings).all()


def test_what_no_sensor_measures_is_absent(snapshot: Snapshot) -> None:
    sample = SensorNoise().apply(snapshot)
    assert sample.stamp_ns == snapshot.time_ns
    for absent in (sample.velocities, sample.accelerations, sample.angular_accelerations):
        assert np.isnan(absent).all()
    assert sample.efforts is None


def test_the_truth_as_a_sample_is_complete(snapshot: Snapshot) -> None:
    sample = snapshot.sample()
    assert sample.stamp_ns == snapshot.time_ns
    for mine, theirs in (
        (sample.positions, snapshot.positions),
        (sample.velocities, snapshot.velocities),
        (sample.accelerations, snapshot.accelerations),
        (sample.angular_velocities, snapshot.angular_velocities),
        (sample.proper_accelerations, snapshot.proper_accelerations),
        (sample.angular_accelerations, snapshot.angular_accelerations),
        (sample.ft_readings, snapshot.ft_wrenches),
        (sample.efforts, snapshot.torques),
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize('value', [-0.1, np.nan, np.inf])
def test_an_impossible_level_is_refused(value: float) -> None:
    with pytest.raises(ConfigError):
        NoiseLevels(force=value)
