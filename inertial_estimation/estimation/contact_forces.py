# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Split the external wrench of one submodel among its contacts by least squares [T 4.5.3].

The residual is weighed by the noise of the submodel's own FT sensors: force noise 1, moment noise
`length_scale`, each at its own sensor. The answer does therefore not depend on the point about
which the sum is written. Of all solutions the shortest is taken, moments divided by the same
length; singular values below `rank_tolerance` times the largest count as zero, so that a
combination of forces that hardly shows (two forces that squeeze a link) is left at zero instead
of being blown up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Split(NamedTuple):
    """What least squares found."""

    wrenches: Array
    """Wrench of each contact in and about its frame, shape (..., n_contacts, 6) [N, Nm]."""
    residual: Array
    """What the contacts leave unexplained, about the reference frame, (..., 6) [N, Nm]."""
    rank: NDArray[np.int64]
    """Number of combinations of the unknowns that the wrench determines, shape (...)."""


def split_wrench(
    total: Array,
    bases: list[Array],
    B_Xf_C: Array,
    B_Xf_S: Array,
    length_scale: float,
    rank_tolerance: float,
) -> Split:
    """
    Split a wrench among contacts.

    Parameters
    ----------
    total : ndarray, shape (..., 6)
        Sum of the unknown external wrenches in and about a reference frame B [N, Nm].
    bases : list of ndarray, shape (6, unknowns)
        Wrenches that the unknowns of each contact stand for, in the contact's frame.
    B_Xf_C : ndarray, shape (..., n_contacts, 6, 6)
        Wrench transforms from the contact frames to B.
    B_Xf_S : ndarray, shape (..., n_sensors, 6, 6)
        Wrench transforms from the frames of the submodel's FT sensors to B; none: the reference
        frame stands in for the sensor.
    length_scale : float
        Moment noise over force noise [m].
    rank_tolerance : float
        Relative size of the singular values that count as zero.

    Returns
    -------
    Split

    """
    scales = [np.where(np.abs(basis[:3]).max(axis=0) > 0, 1.0, length_scale) for basis in bases]
    columns = [
        B_Xf_C[..., c, :, :] @ (basis * scale)
        for c, (basis, scale) in enumerate(zip(bases, scales, strict=True))
    ]
    matrix = np.concatenate(columns, axis=-1)
    whiten = _whitening(B_Xf_S, length_scale)
    u, s, vt = np.linalg.svd(whiten @ matrix, full_matrices=False)
    kept = s > rank_tolerance * s[..., :1]
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    image = np.swapaxes(u, -1, -2) @ (whiten @ total[..., None])
    x = np.swapaxes(vt, -1, -2) @ (inverse[..., None] * image)
    residual = total - (matrix @ x)[..., 0]
    wrenches = np.empty((*total.shape[:-1], len(bases), 6))
    start = 0
    for c, (basis, scale) in enumerate(zip(bases, scales, strict=True)):
        stop = start + basis.shape[1]
        wrenches[..., c, :] = ((basis * scale) @ x[..., start:stop, :])[..., 0]
        start = stop
    return Split(wrenches, residual, kept.sum(axis=-1))


def _whitening(B_Xf_S: Array, length_scale: float) -> Array:
    """Return the inverse Cholesky factor of the covariance of a sum of FT readings."""
    noise = np.array([1.0, 1.0, 1.0, length_scale, length_scale, length_scale])
    if B_Xf_S.shape[-3] == 0:
        return np.diag(1.0 / noise)
    factors = B_Xf_S * noise
    covariance = (factors @ np.swapaxes(factors, -1, -2)).sum(axis=-3)
    return np.linalg.inv(np.linalg.cholesky(covariance))
