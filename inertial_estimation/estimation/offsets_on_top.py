# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that go with inertial parameters, on top of those of the calibration.

At rest a weight and an offset are the same thing, so offsets that were found from a description
hold what is wrong with it: bodies alone in its place would be no better. Who finds bodies finds
the offsets that go with them, and one is used with the other.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration

Array = NDArray[np.float64]


def fingerprint(*numbers: Array) -> str:
    """Return what tells numbers from all others, to the bit."""
    digest = sha256()
    for array in numbers:
        digest.update(np.ascontiguousarray(array, dtype='<f8').tobytes())
    return digest.hexdigest()[:16]


def calibration_fingerprint(calibration: FtCalibration) -> str:
    """Return what tells a calibration from all others."""
    return fingerprint(
        calibration.matrices,
        calibration.offsets,
        calibration.temperature_coefficients,
        calibration.reference_temperatures,
    )


class OffsetsOnTop:
    """What an estimator subtracts beyond its calibration; values (n_fts, 6) [N, Nm]."""

    def __init__(self, estimator: WrenchEstimator) -> None:
        self._estimator = estimator
        self.calibration = estimator.calibration
        self.values: Array = np.zeros_like(self.calibration.offsets)

    def set(self, values: Array) -> None:
        """Go on with other ones; values (n_fts, 6) [N, Nm]."""
        if np.array_equal(values, self.values):
            return
        self.values = values
        self._subtract()

    def set_calibration(self, calibration: FtCalibration) -> NDArray[np.bool_]:
        """
        Go on with another calibration, and nothing on top of sensors that it changes.

        Returns (n_fts,).
        """
        before, n = self.calibration, len(self.values)
        changed = np.zeros(n, dtype=bool)
        for name in ('matrices', 'offsets', 'temperature_coefficients', 'reference_temperatures'):
            pair = (getattr(one, name).reshape(n, -1) for one in (before, calibration))
            changed |= np.not_equal(*pair).any(axis=1)
        self.calibration = calibration
        self.values = np.where(changed[:, None], 0.0, self.values)
        self._subtract()
        return changed

    def _subtract(self) -> None:
        """Give the estimator what is subtracted in all."""
        offsets = self.calibration.offsets + self.values
        self._estimator.set_calibration(self.calibration.with_offsets(offsets))
