# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""When the residual of a sensor casts doubt: against noise, and against what its reading does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.momentum_verdict import NOISE_FACTOR, PART
from inertial_estimation.sample import Array

BIAS_FACTOR = 2.0
"""Of the noise, for a mean: that of ten instants scatters by less than a third of it."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
NORMAL = 1.4826
"""Standard deviation over median absolute deviation, of normal noise."""


class ResidualVerdict(NamedTuple):
    """Sizes of a residual over some instants, of its vectors, and whether it casts doubt."""

    rms: float
    constant: float
    """Length of the mean: what a bias leaves, or a wrong axis at rest."""
    change: float
    """Root mean square of the reading minus its mean: gravity at rest does not count."""
    noise: float
    """What noise leaves of the residual."""
    doubtful: bool

    @property
    def is_constant(self) -> bool:
        """Whether more than half of the residual's power is its mean."""
        return 2.0 * self.constant**2 > self.rms**2


def judge_residual(
    residuals: Array,
    readings: Array,
    noise: float,
    *,
    whole: bool = True,
    change: float = 0.0,
) -> ResidualVerdict:
    """Judge the residual of a sensor; residuals (n, 3); readings (n, 3)."""
    n = len(residuals)
    if not n:
        return ResidualVerdict(np.nan, np.nan, np.nan, np.nan, doubtful=False)
    constant = float(np.linalg.norm(residuals.mean(axis=0)))
    rms, own = _rms(residuals), rms_change(readings)
    found = ResidualVerdict(rms, constant, own, noise, doubtful=False)
    least = BIAS_FACTOR * (noise if whole else max(noise, _scatter(residuals)))
    biased = found.is_constant and constant > least
    varies = rms > NOISE_FACTOR * noise and rms > PART * max(own, change)
    return found._replace(doubtful=n >= FEWEST and (biased or varies))


def rms_change(readings: Array) -> float:
    """Return how much readings change; readings (n, 3)."""
    return _rms(readings - readings.mean(axis=0))


def _rms(vectors: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))


def _scatter(vectors: Array) -> float:
    """Return a root mean square about the median that a few outliers do not move."""
    deviations = np.median(np.abs(vectors - np.median(vectors, axis=0)), axis=0)
    return NORMAL * float(np.linalg.norm(deviations))
