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
        fit = fit_temperature(
            wrenches - predicted + load, load, temperatures, times, reference=25.0
        )
        np.testing.assert_allclose(fit.coefficients, K, atol=EXACT)
        np.testing.assert_allclose(fit.offset, OFFSET, atol=100.0 * EXACT)
        assert fit.used.all() and fit.reference == 25.0


@pytest.mark.parametrize(('settles', 'lasting'), [(40.0, 1), (120.0, 50)])
def test_deviations_are_as_large_as_errors(rng, settles, lasting):
    """Also where the sensor warms up within the first of ten blocks."""
    ratios, offsets = [], []
    for _ in range(40):
        times, temperatures, predicted, wrenches = warming(rng, settles)
        slow = np.repeat(rng.normal(size=(3000 // lasting, 6)), lasting, axis=0) * NOISE
        fit = fit_temperature(wrenches + slow, predicted, temperatures, times, reference=25.0)
        ratios.append((fit.coefficients - K) / fit.deviations)
        offsets.append((fit.offset - OFFSET) / fit.offset_deviations)
    # 240 ratios; deviations of which some blocks hold most vary by a third.
    for found in (ratios, offsets):
        assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.6


def test_temperatures_that_determine_nothing_are_refused(rng):
    times, temperatures, predicted, wrenches = warming(rng)
    for error, given in (
        (LogError, 25.0 + 0.1 * (temperatures - 25.0)),
        (LogError, 25.0 + 0.02 * times + 0.01 * np.sin(times)),
        (LogError, 25.0 + 0.2 * predicted[:, 2]),
        (LogError, 273.15 + temperatures),
        (LogError, np.full_like(times, np.nan)),
        (ShapeError, temperatures[:-1]),
    ):
        with pytest.raises(error):
            fit_temperature(wrenches, predicted, given, times)
