# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Results as messages: wrenches, torques, markers and diagnostics, without ROS."""
