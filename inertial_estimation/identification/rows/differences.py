# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives of signals at even steps, exact for polynomials of sixth degree.

Differences of two neighbours are too low by a share of (w T)^2 / 6 for a sine of angular frequency
w at steps T: 1 % of a velocity and 2 % of an acceleration at 4 Hz and 100 Hz, which masses would
make up for. With seven instants it is (w T)^6 / 140, 2e-6 there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

POINTS = 7
"""Instants that make up a derivative; the lowest number of rows that has one."""


def derivative(values: Array, step: float) -> Array:
    """
    Return the derivative of signals; at both ends from one side.

    values (n, ...); step [s]; returns (n, ...).
    """
    n, half = len(values), POINTS // 2
    flat = values.reshape(n, -1)
    found = np.zeros_like(flat, dtype=np.float64)
    # Differences first: of what is constant nothing is left but zeros.
    for reach, share in enumerate(_shares(half)[half + 1 :].tolist(), 1):
        later = flat[half + reach : n - half + reach]
        found[half : n - half] += share * (later - flat[half - reach : n - half - reach])
    for k in range(half):
        found[k] = _shares(k) @ (flat[:POINTS] - flat[k])
        found[n - 1 - k] = _shares(POINTS - 1 - k) @ (flat[-POINTS:] - flat[n - 1 - k])
    return np.asarray(found / step).reshape(values.shape)


def _shares(at: int) -> Array:
    """Return by how much each of `POINTS` instants counts in the derivative at one of them."""
    places = np.arange(POINTS) - float(at)
    powers = np.vander(places, increasing=True).T
    wanted = np.zeros(POINTS)
    wanted[1] = 1.0
    return np.asarray(np.linalg.solve(powers, wanted))
