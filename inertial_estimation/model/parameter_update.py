# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters of all links as one update, with their covariance and FT offsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from xml.etree.ElementTree import canonicalize

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import check_masses, check_usable
from inertial_estimation.model.robot import Robot


def fingerprint(*numbers: Array) -> str:
    """Return a hash of numbers, to the bit."""
    digest = sha256()
    for array in numbers:
        digest.update(np.ascontiguousarray(array, dtype='<f8').tobytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def urdf_fingerprint(urdf: str) -> str:
    """Return a hash of a URDF that does not depend on comments, blanks and order of attributes."""
    return sha256(canonicalize(urdf, strip_text=True).encode()).hexdigest()[:16]


def calibration_fingerprint(calibration: FtCalibration) -> str:
    """Return a hash of a calibration."""
    return fingerprint(
        calibration.matrices,
        calibration.offsets,
        calibration.temperature_coefficients,
        calibration.reference_temperatures,
    )


@dataclass(frozen=True, eq=False)
class ParameterUpdate:
    """
    Inertial parameters of all links, with their covariance and the offsets that belong to them.

    Parameters
    ----------
    parameters : ndarray, shape (n_links, 10)
        [kg, kg m, kg m^2].
    roots : ndarray, shape (n_links, 10, r), optional
        Root F of their covariance F F', of each submodel.
    offsets : ndarray, shape (n_fts, 6), optional
        FT offsets to be subtracted beside them, on top of the calibration [N, Nm].
    calibration : str
        Fingerprint of the calibration that the offsets come on top of; empty: none.

    Raises
    ------
    ShapeError, ModelError
        If shapes do not belong together, or numbers are not finite.

    """

    parameters: Array
    roots: Array | None = None
    offsets: Array | None = None
    calibration: str = ''

    def __post_init__(self) -> None:
        n = len(self.parameters)
        columns = 0 if self.roots is None or self.roots.ndim != 3 else self.roots.shape[2]
        n_fts = 0 if self.offsets is None else len(self.offsets)
        for name, array, shape in (
            ('parameters', self.parameters, (n, 10)),
            ('roots', self.roots, (n, 10, columns)),
            ('offsets', self.offsets, (n_fts, 6)),
        ):
            if array is None:
                continue
            if array.shape != shape:
                raise ShapeError(name, shape, array.shape)
            if not np.isfinite(array).all():
                raise ModelError(f"'{name}' of an update holds NaN or infinity")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the parameters, by which its parts are matched."""
        return fingerprint(self.parameters)

    def check(self, robot: Robot) -> None:
        """
        Raise unless a robot can have these parameters.

        Parameters
        ----------
        robot : Robot
            Its links, and the masses to compare with.

        Raises
        ------
        ModelError
            If parameters are inconsistent, or masses those of another robot.

        """
        check_usable(robot.link_names, self.parameters)
        check_masses(robot.link_names, self.parameters, robot.parameters)
