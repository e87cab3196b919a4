# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of sensors that feel how several supports share the load, which nobody knows.

At each instant the sharing is free: what it can do to the readings is taken out before the
readings are compared with the prediction. A combination of offsets that looks like another
sharing in all poses is told by no data; it is that of the prediction, and no more than a guess.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SHOWN = 0.3
"""
A combination of offsets that shows by less than this, once the sharing is taken out, is not told.

Poses that turn the sensors against each other by some tens of degrees let more of it show; below
that what the model does wrong would be blown up by three and more.
"""
ROUND_OFF = 1e-9
TINY = 1e-300


class FreeFit(NamedTuple):
    """What readings say about offsets while the load may be shared in any way."""

    offsets: Array
    """Shape (m,)."""
    undetermined: Array
    """Orthonormal combinations of the offsets that no reading tells, shape (m, k)."""
    instants: Array
    """What each instant says, of which the offsets are the mean, shape (n, m)."""


def fit_free(differences: Array, freedom: Array) -> FreeFit:
    """
    Return the offsets that readings tell whatever the sharing is.

    differences (n, m); freedom (n, m, k).
    """
    project = projections(freedom)
    start = differences.mean(axis=0)
    seen = (project @ (differences - start)[..., None])[..., 0]
    shown, directions = np.linalg.eigh(project.mean(axis=0))
    told = shown > LEAST_SHOWN**2
    basis = directions[:, told]
    # With one pose a direction shows fully or not at all, and this changes nothing.
    offsets = start + basis @ (seen.mean(axis=0) @ basis / shown[told])
    # About the offsets: about the start, poses would differ by what they show of the change.
    off = differences - offsets
    left = (project @ off[..., None])[..., 0]
    instants = differences - off @ basis @ basis.T + (left @ basis) / shown[told] @ basis.T
    return FreeFit(offsets, directions[:, ~told], instants)


def projections(freedom: Array) -> Array:
    """
    Return what takes every change of the sharing out of the readings.

    freedom (n, m, k); returns (n, m, m).
    """
    u, s, _ = np.linalg.svd(freedom, full_matrices=False)
    u = u * (s > ROUND_OFF * np.maximum(s[:, :1], TINY))[:, None, :]
    onto: Array = np.eye(freedom.shape[1]) - u @ u.swapaxes(1, 2)
    return onto
