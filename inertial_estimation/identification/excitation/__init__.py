# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Motions whose efforts tell most of what a robot weighs."""
