# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A body beyond an FT sensor that is turned from pose to pose, reading by reading."""

from __future__ import annotations

import numpy as np
from hanging_body import GRAVITY, MATRIX, NOISE, OFFSET, counts, wrenches

from inertial_estimation.calibration.collection import DIRECTIONS, Collection

RATE = 100
"""[Hz]"""
STEP_NS = 1_000_000_000 // RATE
AROUND = np.tile(GRAVITY * DIRECTIONS, (3, 1))
"""Gravity in all 26 directions, thrice [m/s^2]."""


class TurnedBody:
    """A body with a sensor, and an accelerometer turned by a rotation in its frame."""

    def __init__(self, rng, matrix=MATRIX, offset=OFFSET, rotation=None):
        self.rng, self.matrix, self.offset = rng, matrix, offset
        self.rotation = np.eye(3) if rotation is None else rotation
        self.added, self.at = 0.0, (0.0, 0.0, 0.0)
        self.stamp_ns = 1_000_000_000
        self.touch = np.zeros(6)

    def readings(self, gravity, n):
        """Yield stamp, raw reading, acceleration and turning of a body at rest."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            wrench = wrenches(gravity[None], self.added, self.at)[0] + self.touch
            wrench = wrench + NOISE * self.rng.normal(size=6)
            raw = counts(wrench[None], self.matrix, self.offset)[0]
            acceleration = -gravity @ self.rotation + 0.02 * self.rng.normal(size=3)
            yield self.stamp_ns, raw, acceleration, 0.005 * self.rng.normal(size=3)

    def hold(self, collection: Collection, gravity, seconds=1.0, **more):
        """Hold a pose; return the states of its readings."""
        n = round(seconds * RATE)
        return [collection.update(*one, **more) for one in self.readings(gravity, n)]

    def turn(self, collection: Collection, seconds=0.2):
        """Turn the body fast; return the states of its readings."""
        states = []
        for _ in range(round(seconds * RATE)):
            self.stamp_ns += STEP_NS
            raw = counts(100.0 * self.rng.normal(size=(1, 6)), self.matrix, self.offset)[0]
            states.append(collection.update(self.stamp_ns, raw, 15.0 * np.eye(3)[0], np.ones(3)))
        return states

    def go_through(self, collection: Collection, poses=AROUND, seconds=0.8):
        """Go from pose to pose."""
        for gravity in poses:
            self.turn(collection)
            self.hold(collection, gravity, seconds)
