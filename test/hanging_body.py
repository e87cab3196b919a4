# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of an FT sensor that carries one rigid body."""

from __future__ import annotations

import numpy as np

from inertial_estimation.calibration.in_situ_matrix import Weighed

GRAVITY = 9.80665
MASS, CENTRE = 2.9, np.array([0.01, -0.02, 0.15])
"""Of the body [kg], [m]."""
OFFSET = np.array([30.0, -20.0, 45.0, 1.5, -0.7, 0.4])
"""[N, Nm]"""
NOISE = np.repeat([0.15, 0.007], 3)
"""[N, Nm]"""
# A gauge matrix with rows of the size of those of real sensors [N, Nm per count].
MATRIX = np.array([
    [0.6, 0.5, 23.7, 2.0, -0.6, -23.9],
    [1.9, 26.8, -13.9, -1.0, -0.5, -13.2],
    [21.6, -0.3, -0.2, 21.0, 21.2, -0.8],
    [0.01, 0.25, -0.13, -0.33, 0.3, -0.13],
    [-0.34, 0.0, -0.21, 0.2, 0.21, 0.2],
    [0.02, 0.24, 0.24, 0.02, 0.0, 0.23],
]) * 1e-3  # fmt: skip


def directions(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return gravity in all directions of the body, shape (n, 3) [m/s^2]."""
    drawn = rng.normal(size=(n, 3))
    return GRAVITY * drawn / np.linalg.norm(drawn, axis=1)[:, None]


def wrenches(gravity: np.ndarray, added: float = 0.0, at=(0.0, 0.0, 0.0)) -> np.ndarray:
    """Return the wrench of the body on the sensor with a mass added, shape (n, 6) [N, Nm]."""
    M = Weighed(MASS, MASS * CENTRE).matrix + Weighed(added, added * np.array(at)).matrix
    return gravity @ M.T


def counts(found: np.ndarray, matrix: np.ndarray = MATRIX, offset: np.ndarray = OFFSET):
    """Return the raw readings that wrenches make, shape (n, 6)."""
    return np.linalg.solve(matrix, (found + offset).T).T
