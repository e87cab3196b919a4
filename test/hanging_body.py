# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of an FT sensor that carries one rigid body, in poses or turned from one to another."""

from __future__ import annotations

import numpy as np

from inertial_estimation.calibration.in_situ_matrix import AddedMass, Weighed
from inertial_estimation.calibration.session import DIRECTIONS, Reading

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


def swinging(n: int) -> np.ndarray:
    """Return gravity of a leg that swings by 35 degrees one way, 45 the other, (n, 3) [m/s^2]."""
    t = np.arange(n) / n
    pitch = np.deg2rad(35) * np.sin(2 * np.pi * 11 * t)
    roll = np.deg2rad(45) * np.sin(2 * np.pi * t)
    parts = -np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)
    return GRAVITY * np.column_stack(parts)


def wrenches(gravity: np.ndarray, added: float = 0.0, at=(0.0, 0.0, 0.0)) -> np.ndarray:
    """Return the wrench of the body on the sensor with a mass added, shape (n, 6) [N, Nm]."""
    M = Weighed(MASS, MASS * CENTRE).matrix + Weighed(added, added * np.array(at)).matrix
    return gravity @ M.T


def counts(found: np.ndarray, matrix: np.ndarray = MATRIX, offset: np.ndarray = OFFSET):
    """Return the raw readings that wrenches make, shape (n, 6)."""
    return np.linalg.solve(matrix, (found + offset).T).T


def data_set(rng, name, added, at, *, noise=0.0, n=400, gravity=None, matrix=MATRIX) -> AddedMass:
    """Return a data set with a mass added."""
    g = directions(rng, n) if gravity is None else gravity
    found = wrenches(g, added, at) + noise * rng.normal(size=(len(g), 6)) * NOISE
    return AddedMass(name, counts(found, matrix), -g, added, np.array(at, dtype=float))


def data_sets(rng, added, **options) -> list[AddedMass]:
    """Return data sets of (mass, centre) pairs, numbered from 1."""
    return [data_set(rng, str(k + 1), *one, **options) for k, one in enumerate(added)]


RATE = 100
"""[Hz]"""
STEP_NS = 1_000_000_000 // RATE
AROUND = np.tile(GRAVITY * DIRECTIONS, (2, 1))
"""Gravity in all 26 directions, twice [m/s^2]."""


class TurnedBody:
    """A body with a sensor and an accelerometer."""

    def __init__(self, rng):
        self.rng = rng
        self.stamp_ns = 1_000_000_000
        self.touch = np.zeros(6)

    def still(self, gravity, n, **more):
        """Yield readings of a body at rest."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            wrench = wrenches(gravity[None])[0] + self.touch
            raw = counts((wrench + NOISE * self.rng.normal(size=6))[None])[0]
            acceleration = -gravity + 0.02 * self.rng.normal(size=3)
            turning = 0.005 * self.rng.normal(size=3)
            yield Reading(self.stamp_ns, raw, acceleration, turning, **more)

    def moving(self, n=20):
        """Yield readings of a body that is turned fast."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            raw = counts(100.0 * self.rng.normal(size=(1, 6)))[0]
            yield Reading(self.stamp_ns, raw, 15.0 * np.eye(3)[0], np.ones(3))

    def go_through(self, take, poses=AROUND, seconds=0.8):
        """Go from pose to pose, and let each reading be taken."""
        for gravity in poses:
            for reading in (*self.moving(), *self.still(gravity, round(seconds * RATE))):
                take(reading)
