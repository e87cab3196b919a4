# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Smooth reference motion of the joints: a few sines each, with random phases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array

SINES = 3
"""Sines per joint: enough that no two joints repeat together within a run."""
LOWEST, HIGHEST = 0.75, 1.15
"""
Range of the frequencies [Hz]: slower ones would take narrow joints to their limits, with faster
ones the bias of a causal filter would outgrow the noise.
"""
START = 2.0
"""Time to the full amplitude of the motion [s]."""


@dataclass(frozen=True)
class Motion:
    """
    Reference motion of all joints.

    posture (n_joints,) [rad]; amplitudes (n_joints, SINES) [rad]; frequencies (n_joints, SINES)
    [rad/s]; phases (n_joints, SINES) [rad].
    """

    posture: Array
    amplitudes: Array
    frequencies: Array
    phases: Array

    @classmethod
    def random(cls, posture: Array, accelerations: Array, rng: np.random.Generator) -> Motion:
        """
        Return a motion with random frequencies and phases.

        posture (n_joints,) [rad]; accelerations (n_joints,) [rad/s^2].
        """
        shape = (posture.size, SINES)
        # One from each part of the range: sines close together would beat for minutes.
        shares = (np.arange(SINES) + rng.uniform(0.1, 0.9, shape)) / SINES
        frequencies = 2.0 * np.pi * (LOWEST + (HIGHEST - LOWEST) * shares)
        peaks = accelerations * np.sqrt(2.0 / SINES)
        return cls(
            posture,
            peaks[:, None] / frequencies**2,
            frequencies,
            rng.uniform(-np.pi, np.pi, shape),
        )

    @property
    def excursions(self) -> Array:
        """Largest distance of each joint from its posture, shape (n_joints,) [rad]."""
        return np.asarray(self.amplitudes.sum(axis=1))

    def at(self, times: Array) -> tuple[Array, Array]:
        """
        Return the reference at some times.

        times (n,) [s]; returns positions (n, n_joints) [rad]; velocities (n, n_joints) [rad/s].
        """
        share, rate = _smooth_step(times[:, None] / START)
        angles = self.frequencies * times[:, None, None] + self.phases
        offset = (self.amplitudes * np.sin(angles)).sum(axis=2)
        speed = (self.amplitudes * self.frequencies * np.cos(angles)).sum(axis=2)
        return self.posture + share * offset, share * speed + rate / START * offset


def _smooth_step(shares: Array) -> tuple[Array, Array]:
    """Return a step from 0 to 1 with no jump up to its second derivative, and its slope."""
    s = np.clip(shares, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 30.0 * s**2 * (1.0 - s) ** 2
