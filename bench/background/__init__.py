# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What identification beside a working robot brings: torques, offsets, payloads over time."""
