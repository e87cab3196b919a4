# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
States of a Kalman filter at an instant in the past, from the samples after it as well.

It is the smoother of Rauch, Tung and Striebel. While the gains were steady all the way, what the
later samples change is one product: their innovations times weights that only depend on how much
later they came.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from inertial_estimation.sample import Array
from inertial_estimation.signals.windows import Rings

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


class Step(NamedTuple):
    """What the smoother needs of one sample."""

    stamp_ns: int
    state: Array
    """After the correction, shape (3, n_channels)."""
    predicted: Array
    """Before it."""
    gains: Gains
    back: Array
    """From this sample to the one before, shape (3, 3)."""


class FixedLagSmoother:
    """Keeps the last samples of a filter, and goes back from the newest one; density [1/s^5]."""

    def __init__(self, n_channels: int, density: float, kept_ns: int) -> None:
        self._n_channels, self._density, self._kept_ns = n_channels, density, kept_ns
        self._steps: deque[Step] = deque()
        self._innovations = Rings(n_channels)
        self.steady_steps = 0
        """Newest samples since when the gains have been steady."""

    def keep(self, step: Step, innovation: Array, *, steady: bool) -> None:
        """Take a sample; innovation (n_channels,)."""
        steps = self._steps
        steps.append(step)
        while steps[0].stamp_ns < step.stamp_ns - self._kept_ns:
            steps.popleft()
        self.steady_steps = self.steady_steps + 1 if steady else 0
        if len(steps) > self._innovations.capacity:
            self._innovations = self._innovations.doubled()
        self._innovations.push(step.stamp_ns, innovation)

    def states_at(self, stamp_ns: int) -> Array:
        """Return the states at an instant before the newest sample; returns (3, n_channels)."""
        steps = self._steps
        behind = (k for k, step in enumerate(reversed(steps)) if step.stamp_ns < stamp_ns)
        before = next(behind, len(steps))
        if before == len(steps) and (not steps or steps[0].stamp_ns != stamp_ns):
            return np.full((3, self._n_channels), np.nan)
        lag = before - 1
        smoothed = self._weighted(lag) if lag <= self.steady_steps else self._swept(lag)
        later = steps[-1 - lag]
        if later.stamp_ns == stamp_ns:
            return smoothed
        return self._between(steps[-1 - before], later, smoothed, stamp_ns)

    def _weighted(self, lag: int) -> Array:
        """Return the states so many samples ago, since when all gains were steady."""
        state = self._steps[-1 - lag].state
        if not lag:
            return state.copy()
        # A power of two, so that few lags are laid out.
        weights = _lag_weights(_Same(self._steps[-1].gains), 1 << (lag - 1).bit_length())
        smoothed: Array = state + weights[:, :lag] @ self._innovations.newest(lag)[1]
        return smoothed

    def _swept(self, lag: int) -> Array:
        """Return the states so many samples ago, step by step from the newest."""
        steps = reversed(self._steps)
        later = next(steps)
        smoothed = later.state.copy()
        for _ in range(lag):
            step = next(steps)
            smoothed = step.state + later.back @ (smoothed - later.predicted)
            later = step
        return smoothed

    def _between(self, step: Step, later: Step, smoothed: Array, stamp_ns: int) -> Array:
        """Return the states at an instant between two samples, those at the later one given."""
        covariance = step.gains.covariance
        there = gains_of_step(covariance, 1e-9 * (stamp_ns - step.stamp_ns), self._density)
        rest = model(1e-9 * (later.stamp_ns - stamp_ns), self._density)[0]
        back = np.linalg.solve(
            later.gains.predicted_covariance, rest @ there.predicted_covariance
        ).T
        states: Array = there.transition @ step.state + back @ (smoothed - later.predicted)
        return states


class _Same:
    """Gains that are equal if they are the same object: those that are steady are kept once."""

    def __init__(self, gains: Gains) -> None:
        self.gains = gains

    def __hash__(self) -> int:
        """Return that of the object."""
        return id(self.gains)

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same object."""
        return isinstance(other, _Same) and other.gains is self.gains


@lru_cache(maxsize=64)
def _lag_weights(steady: _Same, count: int) -> Array:
    return lag_weights(steady.gains, count)
