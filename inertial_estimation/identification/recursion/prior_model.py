# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The entropic prior near some bodies as rows: what a linear elimination can go by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.solvers.divergence import (
    entropic_gradient,
    entropic_roots,
    symmetric,
    whitening,
)
from inertial_estimation.identification.unknowns import Unknowns

Array = NDArray[np.float64]


def prior_model(
    unknowns: Unknowns, prior: Array, near: Array, scales: Array, weight: float
) -> Information:
    """
    Return rows whose half square is the prior's distance to second order, times a weight.

    Parameters
    ----------
    unknowns : Unknowns
        Columns.
    prior : ndarray, shape (n_links, 10)
        Strictly consistent.
    near : ndarray, shape (n_links, 10)
        Bodies about which the distance is developed, strictly consistent.
    scales : ndarray, shape (n_extras,)
        How far other unknowns may well be from zero; infinite where nothing is known.
    weight : float
        That of a solver, times the rows that it takes the mean of.

    Returns
    -------
    Information
        Without any count: these are no measured rows.

    """
    n, inertial = len(unknowns), unknowns.n_inertial
    rows, target = np.zeros((n, n)), np.zeros(n)
    maps = np.linalg.inv(whitening(prior))
    z = np.einsum('lij,lj->li', maps, near - prior)
    shapes = symmetric(z)
    roots, slopes = entropic_roots(shapes), entropic_gradient(shapes)
    for k, (root, slope) in enumerate(zip(roots, slopes, strict=True)):
        own = slice(10 * k, 10 * k + 10)
        rows[own, own] = root @ maps[k]
        target[own] = rows[own, own] @ near[k] - np.linalg.solve(root.T, slope)
    rest = np.arange(inertial, n)
    rows[rest, rest] = 1.0 / scales
    size = np.sqrt(weight)
    return replace(Information.of(size * rows, size * target), count=0.0)
