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

    triangle (n, n); rows (m, n); returns (n, n).
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
