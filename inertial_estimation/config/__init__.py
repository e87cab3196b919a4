# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Every setting of the estimator, once: type, default, range and description.

The same dataclasses are filled from a ROS parameter file (``inertial-estimation replay``), from
ROS parameters (the node declares exactly these fields) or by hand. Lists of structures are
written the ROS way: a list of names, and one group of parameters for each name, as in
``ft_sensors: [l_leg_ft]`` and ``ft.l_leg_ft.topic: /left_leg/wrench``.
"""

from inertial_estimation.config.groups import (
    ContactSettings,
    FtSettings,
    ImuSettings,
    LinkSensorSettings,
    TouchSettings,
)
from inertial_estimation.config.identifier import IdentifierSettings
from inertial_estimation.config.schema import Setting, Value, settings_of
from inertial_estimation.config.settings import EstimatorSettings

__all__ = [
    'ContactSettings',
    'EstimatorSettings',
    'FtSettings',
    'IdentifierSettings',
    'ImuSettings',
    'LinkSensorSettings',
    'Setting',
    'TouchSettings',
    'Value',
    'settings_of',
]
