# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Temperature coefficients of a synthetic sensor that warms up; no real log has temperatures."""

import numpy as np
import pytest

from inertial_estimation.calibration.temperature import fit_temperature
from inertial_estimation.errors import LogError, ShapeError

# Round-off of 100 N over a few kelvins.
EXACT = 1e-10
K = np.array([0.5, -0.2, 1.0, 0.01, 0.02, -0.03])
OFFSET = np.array([30.0, -80.0, 12.0, 1.5, -0.7, 0.3])
NOISE = np.repeat([0.15, 0.007], 3)


def warming(n=3000, warmer=8.0, settles=120.0):
    """Return times and temperatures of a sensor that is switched on and settles."""
    times = np.arange(n) * 0.2
    return times, 25.0 + warmer * (1.0 - np.exp(-times / settles))


def loads(rng, times):
    rates = rng.uniform(0.02, 0.2, 6)
    return np.sin(6.283 * rates * times[:, None]) * np.repeat([20.0, 2.0], 3)


def off(temperatures, reference=25.0):
    """Return what matrix raw is apart from the wrench."""
    return OFFSET - K * (temperatures[:, None] - reference)


def test_without_noise_coefficients_and_offset_are_exact(rng):
    times, temperatures = warming()
    predicted = loads(rng, times)
    wrenches = predicted + off(temperatures)
    fit = fit_temperature(wrenches, predicted, temperatures, times, reference=25.0)
    np.testing.assert_allclose(fit.coefficients, K, atol=EXACT)
    np.testing.assert_allclose(fit.offset, OFFSET, atol=100.0 * EXACT)
    np.testing.assert_allclose(fit.rms, 0.0, atol=100.0 * EXACT)
    assert fit.used.all() and fit.reference == 25.0


@pytest.mark.parametrize('lasting', [1, 50])
@pytest.mark.parametrize('settles', [40.0, 120.0])
def test_deviations_are_as_large_as_errors(rng, settles, lasting):
    """Also where the sensor warms up within the first of ten blocks."""
    ratios, offsets = [], []
    for _ in range(40):
        times, temperatures = warming(settles=settles)
        predicted = loads(rng, times)
        slow = np.repeat(rng.normal(size=(3000 // lasting, 6)), lasting, axis=0) * NOISE
        wrenches = predicted + off(temperatures) + slow
        fit = fit_temperature(wrenches, predicted, temperatures, times, reference=25.0)
        ratios.append((fit.coefficients - K) / fit.deviations)
        offsets.append((fit.offset - OFFSET) / fit.offset_deviations)
    # 240 ratios; ten blocks of which some tell most make deviations vary by a third.
    for found in (ratios, offsets):
        assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.6


def test_touches_are_left_out_and_counted(rng):
    times, temperatures = warming()
    predicted = loads(rng, times)
    noise = NOISE * rng.normal(size=predicted.shape)
    felt = np.zeros_like(predicted)
    felt[400:500, 1] = 30.0
    wrenches = predicted + off(temperatures) + noise
    touched = fit_temperature(wrenches + felt, predicted, temperatures, times)
    assert touched.n_disturbed == 100 and not touched.used[400:500].any()
    np.testing.assert_allclose(touched.coefficients, K, atol=6.0 * touched.deviations.max())


def test_temperatures_that_tell_nothing_are_refused(rng):
    times, temperatures = warming()
    predicted = loads(rng, times)
    wrenches = predicted + off(temperatures)

    def fit(warmth, loaded=predicted):
        return fit_temperature(wrenches, loaded, warmth, times, name='leg')

    with pytest.raises(LogError):
        fit(25.0 + 0.1 * (temperatures - 25.0))
    with pytest.raises(LogError):
        fit(25.0 + 0.02 * times + 0.01 * np.sin(times))
    with pytest.raises(LogError):
        fit(25.0 + 0.2 * predicted[:, 2])
    with pytest.raises(LogError):
        fit(np.full_like(times, np.nan))
    with pytest.raises(ShapeError):
        fit(temperatures[:-1])


def test_a_load_that_stays_tells_coefficients_too():
    times, temperatures = warming()
    wrenches = off(temperatures)
    fit = fit_temperature(wrenches, np.zeros_like(wrenches), temperatures, times, reference=25.0)
    np.testing.assert_allclose(fit.coefficients, K, atol=EXACT)
    assert fit.explained_by_load == 0.0
