# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a recursive identification remembers in the node, unless it is told otherwise."""

from __future__ import annotations

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.rows.builder import RowChoice
from inertial_estimation.model.robot import Robot


def node_settings(robot: Robot) -> RecursionSettings:
    """
    Return the settings; offsets of all FT sensors are unknown.

    Parameters
    ----------
    robot : Robot
        Its FT sensors.

    Returns
    -------
    RecursionSettings

    """
    node = IdentifierSettings()
    return RecursionSettings(
        rows=RowChoice(offsets=tuple(sensor.name for sensor in robot.ft_sensors)),
        weight=node.prior_weight,
        half_life=node.half_life,
        force_walk=node.force_walk,
        moment_walk=node.moment_walk,
        warm_up=node.warm_up,
        gate=node.gate,
        excited=node.least_told,
    )
