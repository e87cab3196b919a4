# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Stamps = NDArray[np.int64]


def read_only(array: object) -> Array:
    """Return a float64 copy that cannot be written to."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy
