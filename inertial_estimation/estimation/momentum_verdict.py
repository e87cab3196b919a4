# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""When the check of momentum, or one like it, casts doubt: alike in the node and in a replay."""

from __future__ import annotations

from inertial_estimation.estimation.momentum_check import MomentumReport
from inertial_estimation.sample import Array

LEAST_WINDOWS = 4
"""With fewer of them, two seconds, one event would decide."""
NOISE_FACTOR = 4.0
"""Of the standard deviation: the root mean square of four windows gets there by no chance."""
PART = 0.25
"""Of the change of momentum: right filters leave an eighth of it in the noise of the demo."""


def is_doubtful(report: MomentumReport, deviation: Array) -> bool:
    """
    Tell whether more is unexplained than noise, and a right filter, leave.

    Parameters
    ----------
    report : MomentumReport
        What the last windows say.
    deviation : ndarray, shape (2,)
        What noise leaves unexplained [N, Nm]; NaN: not known, and no doubt can be told.

    Returns
    -------
    bool

    """
    far = report.unexplained > NOISE_FACTOR * deviation
    far &= report.unexplained > PART * report.change
    return report.windows >= LEAST_WINDOWS and bool(far.any())
