# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Every setting of the nodes, once: type, default, range and description.

The same dataclasses are filled from a ROS parameter file, from ROS parameters (the nodes declare
exactly these names) or by hand. Lists of structures are written the ROS way: a list of names, and
one group for each, as in ``ft_sensors: [l_leg_ft]`` and ``ft.l_leg_ft.topic: /left_leg/wrench``.
"""

from inertial_estimation.config.schema import Setting, settings_of
from inertial_estimation.config.settings import (
    ContactSettings,
    EstimatorSettings,
    FilterSettings,
    FtSettings,
    IdentifierSettings,
    ImuSettings,
    JointStateSettings,
)

# fmt: off
__all__ = [
    'ContactSettings', 'EstimatorSettings', 'FilterSettings', 'FtSettings', 'IdentifierSettings',
    'ImuSettings', 'JointStateSettings', 'Setting', 'settings_of',
]
