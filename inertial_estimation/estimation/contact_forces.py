# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Split the external wrench of a submodel among its contacts by least squares [T section 4.5.3].

The residual is weighed by the noise of the submodel's own FT sensors: force noise 1, moment noise
``length_scale``, each at its own sensor. The answer does therefore not depend on the point about
which the sum is written, except in a submodel without any FT sensor, where the origin of its root
link stands in for one. The weights are this package's choice; the thesis has none.

Of all solutions the shortest is taken, moments divided by the same length. What a combination of
unknowns does to the sensors is its singular value, in noise of one newton per newton: below
``rank_tolerance`` it counts as zero, so that a combination that hardly shows (two forces that
squeeze a link) is left at zero instead of blowing up the noise by more than the inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


NEARLY = 1e-12
"""Determined is what holds less than the root of this of any undetermined combination."""
ROUND_OFF = 1e-12
"""A combination that shows by less than this part of the one that shows best shows not at all."""


class Solution(NamedTuple):
    """What a wrench says about unknowns."""

    unknowns: Array
    """In newtons, shape (..., n)."""
    rank: NDArray[np.int64]
    """Number of combinations of the unknowns that the wrench determines, shape (...)."""
    determined: NDArray[np.bool_]
    """Which unknowns it determines one by one, shape (..., n)."""
    left_out: NDArray[np.bool_]
    """
    Whether some combination was left at zero although it shows a little, shape (...). What it
    adds to the wrench is missing then, also where the single unknowns do not matter.
    """


def noise_scale(length_scale: float) -> Array:
    """
    Return the standard deviations of an FT reading, up to a factor.

    length_scale [m]; returns (6,).
    """
    return np.array([1.0, 1.0, 1.0, length_scale, length_scale, length_scale])


def scaled_basis(basis: Array, length_scale: float) -> Array:
    """
    Return the wrenches of unknowns that all count in newtons.

    basis (6, n); length_scale [m]; returns (n, 6).
    """
    is_force = np.abs(basis[:3]).max(axis=0) > 0
    return np.where(is_force, 1.0, length_scale)[:, None] * basis.T


def split_wrench(total: Array, columns: Array, noise: Array, rank_tolerance: float) -> Solution:
    """
    Find the shortest unknowns that explain a wrench best.

    total (..., 6) [N, Nm]; columns (..., n, 6); noise (..., m, 6).
    """
    if noise.ndim == 1:
        white_columns, white_total = columns / noise, total / noise
    else:
        # The Gram matrix of the rows would lose half of their digits, far levers all of them.
        whiten = np.linalg.inv(np.linalg.qr(noise, mode='r'))
        white_columns = columns @ whiten
        white_total = (total[..., None, :] @ whiten)[..., 0, :]
    u, s, vt = np.linalg.svd(white_columns, full_matrices=False)
    shown = s > ROUND_OFF * s[..., :1]
    kept = shown & (s > rank_tolerance)
    left_out = np.asarray((shown & ~kept).any(axis=-1))
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    image = (vt @ white_total[..., None])[..., 0]
    determined = (u * u * kept[..., None, :]).sum(axis=-1)
    unknowns = (u @ (inverse * image)[..., None])[..., 0]
    return Solution(unknowns, kept.sum(axis=-1), determined > 1.0 - NEARLY, left_out)
