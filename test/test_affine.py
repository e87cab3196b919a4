# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Matrix and offset of one sensor from predicted wrenches: synthetic sensors of known truth.

Not covered: where predictions come from, and a real log, which are in test_calibrate_affine.py.
"""

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation.calibration.affine import (
    AffineSettings,
    fit_affine,
    undisturbed_samples,
)
from inertial_estimation.errors import LogError, ModelError, ShapeError

# Round-off of wrenches of 100 N through a matrix of condition 100.
EXACT = 1e-9
UNITS = np.repeat([1.0, 0.1], 3)
OFFSET = np.array([30.0, -80.0, 12.0, 1.5, -0.7, 0.3])
NOISE = np.repeat([0.15, 0.007], 3)
"""Of the reading, as real FTs have it [N, Nm]."""


def loads(rng, n=2000, sizes=(20.0, 15.0, 30.0, 2.0, 1.5, 0.8)):
    """Return smooth wrenches over time that move all six components."""
    times = np.arange(n) / 100.0
    waves = np.zeros((n, 6))
    for axis in range(6):
        for rate, phase in zip(rng.uniform(0.05, 0.6, 4), rng.uniform(0.0, 6.3, 4), strict=True):
            waves[:, axis] += np.sin(6.283 * rate * times + phase)
    return times, waves / 2.0 * np.array(sizes)


def off_by(rng, size=0.1):
    """Return what the workshop matrix is off by, moments over a lever of 0.1 m."""
    return np.eye(6) + size * rng.normal(size=(6, 6)) * np.outer(UNITS, 1.0 / UNITS)


def readings(wrenches, matrix, offset=OFFSET):
    """Return raw readings of which matrix raw - offset are the wrenches."""
    return (wrenches + offset) @ np.linalg.inv(matrix).T


def workshop(k):
    """Return a real workshop matrix, counts to wrenches."""
    path = SHARED / 'data' / 'iit_ftsens_matrices' / 'matrices.npz'
    if not path.exists():
        pytest.skip(f'no real matrices: {path} is not there')
    return np.load(path)['C'][k]


def test_without_noise_matrix_and_offset_are_exact(rng):
    times, wrenches = loads(rng)
    matrix = off_by(rng, 0.2)
    fit = fit_affine(readings(wrenches, matrix), wrenches, times)
    np.testing.assert_allclose(fit.matrix, matrix, atol=EXACT)
    np.testing.assert_allclose(fit.offset, OFFSET, atol=100.0 * EXACT)
    assert fit.weight < 1e-9
    assert fit.n_disturbed == 0 and fit.used.all()
    np.testing.assert_allclose(fit.shares, 1.0, atol=EXACT)
    np.testing.assert_allclose(fit.rms, 0.0, atol=100.0 * EXACT)


@pytest.mark.parametrize('k', range(0, 32, 5))
def test_raw_counts_with_the_workshop_matrix(rng, k):
    prior = workshop(k)
    times, wrenches = loads(rng)
    matrix = off_by(rng) @ prior
    raw = readings(wrenches, matrix)
    fit = fit_affine(raw, wrenches, times, prior=prior)
    np.testing.assert_allclose(fit.correction, matrix @ np.linalg.inv(prior), atol=1e-7)
    np.testing.assert_allclose(raw @ fit.matrix.T - fit.offset, wrenches, atol=1e-6)


def test_deviations_are_as_large_as_errors(rng):
    """The truth is within a few deviations, and a deviation no larger than the errors' size."""
    errors, offsets = [], []
    for _ in range(30):
        times, wrenches = loads(rng)
        matrix = off_by(rng)
        # Noise that lasts for half a second, as what a model misses.
        slow = np.repeat(rng.normal(size=(40, 6)), 50, axis=0) * 5.0 * NOISE
        raw = readings(wrenches + slow, matrix)
        fit = fit_affine(raw, wrenches, times, settings=AffineSettings(weight=0.01))
        errors.append((fit.matrix - matrix) / fit.matrix_deviations)
        offsets.append((fit.offset - OFFSET) / fit.offset_deviations)
    # Ten blocks tell a deviation to a quarter; 30 x 36 ratios their size to a few percent.
    assert 0.8 < np.sqrt(np.mean(np.square(errors))) < 1.5
    assert 0.7 < np.sqrt(np.mean(np.square(offsets))) < 1.6


def test_what_the_log_does_not_move_stays_as_the_workshop_says(rng):
    times, wrenches = loads(rng)
    wrenches[:, 2] = 40.0
    wrenches[:, 5] = 0.1
    matrix = np.diag([1.1, 0.9, 1.3, 1.2, 0.8, 1.4])
    raw = readings(wrenches, matrix) + NOISE * rng.normal(size=wrenches.shape)
    fit = fit_affine(raw, wrenches, times)
    # Noise alone moves these readings: 0.15 N and 0.007 Nm.
    still = fit.spreads < 1.0
    assert still.sum() == 2
    assert (fit.shares[still] < 0.5).all() and (fit.shares[~still] > 0.9).all()
    named = np.abs(fit.directions[still] / UNITS)
    assert set(named.argmax(axis=1)) == {2, 5}
    # Half of what the prior is off by is left at most, and told.
    for k in (2, 5):
        assert abs(fit.matrix[k, k] - 1.0) < 0.5 * abs(matrix[k, k] - 1.0)
        assert fit.matrix_deviations[k, k] > 0.05
    moved = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])
    np.testing.assert_allclose(
        (fit.matrix - matrix)[moved] / fit.matrix_deviations[moved], 0.0, atol=6.0
    )


