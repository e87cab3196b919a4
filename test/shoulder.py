# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
M's experiment on synthetic data: a rigid arm beyond an FT sensor, moved by a shoulder.

60 s at 100 Hz from point to point, slowly or fast; velocities and accelerations by the filters of
M section IV. The inertial parameters of the arm are about those that M found.
"""

from typing import NamedTuple

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.divergence import parameters_of
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.link_motions import Motion
from inertial_estimation.model.regressor import net_wrench_regressor


class Pace(NamedTuple):
    """Duration from point to point [s], and length of the filter [samples]."""

    duration: float
    window: int


PACES = (Pace(10.0, 499), Pace(5.0, 41), Pace(2.0, 21), Pace(1.0, 9), Pace(0.5, 7))
RATE, N = 100.0, 6000
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


def arm():
    """
    Return the parameters of upper arm, along z, and forearm, along x, at the sensor, (10,).

    Together 1.84 kg and first moments of (0.063, 0, 0.206) kg m, as in M's Table I.
    """
    masses = np.array([1.14, 0.7])
    centers = np.array([[0.0, 0.0, 0.08], [0.09, 0.0, 0.164]])
    half_lengths = np.array([[0.03, 0.03, 0.11], [0.09, 0.03, 0.03]])
    moments = masses[:, None] * half_lengths**2 / 3
    return even_bodies(masses, centers, moments).sum(axis=0)


def even_bodies(masses, centers, moments):
    """Return parameters, (n, 10), from second moments along the axes of the frame, (n, 3)."""
    J = np.zeros((len(masses), 4, 4))
    J[:, range(3), range(3)] = moments
    e = np.column_stack([centers, np.ones(len(masses))])
    return parameters_of(J + masses[:, None, None] * e[:, :, None] * e[:, None])


def arm_problem(pace, seed=6):
    """Return the problem of one path, in units of the noise."""
    rng = np.random.default_rng(seed)
    positions = minimum_jerk(pace.duration, rng)
    measured = positions + JITTER * rng.normal(size=positions.shape)

    def regressor(q, window, order):
        delta = 1 / RATE
        return wrench_regressor(
            *(savgol_filter(q, window, order, deriv=k, delta=delta, axis=0) for k in range(3))
        )

    wrench = regressor(positions, 7, 4) @ arm()
    wrench += NOISE * rng.normal(size=wrench.shape)
    Y = regressor(measured, pace.window, 2) / NOISE[:, None]
    information = Information.of(Y.reshape(-1, 10), (wrench / NOISE).reshape(-1))
    even = even_bodies(np.array([1.5]), np.array([[0.0, 0.0, 0.15]]), np.full((1, 3), 0.01))
    return Problem.of(Unknowns(('arm',)), information, even)


def minimum_jerk(duration, rng):
    """Return positions of three joints between random points, (6000, 3) [rad]."""
    times = np.arange(N) / RATE
    k = (times // duration).astype(int)
    s = (times / duration - k)[:, None]
    points = rng.uniform(RANGES[0], RANGES[1], (k[-1] + 2, 3))
    return points[k] + np.diff(points, axis=0)[k] * (10 * s**3 - 15 * s**4 + 6 * s**5)


def wrench_regressor(q, v, a):
    """Return the regressor of the sensor's wrench, (n, 6, 10), of joint motions (n, 3)."""
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
    proper = attitude.inv().apply([0.0, 0.0, 9.81]) + swing
    return net_wrench_regressor(Motion(rate, rate_of_rate, proper))
