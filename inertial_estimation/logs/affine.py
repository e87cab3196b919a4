# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How an estimate depends on the readings of the FT sensors: it is affine in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.log import Progress, no_progress
from inertial_estimation.sample import Array, SampleBatch


def affine(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    pick: Callable[[WrenchEstimate], Array],
    what: str = '',
    progress: Progress = no_progress,
) -> tuple[Array, Array]:
    """
    Return what an estimate holds with all readings zero, and its slopes by each of them.

    Returns values (n, m); slopes (n, m, n_fts, 6).
    """
    n_fts = samples.ft_readings.shape[1]
    readings = np.zeros_like(samples.ft_readings)
    zero = replace(samples, ft_readings=readings)
    values = pick(estimator.batch(zero)).copy()
    slopes = np.empty((*values.shape, n_fts, 6))
    for k in range(n_fts):
        for axis in range(6):
            readings[:, k, axis] = 1.0
            slopes[:, :, k, axis] = pick(estimator.batch(zero)) - values
            readings[:, k, axis] = 0.0
            progress(what, (6 * k + axis + 1) / (6 * n_fts))
    return values, slopes
