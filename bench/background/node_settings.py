# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a recursive identification remembers in the node, unless it is told otherwise."""

from __future__ import annotations

import numpy as np

from inertial_estimation.building import build_noise
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.stream import StreamRates


def node_settings(robot: Robot) -> RecursionSettings:
    """Return the settings; offsets of all FT sensors are unknown."""
    node = IdentifierSettings()
    return RecursionSettings(
        equations=EquationChoice(offsets=tuple(sensor.name for sensor in robot.ft_sensors)),
        weight=node.prior_weight,
        half_life=node.half_life,
        force_walk=node.force_walk,
        moment_walk=node.moment_walk,
        force_drift=node.force_drift,
        moment_drift=node.moment_drift,
        warm_up=node.warm_up,
        gate=node.gate,
        excited=node.least_told,
    )


def state_noise(robot: Robot, settings: EstimatorSettings, rate: float) -> StateNoise:
    """
    Return how noisy the motion is that a node with these settings knows.

    rate [Hz].
    """
    counts = (len(robot.joint_names), len(robot.imus), len(robot.ft_sensors))
    rates = StreamRates(*(np.full(n, rate) for n in counts))
    model = build_noise(settings, robot, rates).model
    return StateNoise.of(
        model.joints, model.imus, measures_velocities=settings.velocity_source == 'message'
    )
