# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of the sensors of the embedded robot: true values with white noise."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.sample import Sample
from inertial_estimation.simulation.truth import Snapshot


@dataclass(frozen=True)
class NoiseLevels:
    """Standard deviation of the white noise of each kind of sensor; 0 switches a kind off."""

    force: float = 0.15
    """Force of the FT sensors [N]."""
    torque: float = 0.005
    """Moment of the FT sensors [Nm]."""
    encoder: float = 1e-4
    """Joint positions [rad]."""
    gyroscope: float = 3e-3
    """Angular velocity of the IMUs [rad/s]."""
    accelerometer: float = 0.03
    """Proper acceleration of the IMUs [m/s^2]."""


class SensorNoise:
    """Adds noise from one random stream for each kind of sensor: the kinds are independent."""

    def __init__(self, levels: NoiseLevels | None = None, seed: int = 0) -> None:
        self.levels = NoiseLevels() if levels is None else levels
        streams = np.random.SeedSequence(seed).spawn(len(fields(NoiseLevels)))
        self._streams = {
            level.name: np.random.default_rng(stream)
            for level, stream in zip(fields(NoiseLevels), streams)
        }

    def apply(self, snapshot: Snapshot) -> Sample:
        """Return the readings of one instant."""
        forces, moments = np.hsplit(snapshot.ft_wrenches, 2)
        return Sample(
            stamp_ns=snapshot.time_ns,
            positions=self._noisy('encoder', snapshot.positions),
            velocities=np.full_like(snapshot.velocities, np.nan),
            accelerations=np.full_like(snapshot.accelerations, np.nan),
            angular_velocities=self._noisy('gyroscope', snapshot.angular_velocities),
            proper_accelerations=self._noisy('accelerometer', snapshot.proper_accelerations),
            angular_accelerations=np.full_like(snapshot.angular_accelerations, np.nan),
            ft_readings=np.hstack([self._noisy('force', forces), self._noisy('torque', moments)]),
        )

    def _noisy(self, kind: str, values: Array) -> Array:
        """Return values with the noise of a kind of sensor."""
        noise = self._streams[kind].standard_normal(values.shape)
        return np.asarray(values + getattr(self.levels, kind) * noise)
