# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the links weigh while the robot works: rows come in, old ones fade, bodies are refitted."""
