# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains of a Kalman filter for a value whose third derivative is white noise.

All covariances are over the variance r of the values. The density is that of the third derivative
over r, (unit/s^3)^2/Hz/unit^2 = 1/s^5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.sample import Array

UNIT = np.array([[1.0], [0.0], [0.0]])
"""State of a value of 1 that stands still, (3, 1)."""


class Gains(NamedTuple):
    """What carries the state from one sample to the next, and corrects it there."""

    transition: Array
    """Of the state, shape (3, 3)."""
    gain: Array
    """Of the innovation, shape (3, 1)."""
    predicted_covariance: Array
    """Before the correction, shape (3, 3)."""
    covariance: Array
    """After it, shape (3, 3)."""
    back: Array | None = None
    """Of the smoother, shape (3, 3), where it is always the same."""


def model(interval: float, density: float) -> tuple[Array, Array]:
    """
    Return how state and covariance change over an interval.

    interval [s]; density [1/s^5]; returns transition (3, 3); added (3, 3).
    """
    t = interval
    transition = np.array([[1.0, t, t * t / 2.0], [0.0, 1.0, t], [0.0, 0.0, 1.0]])
    t3, t4, t5 = t**3 / 6.0, t**4 / 8.0, t**5 / 20.0
    added = np.array([[t5, t4, t3], [t4, t**3 / 3.0, t * t / 2.0], [t3, t * t / 2.0, t]])
    return transition, density * added


def gains_of_step(covariance: Array, interval: float, density: float) -> Gains:
    """
    Return the optimal gains for one interval.

    covariance (3, 3); interval [s]; density [1/s^5].
    """
    transition, added = model(interval, density)
    predicted = transition @ covariance @ transition.T + added
    gain = predicted[:, :1] / (predicted[0, 0] + 1.0)
    return Gains(transition, gain, predicted, predicted - gain * predicted[0])


def steady_gains(interval: float, density: float) -> Gains:
    """
    Return the gains to which equal intervals lead: those of the algebraic Riccati equation.

    interval [s]; density [1/s^5].
    """
    from scipy.linalg import solve_discrete_are

    # With the interval as unit of time all entries are near one another.
    transition, added = model(1.0, density * interval**5)
    units = np.array([1.0, 1.0 / interval, 1.0 / interval**2])
    scaled: Array = solve_discrete_are(transition.T, UNIT, added, np.eye(1))
    predicted = units[:, None] * scaled * units
    gain = predicted[:, :1] / (predicted[0, 0] + 1.0)
    steady = Gains(model(interval, density)[0], gain, predicted, predicted - gain * predicted[0])
    return steady._replace(back=smoother_gain(steady.covariance, steady))


def smoother_gain(covariance: Array, gains: Gains) -> Array:
    """
    Return what the smoother multiplies the news about a sample with, for the sample before.

    covariance (3, 3); returns (3, 3).
    """
    back = np.linalg.solve(gains.predicted_covariance, gains.transition @ covariance)
    return np.asarray(back.T, np.float64)


def lag_weights(gains: Gains, count: int) -> Array:
    """
    Return what the innovations of later samples do to a state, while the gains are steady.

    Returns (3, count).
    """
    weights = np.empty((count, 3))
    back, news = smoother_gain(gains.covariance, gains), gains.gain
    for k in range(count):
        news = back @ news
        weights[k] = news[:, 0]
    return weights.T
