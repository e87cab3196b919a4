# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What rows say, reduced to a size that does not grow with their number."""
