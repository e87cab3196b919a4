# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of FT sensors: from raw readings to wrenches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.model.arguments import numbers

MATRIX_DEVIATION = 0.1
"""Usual error of matrix elements in use, over the matrix itself [T section 5.1]."""
WRENCH_SCALE = np.repeat([1.0, 0.1], 3)
"""Wrenches of like size, at a lever of 0.1 m [N, Nm]."""


@dataclass(frozen=True, eq=False)
class FtCalibration:
    """
    Map from raw readings to wrenches: wrench = matrix raw + k (T - T0) - offset.

    Parameters
    ----------
    matrices : ndarray, shape (n_fts, 6, 6)
        Applied to the raw reading first.
    offsets : ndarray, shape (n_fts, 6)
        Subtracted, [force; torque] [N, Nm], in the sensor's frame.
    temperature_coefficients : ndarray, shape (n_fts, 6), optional
        k, the drift with each degree above the reference temperature [N/K, Nm/K]. Default: zero,
        and no temperatures are needed.
    reference_temperatures : ndarray, shape (n_fts,), optional
        T0, at which the offsets hold [degrees Celsius]. Default: zero.

    Raises
    ------
    ShapeError, ModelError
        If they do not belong to the same number of sensors, or one is not finite.

    """

    matrices: Array
    offsets: Array
    temperature_coefficients: Array = None  # type: ignore[assignment]
    reference_temperatures: Array = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Check the shapes and keep read-only copies."""
        n = len(self.offsets)
        for name, shape in (
            ('matrices', (n, 6, 6)),
            ('offsets', (n, 6)),
            ('temperature_coefficients', (n, 6)),
            ('reference_temperatures', (n,)),
        ):
            given = getattr(self, name)
            array = numbers(name, np.zeros(shape) if given is None else given, shape)
            object.__setattr__(self, name, array)

    @cached_property
    def needs_temperature(self) -> NDArray[np.bool_]:
        """Sensors whose readings need their temperature, shape (n_fts,)."""
        return np.asarray((self.temperature_coefficients != 0.0).any(axis=1))

    @cached_property
    def is_thermal(self) -> bool:
        """True if any sensor does."""
        return bool(self.needs_temperature.any())

    @cached_property
    def _plain(self) -> bool:
        return bool((self.matrices == np.eye(6)).all())

    @classmethod
    def identity(cls, n_fts: int) -> FtCalibration:
        """
        Return the calibration that leaves readings as they are.

        Parameters
        ----------
        n_fts : int
            Number of sensors.

        Returns
        -------
        FtCalibration

        """
        return cls(np.tile(np.eye(6), (n_fts, 1, 1)), np.zeros((n_fts, 6)))

    def with_offsets(self, offsets: Array) -> FtCalibration:
        """
        Return the same calibration with other offsets.

        Parameters
        ----------
        offsets : ndarray, shape (n_fts, 6)
            Subtracted instead [N, Nm].

        Returns
        -------
        FtCalibration

        """
        return replace(self, offsets=offsets)

    def apply(self, raw: Array, temperatures: Array | None = None) -> Array:
        """
        Return the measured wrenches.

        Parameters
        ----------
        raw : ndarray, shape (..., n_fts, 6)
            Raw readings.
        temperatures : ndarray, shape (..., n_fts), optional
            Of the sensors [degrees Celsius]; NaN, or none at all: not known.

        Returns
        -------
        ndarray, shape (..., n_fts, 6)
            [force; torque] in each sensor's frame [N, Nm]; NaN for a sensor that needs a
            temperature that is not known.

        """
        wrenches = raw if self._plain else (self.matrices @ raw[..., None])[..., 0]
        found = np.subtract(wrenches, self.offsets, order='C', dtype=np.float64)
        if not self.is_thermal:
            return found
        given = np.full(raw.shape[:-1], np.nan) if temperatures is None else temperatures
        warmth = np.where(self.needs_temperature, given - self.reference_temperatures, 0.0)
        return found + warmth[..., None] * self.temperature_coefficients
