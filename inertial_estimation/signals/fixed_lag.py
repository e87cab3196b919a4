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
from inertial_estimation.signals.kalman_gains import Gains, gains_of_step, lag_weights, model
from inertial_estimation.signals.windows import Rings


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
        """Tell whether it is the same object."""
        return isinstance(other, _Same) and other.gains is self.gains


@lru_cache(maxsize=64)
def _lag_weights(steady: _Same, count: int) -> Array:
    return lag_weights(steady.gains, count)
