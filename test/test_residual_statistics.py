# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Covariances of least squares from blocks, against the scatter of many draws.

Not covered: the fits that use them.
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


def regressor(rng, design):
    """Return regressors that excite directions everywhere, in turn, or in the first block only."""
    rows = rng.normal(size=(N, 4))
    if design == 'in turn':
        rows *= np.repeat(np.eye(4), 100, axis=0)
    elif design == 'one block':
        rows[40:, 3] = 0.0
    return rows


@pytest.mark.parametrize('lasting', [1, 10])
@pytest.mark.parametrize('design', ['everywhere', 'in turn', 'one block'])
def test_covariances_are_those_of_many_draws(rng, design, lasting):
    Q = np.linalg.qr(np.column_stack([regressor(rng, design), np.ones(N)]))[0]
    errors = np.repeat(rng.normal(size=(N // lasting, 50)), lasting, axis=0)
    found = Q.T @ errors
    blocks = contiguous_blocks(np.arange(N) * 0.01, BLOCKS)
    covariances = covariances_by_blocks(Q, errors - Q @ found, blocks)
    ratios = found.T / np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    # 250 ratios, of deviations that ten blocks determine to a quarter.
    assert 0.8 < np.sqrt(np.mean(ratios**2)) < 1.3
    assert np.linalg.eigvalsh(covariances).min() > -1e-12


def test_means_of_signals_of_ten_times_their_memory(rng):
    """A tare of two seconds while a robot sways; its mean follows the sway."""
    signal = lfilter([1.0], [1.0, -0.9], rng.normal(size=(400, 400)), axis=0)[200:]
    ratios = signal.mean(axis=0) / deviations_of_means(signal)
    # Of 400 means; 1.4 if the mean were taken for the truth.
    assert 0.9 < np.sqrt(np.mean(ratios**2)) < 1.3
    white = rng.normal(size=(10, 400))
    ratios = white.mean(axis=0) / deviations_of_means(white)
    assert 0.8 < np.sqrt(np.mean(ratios**2)) < 1.2


def test_deviations_of_short_and_constant_signals():
    assert np.isnan(deviations_of_means(np.ones((1, 2)))).all()
    np.testing.assert_array_equal(deviations_of_means(np.full((50, 2), 7.0)), 0.0)
    drift = np.linspace(0.0, 1.0, 100)[:, None]
    assert deviations_of_means(drift) > 0.1, 'a drift is no hundred samples'
