# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the package makes of a robot: sensors, submodels, clusters, dependence, what is amiss."""

from inertial_estimation.check.report import Check
from inertial_estimation.check.robots import check_robot, check_settings, check_urdf

__all__ = ['Check', 'check_robot', 'check_settings', 'check_urdf']
