# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
M's experiment on synthetic data: an arm that is one body beyond an FT sensor, moved by a shoulder.

60 s at 100 Hz from point to point, slowly or fast; velocities and accelerations by the filters of
M section IV. What the arm weighs is about what M found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.link_motions import Motion
from inertial_estimation.model.regressor import net_wrench_regressor

Array = NDArray[np.float64]


class Pace(NamedTuple):
    """How fast a path of M is, and how it is filtered."""

    duration: float
    """From point to point [s]."""
    window: int
    """Of the filter, samples."""


PACES = (Pace(10.0, 499), Pace(5.0, 41), Pace(2.0, 21), Pace(1.0, 9), Pace(0.5, 7))
STICKS = (
    (1.14, (0.0, 0.0, 0.08), (0.03, 0.03, 0.11)),
    (0.7, (0.09, 0.0, 0.164), (0.09, 0.03, 0.03)),
)
"""
Mass, centre and half lengths of upper arm, along z, and forearm, along x, at the sensor [kg, m]:
together 1.84 kg and first moments of (0.063, 0, 0.206) kg m, as in M's Table I.
"""
RATE, INSTANTS = 100.0, 6000
"""[Hz], and how many there are."""
JITTER = np.deg2rad(0.01)
"""Noise of positions [rad]."""
NOISE = np.array([0.6, 0.6, 0.6, 0.04, 0.04, 0.04])
"""Of the wrench [N, Nm]."""
RANGES = np.array([[-1.5, 0.1, -0.6], [0.1, 1.5, 1.0]])
"""Least and greatest positions [rad]."""
AXES = np.eye(3)[[1, 0, 2]]
"""Of the joints, each in the frame of the one before."""
LEVER = np.array([0.0, 0.0, 0.15])
"""From the shoulder to the sensor [m]."""
GRAVITY = np.array([0.0, 0.0, 9.81])
"""Proper acceleration at rest [m/s^2]."""
SEED = 6


def arm() -> Array:
    """
    Return the parameters of the arm.

    Returns (10,).
    """
    sticks = PrincipalBodies(
        np.array([m for m, _, _ in STICKS]),
        np.array([c for _, c, _ in STICKS]),
        np.tile(np.eye(3), (len(STICKS), 1, 1)),
        np.array([m * np.array(d) ** 2 / 3 for m, _, d in STICKS]),
    )
    return np.asarray(sticks.parameters.sum(axis=0))


def arm_problem(pace: Pace, seed: int = SEED) -> Problem:
    """Return the problem of one path, in units of the noise."""
    rng = np.random.default_rng(seed)
    positions = minimum_jerk(pace.duration, rng)
    measured = positions + JITTER * rng.normal(size=positions.shape)
    exact = [_filtered(positions, 7, 4, k) for k in range(3)]
    wrench = shoulder_rows(*exact) @ arm()
    wrench += NOISE * rng.normal(size=wrench.shape)
    rows = shoulder_rows(*(_filtered(measured, pace.window, 2, k) for k in range(3)))
    rows = rows / NOISE[:, None]
    information = Information.of(rows.reshape(-1, 10), (wrench / NOISE).reshape(-1))
    even = PrincipalBodies(
        np.array([1.5]), np.array([[0.0, 0.0, 0.15]]), np.eye(3)[None], np.full((1, 3), 0.01)
    )
    return Problem.of(Unknowns(('arm',)), information, even.parameters)


def minimum_jerk(duration: float, rng: np.random.Generator) -> Array:
    """
    Return positions of three joints between random points.

    duration [s]; returns (6000, 3) [rad].
    """
    times = np.arange(INSTANTS) / RATE
    k = (times // duration).astype(int)
    s = (times / duration - k)[:, None]
    points: Array = rng.uniform(RANGES[0], RANGES[1], (k[-1] + 2, 3))
    found: Array = points[k] + np.diff(points, axis=0)[k] * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return found


def shoulder_rows(q: Array, v: Array, a: Array) -> Array:
    """
    Return the regressor of the sensor's wrench.

    q, v, a (n, 3) [rad, rad/s, rad/s^2]; returns (n, 6, 10).
    """
    rate = rate_of_rate = np.zeros_like(q)
    attitude = Rotation.identity(len(q))
    for k, axis in enumerate(AXES):
        turn = Rotation.from_rotvec(q[:, k : k + 1] * axis)
        attitude = attitude * turn
        rate, rate_of_rate = turn.inv().apply(rate), turn.inv().apply(rate_of_rate)
        spin = v[:, k : k + 1] * axis
        rate_of_rate = rate_of_rate + np.cross(rate, spin) + a[:, k : k + 1] * axis
        rate = rate + spin
    swing = np.cross(rate_of_rate, LEVER) + np.cross(rate, np.cross(rate, LEVER))
    proper = attitude.inv().apply(GRAVITY) + swing
    return net_wrench_regressor(Motion(rate, rate_of_rate, proper))


def _filtered(positions: Array, window: int, order: int, derivative: int) -> Array:
    """Return a derivative by a Savitzky-Golay filter, shape (n, 3)."""
    found = savgol_filter(positions, window, order, deriv=derivative, delta=1 / RATE, axis=0)
    return np.asarray(found, dtype=float)
