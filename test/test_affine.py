# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Matrix, offset and temperature coefficients from predicted wrenches: sensors of known truth.

Not covered: where predictions come from, and real logs, in `test_calibrate`.
"""

import numpy as np
import pytest
from hanging_body import NOISE
from shared_data import SHARED

from inertial_estimation.calibration.affine import fit_affine
from inertial_estimation.calibration.temperature import fit_temperature
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Level

EXACT = 1e-9
UNITS = np.repeat([1.0, 0.1], 3)
OFFSET = np.array([30.0, -80.0, 12.0, 1.5, -0.7, 0.3])


def loads(rng, sizes=(20.0, 15.0, 30.0, 2.0, 1.5, 0.8)):
    """Return times and smooth wrenches that move all six components."""
    times = np.arange(2000) / 100.0
    rates, phases = rng.uniform(0.05, 0.6, (4, 6)), rng.uniform(0.0, 6.3, (4, 6))
    waves = np.sin(6.283 * rates * times[:, None, None] + phases).sum(axis=1)
    return times, waves / 2.0 * np.array(sizes)


def off_by(rng, size=0.1):
    """Return an error of a workshop matrix, moments over a lever of 0.1 m."""
    return np.eye(6) + size * rng.normal(size=(6, 6)) * np.outer(UNITS, 1.0 / UNITS)


def readings(wrenches, matrix):
    """Return raw readings with matrix raw - offset = wrenches."""
    return (wrenches + OFFSET) @ np.linalg.inv(matrix).T


def test_without_noise_matrix_and_offset_are_exact(rng):
    path = SHARED / 'data' / 'iit_ftsens_matrices' / 'matrices.npz'
    counts = np.load(path)['C'][::10] if path.exists() else []
    for prior in (np.eye(6), *counts):
        times, wrenches = loads(rng)
        matrix = off_by(rng, 0.2) @ prior
        fit = fit_affine(readings(wrenches, matrix), wrenches, times, prior=prior, noise=0.0)
        np.testing.assert_allclose(fit.correction, matrix @ np.linalg.inv(prior), atol=1e-7)
        np.testing.assert_allclose(fit.offset, OFFSET, atol=1e-6)
        assert fit.used.all() and not fit.n_disturbed and fit.weight < 1e-9
        np.testing.assert_allclose(fit.shares, 1.0, atol=EXACT)


def test_deviations_are_as_large_as_errors(rng):
    errors, offsets = [], []
    for _ in range(30):
        times, wrenches = loads(rng)
        matrix = off_by(rng)
        # Noise that lasts for half a second, as errors of a model.
        slow = np.repeat(rng.normal(size=(40, 6)), 50, axis=0) * 5.0 * NOISE
        raw = readings(wrenches + slow, matrix)
        fit = fit_affine(raw, wrenches, times, noise=0.0)
        errors.append((fit.matrix - matrix) / fit.matrix_deviations)
        offsets.append((fit.offset - OFFSET) / fit.offset_deviations)
    # Ten blocks determine a deviation to a quarter; 30 x 36 ratios their size to a few percent.
    assert 0.8 < np.sqrt(np.mean(np.square(errors))) < 1.5
    assert 0.7 < np.sqrt(np.mean(np.square(offsets))) < 1.6


def test_prior_stays_along_constant_loads(rng):
    times, wrenches = loads(rng)
    wrenches[:, 2], wrenches[:, 5] = 40.0, 0.1
    matrix = np.diag([1.1, 0.9, 1.3, 1.2, 0.8, 1.4])
    raw = readings(wrenches, matrix) + NOISE * rng.normal(size=wrenches.shape)
    fit = fit_affine(raw, wrenches, times, noise=0.12)
    still = fit.spreads < 1.0
    assert still.sum() == 2
    assert (fit.shares[still] < 0.5).all() and (fit.shares[~still] > 0.9).all()
    assert set(np.abs(fit.directions[still] / UNITS).argmax(axis=1)) == {2, 5}
    for k in (2, 5):
        assert abs(fit.matrix[k, k] - 1.0) < 0.5 * abs(matrix[k, k] - 1.0)
        assert fit.matrix_deviations[k, k] > 0.05
    moved = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])
    ratios = (fit.matrix - matrix)[moved] / fit.matrix_deviations[moved]
    np.testing.assert_allclose(ratios, 0.0, atol=6.0)


def test_touches_are_left_out_and_counted(rng):
    times, wrenches = loads(rng)
    matrix, felt = off_by(rng), np.zeros_like(wrenches)
    felt[700:760, 0], felt[1500:1530, 4] = 40.0, 6.0
    noise = NOISE * rng.normal(size=wrenches.shape)
    raw = readings(wrenches + felt, matrix) + noise
    touched = fit_affine(raw, wrenches, times, noise=0.0)
    alone = fit_affine(readings(wrenches, matrix) + noise, wrenches, times, noise=0.0)
    assert not touched.used[felt.any(axis=1)].any()
    # A tenth of a second before and after each of the two.
    assert 90 <= touched.n_disturbed <= 90 + 44
    limit = 6.0 * alone.matrix_deviations.max()
    np.testing.assert_allclose(touched.matrix, alone.matrix, atol=limit)


def test_no_direction_is_lost(rng):
    """Loads of 0.2 N beside readings that sway by 4 N are best predicted by a zero matrix."""
    times, wrenches = loads(rng, sizes=(0.2, 0.2, 0.2, 0.02, 0.02, 0.02))
    _, sway = loads(rng, sizes=(4.0, 4.0, 4.0, 0.4, 0.4, 0.4))
    raw = readings(wrenches, np.eye(6)) + sway
    fit = fit_affine(raw, wrenches, times, noise=0.0)
    assert np.linalg.svd(fit.correction / np.outer(UNITS, 1.0 / UNITS))[1][-1] >= 0.1


@pytest.mark.parametrize(('unit', 'code'), [(1000.0, 'residual'), (1.0 / 9.81, 'matrix_change')])
def test_readings_in_another_unit_are_errors(rng, unit, code):
    times, wrenches = loads(rng)
    raw = unit * (readings(wrenches, off_by(rng)) + NOISE * rng.normal(size=wrenches.shape))
    fit = fit_affine(raw, wrenches, times, noise=0.0)
    found = {one.code: one for one in fit.findings('sensor', wrenches[fit.used])}
    assert found[code].level == Level.ERROR
    assert found['scale'].values['factor'] == pytest.approx(unit, rel=0.2)


def test_constant_loads_are_refused(rng):
    times, wrenches = loads(rng)
    raw = readings(wrenches, np.eye(6)) + NOISE * rng.normal(size=wrenches.shape)
    with pytest.raises(LogError):
        fit_affine(raw, np.tile(wrenches[:1], (len(raw), 1)), times, noise=0.0)


# ---- Temperature coefficients ------------------------------------------------------------------

# Round-off of 100 N over a few kelvins.
EXACT_FIT = 1e-10
K = np.array([0.5, -0.2, 1.0, 0.01, 0.02, -0.03])


def warming(rng, settles=120.0):
    """Return times, temperatures, loads and readings of a sensor that is switched on."""
    times = np.arange(3000) * 0.2
    temperatures = 25.0 + 8.0 * (1.0 - np.exp(-times / settles))
    rates = rng.uniform(0.02, 0.2, 6)
    predicted = np.sin(6.283 * rates * times[:, None]) * np.repeat([20.0, 2.0], 3)
    wrenches = predicted + OFFSET - K * (temperatures[:, None] - 25.0)
    return times, temperatures, predicted, wrenches


def test_without_noise_coefficients_and_offset_are_exact(rng):
    times, temperatures, predicted, wrenches = warming(rng)
    for load in (predicted, 0.0 * predicted):
        fit = fit_temperature(wrenches - predicted + load, load, temperatures, times)
        np.testing.assert_allclose(fit.coefficients, K, atol=EXACT_FIT)
        true = OFFSET - K * (fit.reference - 25.0)
        np.testing.assert_allclose(fit.offset, true, atol=100.0 * EXACT_FIT)
        assert fit.used.all()


@pytest.mark.parametrize(('settles', 'lasting'), [(40.0, 1), (120.0, 50)])
def test_deviations_of_coefficients_are_as_large_as_errors(rng, settles, lasting):
    """Also where the sensor warms up within the first of ten blocks."""
    ratios, offsets = [], []
    for _ in range(40):
        times, temperatures, predicted, wrenches = warming(rng, settles)
        slow = np.repeat(rng.normal(size=(3000 // lasting, 6)), lasting, axis=0) * NOISE
        fit = fit_temperature(wrenches + slow, predicted, temperatures, times)
        ratios.append((fit.coefficients - K) / fit.deviations)
        true = OFFSET - K * (fit.reference - 25.0)
        offsets.append((fit.offset - true) / fit.offset_deviations)
    # 240 ratios; deviations of which some blocks hold most vary by a third.
    for found in (ratios, offsets):
        assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.6


def test_temperatures_that_determine_nothing_are_refused(rng):
    times, temperatures, predicted, wrenches = warming(rng)
    for given in (
        25.0 + 0.1 * (temperatures - 25.0), 25.0 + 0.2 * predicted[:, 2], 273.15 + temperatures,
    ):  # fmt: skip
        with pytest.raises(LogError):
            fit_temperature(wrenches, predicted, given, times)
