# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of FT sensors: from raw readings to wrenches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.arguments import numbers, stacked


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
    ShapeError
        If they do not belong to the same number of sensors.
    ModelError
        If it is no numbers, or one is not finite: every estimate would be, with nothing to say
        why.

    """

    matrices: Array
    offsets: Array
    temperature_coefficients: Array = None  # type: ignore[assignment]
    reference_temperatures: Array = None  # type: ignore[assignment]
    needs_temperature: NDArray[np.bool_] = field(init=False, repr=False)
    """Sensors whose readings need their temperature, shape (n_fts,)."""
    is_thermal: bool = field(init=False, repr=False)
    """True if any sensor does."""
    _plain: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shapes and keep read-only copies."""
        offsets = stacked('offsets', self.offsets, 6)
        n = len(offsets) if offsets.ndim == 2 else 1
        for name, shape in (
            ('matrices', (n, 6, 6)),
            ('offsets', (n, 6)),
            ('temperature_coefficients', (n, 6)),
            ('reference_temperatures', (n,)),
        ):
            given = getattr(self, name)
            given = np.zeros(shape) if given is None and name[0] in 'tr' else given
            array = numbers(name, given, shape, finite=False)
            if not np.isfinite(array).all():
                raise ModelError(f'{name} of the FT calibration hold NaN or infinity')
            object.__setattr__(self, name, array)
        needs = (self.temperature_coefficients != 0.0).any(axis=1)
        needs.flags.writeable = False
        object.__setattr__(self, 'needs_temperature', needs)
        object.__setattr__(self, '_plain', bool((self.matrices == np.eye(6)).all()))
        object.__setattr__(self, 'is_thermal', bool(needs.any()))

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
        try:
            if self._plain:
                found = raw - self.offsets
            else:
                found = (self.matrices @ raw[..., None])[..., 0] - self.offsets
        except (TypeError, ValueError, IndexError):
            raw = stacked('raw', raw, *self.offsets.shape)
            found = (self.matrices @ raw[..., None])[..., 0] - self.offsets
        if not self.is_thermal:
            return found
        shape = raw.shape[:-1]
        given = np.full(shape, np.nan) if temperatures is None else np.asarray(temperatures)
        if given.shape != shape:
            raise ShapeError('temperatures', shape, given.shape, 'that of the readings')
        warmth = np.where(self.needs_temperature, given - self.reference_temperatures, 0.0)
        return found + warmth[..., None] * self.temperature_coefficients
