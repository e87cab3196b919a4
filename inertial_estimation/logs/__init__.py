# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bags and tables; their messages become samples in signals/, as those of a node do."""
