# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How noisy the motion is that the identifier is told of, once rates of streams are known."""

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.stream_noise import StreamFilters, stream_noise


class MotionNoise:
    """Of a robot, from the noise that the settings state."""

    def __init__(self, robot: Robot, settings: IdentifierSettings) -> None:
        self._robot, self._settings = robot, settings
        self._filters = StreamFilters(settings)
        self._is_complete = False
        self.known: StateNoise | None = None

    def update(self, rates: StreamRates) -> None:
        """Find out what filters make of noise at the rates of their streams."""
        if self._is_complete:
            return
        found = stream_noise(self._settings, self._robot, rates, self._filters)
        self.known = StateNoise.of(
            found.model.joints,
            found.model.imus,
            is_white=not self._settings.smooth_readings,
            measures_velocities=self._settings.velocity_source == 'message',
        )
        self._is_complete = bool(found.joints.all() and found.imus.all())
