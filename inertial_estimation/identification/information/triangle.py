# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are worked into a triangle by orthogonal transforms, with LAPACK."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError

Array = NDArray[np.float64]

BLOCK = 32
"""Columns that LAPACK reflects together."""


def absorb(triangle: Array, rows: Array, triangular: bool = False) -> Array:
    """
    Return the triangle of a triangle and rows below it.

    The zeros of the triangle cost nothing, unlike in a QR of both as they stand.

    Parameters
    ----------
    triangle : ndarray, shape (n, n)
        Upper triangle; used up where it is in the order of LAPACK.
    rows : ndarray, shape (m, n)
        Used up likewise.
    triangular : bool
        Whether the rows are an upper trapezoid themselves, with m <= n.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    InertialEstimationError
        If LAPACK refuses.

    """
    from scipy.linalg.lapack import dtpqrt

    if not len(rows):
        return triangle
    height = len(rows) if triangular else 0
    reduced, _, _, status = dtpqrt(
        height,
        min(BLOCK, len(triangle)),
        triangle,
        np.asfortranarray(rows),
        overwrite_a=1,
        overwrite_b=1,
    )
    if status:
        raise InertialEstimationError(f'LAPACK refuses to reduce the rows (dtpqrt: {status})')
    return np.asarray(reduced)
