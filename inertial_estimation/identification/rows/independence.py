# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much a filtered row is worth: the noise of its neighbours is nearly its own.

What links weigh is told by motion that is slow against the low pass, and so the noise that spoils
it is that at low frequencies, which a low pass leaves as it is. Residuals show less than that, as
the low pass takes all that is fast: n rows tell as much as n times the share of the two would if
their noise were independent. With white noise in what was recorded the share is

    every * mean |H|^4

with H the filter, which runs forwards and backwards: about 1.8 cutoff period every, at most one.
Noise that is not white, as of what the model lacks, is not counted by that.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.identification.rows.preparation import Preparation

FREQUENCIES = 1 << 15
"""At which the filter is looked at, from zero to the rate: its bandwidth is many of them."""


def independent_share(how: Preparation, step: float) -> float:
    """
    Return as how many rows of independent noise a filtered one counts.

    step [s].
    """
    if not how.cutoff:
        return 1.0
    from scipy.signal import butter, sosfreqz

    sections = butter(how.order, how.cutoff, fs=1 / step, output='sos')
    _, response = sosfreqz(sections, FREQUENCIES, whole=True)
    return min(1.0, float(how.every * np.mean(np.abs(response) ** 4)))
