# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the raw readings of FT sensors become wrenches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.arguments import numbers, stacked

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FtCalibration:
    """
    How raw readings become wrenches: wrench = matrix raw - offset.

    Parameters
    ----------
    matrices : ndarray, shape (n_fts, 6, 6)
        Applied to the raw reading first.
    offsets : ndarray, shape (n_fts, 6)
        Subtracted, [force; torque] [N, Nm], in the sensor's frame.

    Raises
    ------
    ShapeError
        If the two do not belong to the same number of sensors.
    ModelError
        If it is no numbers, or one is not finite: every estimate would be, with nothing to say
        why.

    """

    matrices: Array
    offsets: Array
    _plain: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        """Check the shapes and keep read-only copies."""
        offsets = stacked('offsets', self.offsets, 6)
        n = len(offsets) if offsets.ndim == 2 else 1
        for name, shape in (('matrices', (n, 6, 6)), ('offsets', (n, 6))):
            array = numbers(name, getattr(self, name), shape, finite=False)
            if not np.isfinite(array).all():
                raise ModelError(f'{name} of the FT calibration hold NaN or infinity')
            object.__setattr__(self, name, array)
        object.__setattr__(self, '_plain', bool((self.matrices == np.eye(6)).all()))

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
        if not (isinstance(n_fts, (int, np.integer)) and n_fts >= 0):
            raise ModelError(f"'n_fts' is {n_fts!r}, expected a number of sensors")
        return cls(np.tile(np.eye(6), (n_fts, 1, 1)), np.zeros((n_fts, 6)))

    def apply(self, raw: Array) -> Array:
        """
        Return the measured wrenches.

        Parameters
        ----------
        raw : ndarray, shape (..., n_fts, 6)
            Raw readings.

        Returns
        -------
        ndarray, shape (..., n_fts, 6)
            [force; torque] in each sensor's frame [N, Nm].

        """
        try:
            if self._plain:
                return raw - self.offsets
            return (self.matrices @ raw[..., None])[..., 0] - self.offsets
        except (TypeError, ValueError, IndexError):
            readings = stacked('raw', raw, *self.offsets.shape)
            return (self.matrices @ readings[..., None])[..., 0] - self.offsets
