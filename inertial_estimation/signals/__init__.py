# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the bytes of sensor messages to samples, without ROS: messages, streams, filters."""
