# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From samples to rows of the equations of motion: what sensors say about the links."""
