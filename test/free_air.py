# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs of a robot on a pole whose limbs are in free air, as the package makes them for itself."""

from bench.live_robots import smooth_motion, with_readings

__all__ = ['smooth_motion', 'with_readings']