def test_an_infinite_weight_leaves_the_matrix_and_takes_the_mean(rng):
    times, wrenches = loads(rng)
    raw = readings(wrenches, off_by(rng))
    fit = fit_affine(raw, wrenches, times, settings=AffineSettings(weight=np.inf))
    np.testing.assert_array_equal(fit.matrix, np.eye(6))
    np.testing.assert_allclose(fit.offset, (raw - wrenches).mean(axis=0), atol=EXACT)
    np.testing.assert_allclose(fit.rms, fit.rms_offset_only, atol=EXACT)
    assert fit.validation is None
    assert (fit.matrix_deviations >= 0.1 * 0.99 * np.eye(6)).all()


def test_a_matrix_that_is_right_is_left_alone(rng):
    """What is held out is predicted no worse than by the right matrix, but for noise."""
    times, wrenches = loads(rng)
    raw = readings(wrenches, np.eye(6)) + NOISE * rng.normal(size=wrenches.shape)
    fit = fit_affine(raw, wrenches, times)
    np.testing.assert_allclose(fit.matrix * np.outer(1.0 / UNITS, UNITS), np.eye(6), atol=0.02)
    assert (fit.rms_held_out < 1.05 * NOISE).all()


def test_touches_are_left_out_and_counted(rng):
    times, wrenches = loads(rng)
    matrix = off_by(rng)
    felt = np.zeros_like(wrenches)
    felt[700:760, 0] = 40.0
    felt[1500:1530, 4] = 6.0
    noise = NOISE * rng.normal(size=wrenches.shape)
    touched = fit_affine(readings(wrenches + felt, matrix) + noise, wrenches, times)
    alone = fit_affine(readings(wrenches, matrix) + noise, wrenches, times)
    bad = felt.any(axis=1)
    assert not touched.used[bad].any()
    # A tenth of a second before and after each of the two.
    assert 90 <= touched.n_disturbed <= 90 + 44
    np.testing.assert_allclose(
        touched.matrix, alone.matrix, atol=6.0 * alone.matrix_deviations.max()
    )
    asked = undisturbed_samples(readings(wrenches + felt, matrix) + noise, wrenches, times)
    np.testing.assert_array_equal(asked, touched.used)


def test_no_matrix_is_blind(rng):
    """Loads of 0.2 N beside readings that sway by 4 N are best predicted by none at all."""
    times, wrenches = loads(rng, sizes=(0.2, 0.2, 0.2, 0.02, 0.02, 0.02))
    _, sway = loads(rng, sizes=(4.0, 4.0, 4.0, 0.4, 0.4, 0.4))
    fit = fit_affine(readings(wrenches, np.eye(6)) + sway, wrenches, times)
    assert fit.gains[-1] >= 0.1
    blind = AffineSettings(weight=0.0)
    with pytest.raises(LogError):
        fit_affine(
            readings(wrenches, np.eye(6)) + sway, wrenches, times, settings=blind, name='leg'
        )


def test_logs_that_tell_nothing_are_refused(rng):
    times, wrenches = loads(rng)
    raw = readings(wrenches, np.eye(6)) + NOISE * rng.normal(size=wrenches.shape)
    with pytest.raises(LogError):
        fit_affine(raw, np.tile(wrenches[:1], (len(raw), 1)), times, name='wrist')
    with pytest.raises(LogError):
        fit_affine(raw[:30], wrenches[:30], times[:30])
    with pytest.raises(LogError):
        fit_affine(np.full_like(raw, np.nan), wrenches, times, name='wrist')
    usable = np.arange(len(raw)) % 3 == 0
    with pytest.raises(LogError):
        fit_affine(raw, wrenches, times, usable=usable)
    with pytest.raises(ModelError):
        fit_affine(raw, wrenches, times, prior=np.zeros((6, 6)), name='wrist')
    with pytest.raises(ShapeError):
        fit_affine(raw, wrenches[:-1], times)
    with pytest.raises(ModelError):
        fit_affine(raw, wrenches, times[::-1])


@pytest.mark.parametrize(
    ('wrong', 'told'),
    [
        ({'weight': -1.0}, "'weight' is -1.0"),
        ({'length_scale': 0.0}, "'length_scale' is 0.0"),
        ({'prior_deviation': np.inf}, "'prior_deviation' is inf"),
        ({'gap': -0.1}, "'gap' is -0.1"),
        ({'min_gain': 1.0}, "'min_gain' is 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, told):
    with pytest.raises(ModelError):
        AffineSettings(**wrong)
