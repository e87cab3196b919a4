# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the links weigh: from rows of the equations of motion to consistent parameters."""
