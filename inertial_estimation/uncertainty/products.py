# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products that stay on one thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SINGLE_THREAD = 250_000
"""
Multiplications in one product.

OpenBLAS shares larger ones out among threads, which on a busy machine costs milliseconds.
"""


def product(left: Array, right: Array) -> Array:
    """
    Return the product of two matrices, in pieces if need be.

    left (n, k); right (k, m); returns (n, m).
    """
    n, size = len(left), left.size * right.shape[1]
    if size <= SINGLE_THREAD:
        whole: Array = left @ right
        return whole
    result = np.empty((n, right.shape[1]))
    step = max(1, n // (size // SINGLE_THREAD + 1))
    for k in range(0, n, step):
        np.matmul(left[k : k + step], right, out=result[k : k + step])
    return result
