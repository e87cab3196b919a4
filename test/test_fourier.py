# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Finite Fourier series: derivatives, rest, and how much they exceed what was sampled.

Not covered: which of them are good for identification, see `test_excitation`.
"""

import numpy as np
import pytest

from inertial_estimation.identification.excitation.fourier import FourierBasis, FourierMotion

# Sums of a dozen numbers of order one.
ROUND_OFF = 1e-12
STEP = 1e-5
# Square of the step times third derivatives of order ten, and round-off over the step.
DIFFERENCED = 1e-8
BASIS = FourierBasis(period=8.0, harmonics=4)


def motion(rng, joints=3):
    names = tuple(f'joint_{k}' for k in range(joints))
    return FourierMotion(BASIS, names, rng.normal(size=(joints, BASIS.size)))


def test_formula_of_s(rng):
    found = motion(rng)
    t, w = 1.3, 2 * np.pi / BASIS.period
    a, b = found.coefficients[0, :4], found.coefficients[0, 4:8]
    wanted = found.coefficients[0, -1] + sum(
        a[k - 1] / (w * k) * np.sin(w * k * t) - b[k - 1] / (w * k) * np.cos(w * k * t)
        for k in range(1, 5)
    )
    np.testing.assert_allclose(found.at(np.array([t]))[0, 0, 0], wanted, atol=ROUND_OFF)


@pytest.mark.parametrize('order', [0, 1])
def test_rates_are_rates(rng, order):
    found, t = motion(rng), rng.uniform(0.0, 8.0, 20)
    slope = (found.at(t + STEP)[order] - found.at(t - STEP)[order]) / (2 * STEP)
    np.testing.assert_allclose(found.at(t)[order + 1], slope, atol=DIFFERENCED)


def test_at_rest_means_no_velocity_and_no_acceleration(rng):
    rest = BASIS.at_rest()
    np.testing.assert_allclose(rest.T @ rest, np.eye(BASIS.size - 2), atol=ROUND_OFF)
    coefficients = rng.normal(size=(3, BASIS.size - 2)) @ rest.T
    found = FourierMotion(BASIS, ('a', 'b', 'c'), coefficients)
    begin, end = np.swapaxes(found.at(np.array([0.0, BASIS.period])), 0, 1)
    np.testing.assert_allclose(begin[1:], 0.0, atol=ROUND_OFF)
    np.testing.assert_allclose(end, begin, atol=10 * ROUND_OFF)
    np.testing.assert_array_equal(rest[:, -1], np.eye(BASIS.size)[-1])


@pytest.mark.parametrize('n', [12, 20, 40])
def test_nothing_exceeds_the_samples_by_more_than_is_said(rng, n):
    coefficients = rng.normal(size=(300, BASIS.size))
    samples = np.abs(coefficients @ BASIS.matrices(BASIS.instants(n))[0].T).max(axis=1)
    everywhere = np.abs(coefficients @ BASIS.matrices(BASIS.instants(2000))[0].T).max(axis=1)
    share = everywhere / samples
    assert share.max() <= BASIS.overshoot(n)
    # The bound is no idle one: somewhere a good part of it is used.
    assert share.max() - 1.0 > 0.1 * (BASIS.overshoot(n) - 1.0)
