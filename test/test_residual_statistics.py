# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Covariances of least squares from blocks, against the scatter of many draws.

Not covered: what fits make of them, in the tests of each.
"""

import numpy as np
import pytest
from scipy.signal import lfilter

from inertial_estimation.calibration.residual_statistics import (
    contiguous_blocks,
    covariances_by_blocks,
    deviations_of_means,
)

N, BLOCKS = 400, 10
TIMES = np.arange(N) * 0.01


def everywhere(rng):
    """Return rows that show all directions in all blocks."""
    return rng.normal(size=(N, 4))


def one_after_the_other(rng):
    """Return rows that show each direction for two to three blocks."""
    rows = np.zeros((N, 4))
    for k in range(4):
        rows[100 * k : 100 * (k + 1), k] = rng.normal(size=100)
    return rows


def mostly_in_one(rng):
    """Return rows of which the last direction shows in the first block alone."""
    rows = rng.normal(size=(N, 4))
    rows[40:, 3] = 0.0
    return rows


def white(rng):
    return rng.normal(size=(N, 50))


def lasting(rng):
    """Return noise that stays for ten samples."""
    return np.repeat(rng.normal(size=(N // 10, 50)), 10, axis=0)


@pytest.mark.parametrize('noise', [white, lasting])
@pytest.mark.parametrize('design', [everywhere, one_after_the_other, mostly_in_one])
def test_covariances_are_those_of_many_draws(rng, design, noise):
    Q = np.linalg.qr(np.column_stack([design(rng), np.ones(N)]))[0]
    errors = noise(rng)
    found = Q.T @ errors
    blocks = contiguous_blocks(TIMES, BLOCKS)
    told = covariances_by_blocks(Q, errors - Q @ found, blocks)
    ratios = found.T / np.sqrt(np.diagonal(told, axis1=1, axis2=2))
    # 250 ratios, of deviations that ten blocks tell to a quarter.
    assert 0.8 < np.sqrt(np.mean(ratios**2)) < 1.3
    np.testing.assert_allclose(told, told.swapaxes(1, 2), atol=1e-12)
    assert np.linalg.eigvalsh(told).min() > -1e-12


def test_errors_that_are_larger_in_a_direction_are_seen_there(rng):
    """A slow drift tells on the mean, and not on what goes up and down."""
    rows = np.column_stack([(-1.0) ** np.arange(N), np.ones(N)]) / np.sqrt(N)
    drift = np.repeat(rng.normal(size=(2 * BLOCKS, 50)), N // BLOCKS // 2, axis=0)
    left = drift - rows @ (rows.T @ drift)
    told = covariances_by_blocks(rows, left, contiguous_blocks(TIMES, BLOCKS))
    deviations = np.sqrt(np.diagonal(told, axis1=1, axis2=2)).mean(axis=0)
    assert deviations[1] > 2.0 * deviations[0]
    # The mean of twenty draws of twenty samples each.
    assert deviations[1] == pytest.approx(np.sqrt(N / (2 * BLOCKS)), rel=0.35)


@pytest.mark.parametrize('memory', [0.0, 0.9])
def test_means_of_samples_that_resemble_their_neighbours(rng, memory):
    # First-order noise: its correlations add up to (1 + memory) / (1 - memory).
    n, repeats = 2000, 300
    noise = rng.normal(size=(n + 200, repeats))
    signal = np.empty_like(noise)
    last = np.zeros(repeats)
    for k, row in enumerate(noise):
        signal[k] = last = memory * last + row
    signal = signal[200:]
    told = deviations_of_means(signal)
    # The spread of 300 means is known to 4 %, and the figure is a little short of the truth.
    assert np.median(told) == pytest.approx(signal.mean(axis=0).std(), rel=0.15)


def test_means_of_signals_of_ten_times_their_memory(rng):
    """A tare of two seconds while a robot sways; its mean follows the sway."""
    signal = lfilter([1.0], [1.0, -0.9], rng.normal(size=(400, 400)), axis=0)[200:]
    ratios = signal.mean(axis=0) / deviations_of_means(signal)
    # Of 400 means; it would be 1.4 if the mean were taken for the truth.
    assert 0.9 < np.sqrt(np.mean(ratios**2)) < 1.3
    white = rng.normal(size=(10, 400))
    ratios = white.mean(axis=0) / deviations_of_means(white)
    assert 0.8 < np.sqrt(np.mean(ratios**2)) < 1.2


def test_deviations_of_short_and_constant_signals():
    assert np.isnan(deviations_of_means(np.ones((1, 2)))).all()
    np.testing.assert_array_equal(deviations_of_means(np.full((50, 2), 7.0)), 0.0)
    drift = np.linspace(0.0, 1.0, 100)[:, None]
    assert deviations_of_means(drift) > 0.1, 'a drift is no hundred samples'
