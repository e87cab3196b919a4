# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A body beyond an FT sensor that is turned from pose to pose, reading by reading."""

from __future__ import annotations

import numpy as np
from hanging_body import GRAVITY, NOISE, counts, wrenches

from inertial_estimation.calibration.session import DIRECTIONS, Reading

RATE = 100
"""[Hz]"""
STEP_NS = 1_000_000_000 // RATE
AROUND = np.tile(GRAVITY * DIRECTIONS, (2, 1))
"""Gravity in all 26 directions, twice [m/s^2]."""


class TurnedBody:
    """A body with a sensor, and an accelerometer turned by a rotation in its frame."""

    def __init__(self, rng, rotation=None):
        self.rng, self.rotation = rng, np.eye(3) if rotation is None else rotation
        self.added, self.at = 0.0, (0.0, 0.0, 0.0)
        self.stamp_ns = 1_000_000_000
        self.touch = np.zeros(6)

    def still(self, gravity, n, **more):
        """Yield readings of a body at rest."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            wrench = wrenches(gravity[None], self.added, self.at)[0] + self.touch
            raw = counts((wrench + NOISE * self.rng.normal(size=6))[None])[0]
            acceleration = -gravity @ self.rotation + 0.02 * self.rng.normal(size=3)
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
